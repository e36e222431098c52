"""The disk is shut down without writing back what is in its caches, as power loss does: nothing acknowledged is lost.

An ext4 file system on a loop device, told by ioctl to stop and not to flush its log. The control is a twin that commits
with `synchronous=NORMAL`: it must lose something, or the disk was none that can tell.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.faults.disks import unable
from tests.blackbox.mutants.patching import Mutant, environment, source
from tests.support.patience import PATIENCE_S
from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.verdict import journal_violations, missing_events
from tests.support.wire import Json

ROUNDS = int(os.environ.get("SIDECAR_POWERLOSS_ROUNDS", "2"))
SEED = int(os.environ.get("SIDECAR_POWERLOSS_SEED", "3"))
CONTROL_ROUNDS = 5
"""The first loss is enough; a twin that loses nothing in so many was not put to the test."""

SHUT_DOWN = 0x8004587D
NO_LOG_FLUSH = 2

NORMAL = Mutant(
    "commits with NORMAL",
    "sidecar/store/engine/connection.py",
    '    db.execute("PRAGMA synchronous = FULL")\n',
    '    db.execute("PRAGMA synchronous = NORMAL")\n',
    "tests/blackbox/faults/test_power_loss.py",
    needs_root=True,
)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(unable()), reason=unable() or "-")]


class Disk:
    """An ext4 file system in a file."""

    def __init__(self, folder: Path) -> None:
        self.image, self.place = folder / "disk.img", folder / "disk"
        self.place.mkdir()
        with self.image.open("wb") as file:
            file.truncate(64 * 1024 * 1024)
        _run("mkfs.ext4", "-q", "-F", str(self.image))
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self.image), str(self.place))

    def lose_power(self) -> None:
        fd = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUT_DOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def power_on(self) -> None:
        """Mount it again: what was not written back is gone, and the log is replayed."""
        end = time.monotonic() + 30
        while True:
            _run("umount", str(self.place))
            self.mount()
            if not self._is_down():
                return
            # A sandbox that began meanwhile, of whatever program, has the mount too until it ends.
            assert time.monotonic() < end, "the file system is held by another mount namespace"
            time.sleep(0.1)

    def _is_down(self) -> bool:
        lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        return any("shutdown" in line[3].split(",") for line in lines if line[1] == str(self.place))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def disk(spawn: Spawner) -> Iterator[Disk]:
    made = Disk(spawn.folder)
    spawn.data_dir = made.place / "data"
    try:
        yield made
    finally:
        for sidecar in spawn.sidecars:
            sidecar.close_stdin()
            sidecar.wait()
        subprocess.run(["umount", "-l", str(made.place)], check=False, capture_output=True)


def lose(sidecar: Sidecar, disk: Disk, rng: random.Random) -> dict[str, list[Json]]:
    """Let two chats talk, and take the power away after so many frames; what had been shown until then."""
    for chat in ("a", "b"):
        text = rng.choice(["slow", "hello", "words " * 200])
        sidecar.ask("prompt/send", chatId=chat, promptId=f"{chat}{rng.random()}", text=text)
    wanted = len(sidecar.frames) + rng.randint(2, 40)
    sidecar.wait_until(lambda: len(sidecar.frames) >= wanted or idle(sidecar), PATIENCE_S, "frames")
    shown = sidecar.seen()  # a disk that is going down may still say yes to who asks at that moment
    disk.lose_power()
    sidecar.kill()
    disk.power_on()
    return shown


def idle(sidecar: Sidecar) -> bool:
    ends = [e for events in sidecar.seen().values() for e in events if e["type"] == "turn.ended"]
    return len(ends) >= 2


def lost_after(shown: dict[str, list[Json]], sidecar: Sidecar) -> list[str]:
    """What was shown and is not found again."""
    lost = []
    for session, events in shown.items():
        answer = sidecar.answer(sidecar.ask("chat/open", sessionId=session, ifMissing="fail"))
        if "error" in answer:
            lost.append(f"{session} is gone: {answer['error']['message']}")
            continue
        after = min(event["seq"] for event in events) - 1
        epoch = answer["result"]["epoch"]
        journal = sidecar.journal(session, after, epoch) if epoch == events[0]["epoch"] else []
        lost += missing_events({session: events}, {session: journal})
    return lost


def test_power_loss_loses_nothing_that_was_shown(spawn: Spawner, disk: Disk) -> None:
    rng = random.Random(SEED)
    model = write_script(spawn.folder)
    sidecar = spawn(model=model)
    frames = 0
    for number in range(ROUNDS):
        shown = lose(sidecar, disk, rng)
        frames += sum(map(len, shown.values()))
        sidecar.dispose()
        spawn.sidecars.remove(sidecar)
        sidecar = spawn(model=model)
        assert lost_after(shown, sidecar) == [], number
    for chat in ("a", "b"):
        assert sidecar.run("hello", chatId=chat)["data"]["reason"] == "end_turn"
    sessions = [chat["sessionId"] for chat in sidecar.call("chat/list")["items"]]
    journals = {session: sidecar.journal(session) for session in sessions}
    assert [rule for session in journals for rule in journal_violations(session, journals[session])] == []
    figures = {"power losses": ROUNDS, "frames of events shown": frames, "lost": 0}
    sys.stderr.write(f"power loss: {json.dumps(figures)}\n")


def test_the_twin_that_does_not_wait_for_the_disk_loses_something(spawn: Spawner, disk: Disk) -> None:
    rng = random.Random(SEED)
    twin = environment(source(spawn.folder, NORMAL, whole=False))
    model = write_script(spawn.folder)
    sidecar = spawn(model=model, env=twin)
    for number in range(CONTROL_ROUNDS):
        shown = lose(sidecar, disk, rng)
        sidecar = spawn(model=model, env=twin)
        if lost := lost_after(shown, sidecar):
            figures = {"power losses": number + 1, "lost": len(lost)}
            sys.stderr.write(f"power loss, the control: {json.dumps(figures)}\n")
            return
    raise AssertionError("void: the control lost nothing, so this disk cannot tell")
