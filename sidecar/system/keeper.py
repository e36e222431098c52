"""The process between us and one command: all that the command starts stays beneath it, and ends when it must.

It runs as a program of its own, `keeper.py LIFELINE STATUS WRAPPERS SCRATCH COMMAND…`, with the standard library alone.
Whoever loses its parent beneath it becomes its child (a subreaper), however often it forked and whatever it made of
its session, environment or name. The keeper holds one end of LIFELINE: when that closes, because the command's time
is up or because the sidecar is no more, it ends all that is beneath it, and then itself. A sidecar that lives writes a
byte before; without it the keeper deletes the folder SCRATCH (empty: there is none). It tells by lines on STATUS:
`started PID`, `exit CODE`, and last `left N`, the processes that a finished command had left behind.

Without /proc (macOS) nothing beneath can be found: there it ends the command's own process group, and what has left
that group lives on. What an unconfined command asks of others (cron, a container's daemon, a terminal's server) is not
beneath the keeper either; and a command that kills its keeper is found only by the marks that `children` knows.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

POLITE_S = 0.2
"""Between SIGTERM and SIGKILL: enough to remove a lock file, too short to be noticed after a cancel."""

LAST_S = 10.0
"""When a process that even SIGKILL does not end (one that hangs in the kernel, or another user's) is left to itself."""

AGAIN_S = 0.01
"""Between two walks: a process that forks while it is looked for is met by the next one."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Row:
    """A living process, from its line in /proc. A plain class: its definition costs the start of every command."""

    __slots__ = ("group", "parent", "session")

    def __init__(self, parent: int, group: int, session: int) -> None:
        self.parent, self.group, self.session = parent, group, session


def table() -> dict[int, Row]:
    """All living processes by pid; none where there is no /proc."""
    rows: dict[int, Row] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return rows
    for name in names:
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                # The first thread of a process may be a zombie while others live on: only the count tells.
                if fields[0] not in b"ZX" or int(fields[17]) > 1:
                    rows[int(name)] = Row(int(fields[1]), int(fields[2]), int(fields[3]))
    return rows


def beneath(top: int, rows: dict[int, Row]) -> list[list[int]]:
    """The descendants of `top`, one list a generation."""
    children: dict[int, list[int]] = {}
    for pid, row in rows.items():
        children.setdefault(row.parent, []).append(pid)
    generations = []
    here = children.get(top, [])
    while here:
        generations.append(here)
        here = [child for pid in here for child in children.get(pid, [])]
    return generations


def send(pids: Iterable[int], number: int) -> None:
    """A signal to each; one that is gone, or not ours to signal, is passed over."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def remove(folder: str) -> None:
    """Delete a folder with all that is in it; links go as links, and what cannot be deleted stays."""
    waiting, found = [folder], []
    while waiting:
        top = waiting.pop()
        found.append(top)
        with suppress(OSError):
            os.chmod(top, 0o700)  # whoever wrote there may have closed it
            with os.scandir(top) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        os.unlink(entry.path)
    for top in reversed(found):
        with suppress(OSError):
            os.rmdir(top)


class Keeper:
    """`wrappers` generations from the command on only wrap it (a sandbox): a SIGTERM to them would be no polite one."""

    def __init__(self, status: int, wrappers: int, scratch: str, command: list[str]) -> None:
        self._status = status
        self._wrappers = wrappers
        self._scratch = scratch
        self._wake = _wake_on_children()
        self._main = _start(command)
        self._exited = False
        self._orphaned = False
        self._tell(f"started {self._main}")

    def watch(self, lifeline: int) -> None:
        """Return when the lifeline has closed, or is about to."""
        while lifeline not in self._wait(lifeline, None):
            self._reap()
        self._orphaned = not os.read(lifeline, 1)

    def end(self) -> None:
        """End everything that is still beneath, and tell how many a finished command had left."""
        self._reap()
        left = sum(map(len, beneath(os.getpid(), table()))) if self._exited else 0
        if not self._exited:
            self._ask_to_end()
        until = time.monotonic() + LAST_S
        while self._reap() and time.monotonic() < until:
            self._signal(beneath(os.getpid(), table()), signal.SIGKILL)
            self._wait(None, AGAIN_S)
        if self._scratch and self._orphaned:
            remove(self._scratch)
        self._tell(f"left {left}")

    def _ask_to_end(self) -> None:
        until = time.monotonic() + POLITE_S
        self._signal(beneath(os.getpid(), table())[self._wrappers :], signal.SIGTERM)
        while self._reap() and (rest := until - time.monotonic()) > 0:
            self._wait(None, rest)

    def _signal(self, generations: list[list[int]], number: int) -> None:
        for pids in generations:
            send(pids, number)
        if not generations and not self._exited and (number == signal.SIGKILL or not self._wrappers):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._main, number)

    def _reap(self) -> bool:
        """Whether there are children still, after those that ended have been taken leave of."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            if pid == self._main:
                self._exited = True
                self._tell(f"exit {os.waitstatus_to_exitcode(status)}")

    def _wait(self, lifeline: int | None, seconds: float | None) -> list[int]:
        watched = [self._wake] if lifeline is None else [self._wake, lifeline]
        ready = select.select(watched, [], [], seconds)[0]
        with suppress(BlockingIOError):
            while os.read(self._wake, 512):
                pass
        return ready

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # nobody listens any more
            os.write(self._status, f"{line}\n".encode())


def main() -> None:
    lifeline, status, wrappers = map(int, sys.argv[1:4])
    for descriptor in (lifeline, status):
        os.set_inheritable(descriptor, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    keeper = Keeper(status, wrappers, sys.argv[4], sys.argv[5:])
    # The output ends when the last of the command's processes has closed it; we must not hold it open.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    keeper.watch(lifeline)
    keeper.end()


def _wake_on_children() -> int:
    """A descriptor that is readable when a child has ended."""
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wake


def _start(command: list[str]) -> int:
    """Start the command in a session of its own. There are no threads here, so a plain fork is safe."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (
            signal.SIGPIPE,
            signal.SIGXFSZ,
        ):  # Python ignores them, and an exec would hand that down
            signal.signal(number, signal.SIG_DFL)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be run: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
