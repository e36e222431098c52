"""A process that gets no more memory: what is too large now is refused, the rest goes on, and nothing shown is lost."""

from __future__ import annotations

import contextlib
import re
import resource
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.blackbox.faults.wholeness import assert_nothing_lost
from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

MB = 1 << 20
LARGE = "x" * 2_000_000
CONTENT = [{"type": "text", "text": LARGE}] * 2
"""Within the limit of a prompt, and more than there is memory for."""
ENDS = (70, -signal.SIGSEGV)
"""How a process may end in which not even an error can be made: by itself, or in a C library that did not look."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of a running process: Linux only")


def starve(sidecar: Sidecar, left: int) -> None:
    """Leave the process so many bytes more than it has when it is at rest."""
    seen: list[tuple[float, int]] = []

    def is_at_rest() -> bool:
        """Return whether its memory has not grown for a second: a thread that starts late takes 8 MB."""
        now, size = time.monotonic(), data_size(sidecar)
        seen[:] = [*(look for look in seen if look[1] == size), (now, size)]
        return now - seen[0][0] > 1

    assert poll_until(is_at_rest, PATIENCE_S)
    most = data_size(sidecar) + left
    resource.prlimit(sidecar.pid, resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))


def data_size(sidecar: Sidecar) -> int:
    status = Path(f"/proc/{sidecar.pid}/status").read_text()
    found = re.search(r"VmData:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


def feed(sidecar: Sidecar) -> None:
    resource.prlimit(sidecar.pid, resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("left", [16 * MB, 24 * MB])
def test_what_there_is_no_memory_for_is_refused_and_the_rest_goes_on(spawn: Spawner, left: int) -> None:
    sidecar = spawn()
    sidecar.run("before", chatId="c")
    starve(sidecar, left)
    refused = sidecar.refused("prompt/send", chatId="c", promptId="large", content=CONTENT)
    assert (refused.code, refused.data["reason"], refused.data["retryable"]) == (-32015, "io", True)
    assert sidecar.run("meanwhile", chatId="c")["data"]["reason"] == "end_turn"
    assert len(sidecar.call("chat/history", chatId="c")["turns"]) == 2
    feed(sidecar)
    sent = sidecar.call("prompt/send", chatId="c", promptId="large", content=CONTENT)
    assert sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar)


def test_a_frame_that_there_is_no_memory_for_is_skipped_and_said(spawn: Spawner) -> None:
    sidecar = spawn()
    sidecar.run("before", chatId="c")
    starve(sidecar, 2 * MB)
    sidecar.killed = sidecar.referee.lenient = True  # the answer names no request: its id was skipped too
    sidecar.ask("prompt/send", chatId="c", promptId="large", content=CONTENT)
    sidecar.wait_until(lambda: any(reply["id"] is None for reply in sidecar.replies), PATIENCE_S, "an answer")
    (answer,) = [reply for reply in sidecar.replies if reply["id"] is None]
    assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (-32015, "io")
    feed(sidecar)
    assert sidecar.run("after", chatId="c")["data"]["reason"] == "end_turn"


@pytest.mark.sampled(1)
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
