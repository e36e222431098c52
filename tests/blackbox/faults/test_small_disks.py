"""Disks without room, without inodes, with limits: typed errors, ends that are kept, and writes without a restart."""

from __future__ import annotations

import base64
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.faults.disks import KINDS, fill, mounted, remount, unable
from tests.blackbox.faults.wholeness import assert_nothing_lost
from tests.support.patience import PATIENCE_S
from tests.support.scripts import write_script
from tests.support.sidecar import Refusal, Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

RESERVE = "sidecar.db-reserve"
mounts = pytest.mark.skipif(bool(unable()), reason=unable() or "-")


@pytest.fixture(params=KINDS)
def disk(request: pytest.FixtureRequest, spawn: Spawner) -> Iterator[Path]:
    with mounted(spawn.folder, request.param) as place:
        spawn.data_dir = place / "data"
        yield place
        for sidecar in spawn.sidecars:
            sidecar.close_stdin()
            sidecar.wait()


def states(sidecar: Sidecar) -> list[str]:
    return [status["data"]["state"] for status in sidecar.statuses("storage")]


def wait_state(sidecar: Sidecar, state: str, after: int = 0) -> None:
    sidecar.wait_until(lambda: state in states(sidecar)[after:], PATIENCE_S, f"storage {state}")


def refusal(sidecar: Sidecar, chat: str) -> Refusal:
    return sidecar.refused("prompt/send", chatId=chat, promptId=f"p-{chat}", text="no room")


@pytest.mark.slow
@mounts
def test_a_full_disk_ends_the_turn_by_the_reserve_and_is_written_again_when_there_is_room(
    spawn: Spawner, disk: Path
) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sidecar.run("before", chatId="c")
    reserve = spawn.data_dir / RESERVE
    assert 0 < reserve.stat().st_size <= 256 * 1024
    sent = sidecar.say("slow", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    fill(disk / "ballast")
    end = fill_by_talk(sidecar, sent)
    assert (end["data"]["reason"], end["data"]["error"]["data"]["reason"]) == ("error", "full")
    assert not reserve.exists()  # given up, so that this end could be kept
    wait_state(sidecar, "full")
    refused = refusal(sidecar, "other")
    assert (refused.code, refused.data["reason"], refused.data["action"]) == (-32015, "full", "free_disk")
    assert sidecar.call("chat/history", chatId="c")["turns"][-1]["status"] == "failed"
    (disk / "ballast").unlink()
    wait_state(sidecar, "ready", after=states(sidecar).index("full"))
    assert sidecar.run("after", chatId="c")["data"]["reason"] == "end_turn"
    assert reserve.exists()
    assert_nothing_lost(sidecar)


def fill_by_talk(sidecar: Sidecar, sent: Json, chat: str = "c") -> Json:
    """The end of the turn that met the full disk. The WAL has some room of its own, so more turns may be needed."""
    end = sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    for _ in range(400):
        if end["data"]["reason"] == "error":
            return end
        end = sidecar.run("x" * 30_000, chatId=chat, overrides={"model": "echo:"})
    raise AssertionError("the disk is full, and nothing failed")


@mounts
def test_a_readonly_disk_is_read_and_written_again_when_it_can_be(spawn: Spawner) -> None:
    with mounted(spawn.folder, "ext4-4k") as place:
        spawn.data_dir = place / "data"
        first = spawn()
        first.run("before", chatId="c")
        first.close_stdin()
        first.wait()
        remount(place, "ro")
        sidecar = spawn()
        opened = sidecar.call("chat/open", chatId="c", ifMissing="fail")
        assert (opened["status"], len(opened["turns"])) == ("resumed", 1)
        refused = refusal(sidecar, "c")
        assert (refused.code, refused.data["reason"]) == (-32015, "readonly")
        wait_state(sidecar, "readonly")
        remount(place, "rw")
        wait_state(sidecar, "ready", after=states(sidecar).index("readonly") + 1)
        assert sidecar.run("after", chatId="c")["data"]["reason"] == "end_turn"
        sidecar.close_stdin()
        sidecar.wait()


@mounts
def test_no_inodes_left_is_a_full_disk(spawn: Spawner) -> None:
    with mounted(spawn.folder, "tmpfs", inodes=24) as place:
        spawn.data_dir = place / "data"
        names = []
        try:
            for number in range(100):
                (place / f"file {number}").touch()
                names.append(place / f"file {number}")
        except OSError:
            pass
        sidecar = spawn()
        answer = sidecar.answer(sidecar.ask("chat/open", chatId="c"))
        assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (-32015, "full")
        for name in names:
            name.unlink()
        sidecar.wait_until(lambda: opened(sidecar), PATIENCE_S, "a chat")
        assert sidecar.run("hello", chatId="c")["data"]["reason"] == "end_turn"
        sidecar.close_stdin()
        sidecar.wait()


def opened(sidecar: Sidecar) -> bool:
    """Ask once more, without waiting here: the opening is tried again after a second."""
    answered = [reply for reply in sidecar.replies if reply.get("result", {}).get("status")]
    if not answered:
        sidecar.ask("chat/open", chatId="c")
    return bool(answered)


def limited(spawn: Spawner, name: str, limit: int) -> None:
    """The program, with a limit of its own set before it starts."""
    setter = (
        f"import os, resource, sys; n = resource.{name};"
        f" resource.setrlimit(n, ({limit}, resource.getrlimit(n)[1])); os.execv(sys.argv[1], sys.argv[1:])"
    )
    spawn.command = [sys.executable, "-c", setter, *spawn.command]


def test_a_limit_on_file_sizes_is_told_and_passes(spawn: Spawner) -> None:
    limited(spawn, "RLIMIT_FSIZE", 900_000)
    sidecar = spawn()
    sidecar.run("before", chatId="c")
    for number in range(60):
        data = base64.b64encode(os.urandom(20_000)).decode()
        answer = sidecar.answer(sidecar.ask("blob/put", data=data, mimeType="text/plain"))
        if "error" in answer:
            assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (-32015, "io"), number
            break
    else:
        raise AssertionError("no limit was met")
    assert sidecar.call("chat/history", chatId="c", limit=1)["turns"]
    resource.prlimit(sidecar.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert sidecar.run("after", chatId="c")["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar)


@pytest.mark.slow
@pytest.mark.parametrize("handles", [16, 12])
def test_without_file_handles_it_says_so_and_works_when_there_are_some(spawn: Spawner, handles: int) -> None:
    limited(spawn, "RLIMIT_NOFILE", handles)
    sidecar = spawn()
    answer = sidecar.answer(sidecar.ask("chat/open", chatId="c"))
    if "error" in answer:
        assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (-32015, "io")
    resource.prlimit(sidecar.pid, resource.RLIMIT_NOFILE, (256, 256))
    sidecar.wait_until(lambda: opened(sidecar), PATIENCE_S, "a chat")
    assert sidecar.run("hello", chatId="c")["data"]["reason"] == "end_turn"
