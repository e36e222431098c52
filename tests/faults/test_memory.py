"""A process that gets no more memory: what is too large now is refused, the rest goes on, and nothing shown is lost."""

from __future__ import annotations

import contextlib
import re
import resource
import signal
import sys
from pathlib import Path

import pytest

from tests.faults.wholeness import assert_nothing_lost
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

MB = 1 << 20
LARGE = "x" * 6_000_000
ENDS = (70, -signal.SIGSEGV)
"""How a process may end in which not even an error can be made: by itself, or in a C library that did not look."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of a running process: Linux only")


def starve(sidecar: Sidecar, left: int) -> None:
    """Leave the process so many bytes more than it has."""
    status = Path(f"/proc/{sidecar.pid}/status").read_text()
    found = re.search(r"VmData:\s+(\d+) kB", status)
    assert found
    resource.prlimit(sidecar.pid, resource.RLIMIT_DATA, (int(found[1]) * 1024 + left, resource.RLIM_INFINITY))


def feed(sidecar: Sidecar) -> None:
    resource.prlimit(sidecar.pid, resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.mark.parametrize("left", [16 * MB, 48 * MB])
def test_what_there_is_no_memory_for_is_refused_and_the_rest_goes_on(spawn: Spawner, left: int) -> None:
    sidecar = spawn()
    sidecar.run("before", chatId="c")
    starve(sidecar, left)
    refused = sidecar.refused("prompt/send", chatId="c", promptId="large", text=LARGE)
    assert (refused.code, refused.data["reason"], refused.data["retryable"]) == (-32015, "io", True)
    assert sidecar.run("meanwhile", chatId="c")["data"]["reason"] == "end_turn"
    assert len(sidecar.call("chat/history", chatId="c")["turns"]) == 2
    feed(sidecar)
    sent = sidecar.call("prompt/send", chatId="c", promptId="large", text=LARGE)
    assert sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar)


def test_a_frame_that_there_is_no_memory_for_is_skipped_and_said(spawn: Spawner) -> None:
    sidecar = spawn()
    sidecar.run("before", chatId="c")
    starve(sidecar, 2 * MB)
    sidecar.killed = sidecar.referee.lenient = True  # the answer names no request: its id was skipped too
    sidecar.ask("prompt/send", chatId="c", promptId="large", text=LARGE)
    sidecar.wait_until(lambda: any(reply["id"] is None for reply in sidecar.replies), 15, "an answer")
    (answer,) = [reply for reply in sidecar.replies if reply["id"] is None]
    assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (-32015, "io")
    feed(sidecar)
    assert sidecar.run("after", chatId="c")["data"]["reason"] == "end_turn"


@pytest.mark.parametrize("left", [1 * MB, 3 * MB, 6 * MB, 12 * MB, 90 * MB])
def test_whatever_is_short_nothing_hangs_and_nothing_shown_is_lost(spawn: Spawner, left: int) -> None:
    sidecar = spawn()
    sidecar.run("before", chatId="c")
    sidecar.killed = True  # it may end, and then leaves a request without an answer
    starve(sidecar, left)
    text = LARGE if left > 50 * MB else "words " * 50_000
    sidecar.ask("prompt/send", chatId="c", promptId="p", text=text)
    asked = len(sidecar.frames)
    with contextlib.suppress(AssertionError):  # it may also wait, and then goes on when it is fed
        sidecar.wait_until(lambda: len(sidecar.frames) > asked + 20 or sidecar.is_gone, 4, "sign of life")
    reader = sidecar
    if sidecar.is_gone:
        assert sidecar.wait() in ENDS
        reader = spawn()
    else:
        feed(sidecar)
    assert reader.run("after", chatId="c")["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar, reader)
