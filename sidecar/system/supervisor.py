"""The process between us and one command: every descendant of the command stays beneath it, and ends with it.

It runs as a script, `supervisor.py LIFELINE STATUS WRAPPERS SCRATCH LIMITS COMMAND…`, with the standard library alone.
Orphaned descendants become its children (it is a subreaper), however often they forked and whatever they changed of
their session, environment or name. The supervisor holds one end of the pipe LIFELINE: when that closes, because the
time of the command is up or because the sidecar has died, it ends all descendants, and then itself. A living sidecar
writes a byte before; without it the supervisor deletes the folder SCRATCH (empty: none). LIMITS (empty: none) are two
numbers, PROCESSES,MEMORY: threads and processes together, and bytes; 0 is no limit. A command that exceeds one is
ended. It reports in lines on STATUS: `started PID`, `exceeded processes` or `exceeded memory`, `exit CODE`, and last
`left N`, the processes that a finished command had left behind. A wrapper (WRAPPERS is not 0) has STATUS open as
descriptor 8, and reports `confined 1` there when the command is about to start.

Without /proc (macOS) descendants cannot be found: there it ends the process group of the command, and processes that
have left that group survive. What an unconfined command starts through others (cron, a container daemon, a terminal
server) is not beneath the supervisor either; and when a command kills its supervisor, its processes are found only by
the marks that `process_tree` knows.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

TERM_WAIT_S = 0.2
"""Between SIGTERM and SIGKILL: enough to remove a lock file, too short to be noticed after a cancel."""

LAST_S = 10.0
"""After this, a process that even SIGKILL does not end (it hangs in the kernel, or is another user's) is abandoned."""

AGAIN_S = 0.01
"""Between two walks: a process that forks during the search is found by the next one."""

LOOK_S = 0.25
"""How often the limits are checked: in that time 2 cores fill some 0.5 GB, or start some 1,000 processes."""

LOOK_SHARE = 20
"""A check may take a twentieth of the interval, so that many processes on the machine cost little."""

WRAPPER_STATUS = 8
"""The descriptor on which a wrapper reports: of one digit, as a shell writes it."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class ProcessRow:
    """A living process, from its line in /proc. A plain class: its definition costs time at the start of every
    command.
    """

    __slots__ = ("group", "parent", "resident", "session", "threads")

    def __init__(self, parent: int, group: int, session: int, threads: int, resident: int) -> None:
        self.parent, self.group, self.session = parent, group, session
        self.threads, self.resident = threads, resident


def process_table() -> dict[int, ProcessRow]:
    """Return all living processes by pid; none without /proc."""
    rows: dict[int, ProcessRow] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return rows
    for name in names:
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The name of a process is in parentheses and may contain spaces and parentheses: only what follows
                # the last one has fixed fields.
                fields = file.read().rpartition(b")")[2].split()
                # The main thread of a process may be a zombie while others live on: only the count shows that.
                if fields[0] not in b"ZX" or int(fields[17]) > 1:
                    rows[int(name)] = ProcessRow(*(int(fields[at]) for at in (1, 2, 3, 17, 21)))
    return rows


def descendants(top: int, rows: dict[int, ProcessRow]) -> list[list[int]]:
    """Return the descendants of `top`, one list per generation."""
    children: dict[int, list[int]] = {}
    for pid, row in rows.items():
        children.setdefault(row.parent, []).append(pid)
    generations = []
    here = children.get(top, [])
    while here:
        generations.append(here)
        here = [child for pid in here for child in children.get(pid, [])]
    return generations


def send_signal(pids: Iterable[int], number: int) -> None:
    """Send a signal to each; one that has ended, or belongs to another user, is skipped."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def remove(folder: str) -> None:
    """Delete a folder with its contents; links are deleted as links, and what cannot be deleted stays."""
    waiting, found = [folder], []
    while waiting:
        top = waiting.pop()
        found.append(top)
        with suppress(OSError):
            os.chmod(top, 0o700)  # the writer may have closed it
            with os.scandir(top) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        os.unlink(entry.path)
    for top in reversed(found):
        with suppress(OSError):
            os.rmdir(top)


class Supervisor:
    """The first `wrappers` generations only wrap the command (a sandbox) and get no SIGTERM, which would kill it."""

    def __init__(self, status: int, wrappers: int, scratch: str, limits: str, command: list[str]) -> None:
        self._status = status
        self._wrappers = wrappers
        self._scratch = scratch
        self._processes, self._memory = map(int, limits.split(",")) if limits else (0, 0)
        self._wake = _wake_on_children()
        self._main = _start(command, status if wrappers else None)
        self._exited = False
        self._orphaned = False
        self._tell(f"started {self._main}")

    def watch(self, lifeline: int) -> None:
        """Return when the lifeline has closed, or is about to."""
        # Without limits it sleeps until a child or the lifeline wakes it: an idle command costs nothing.
        pause = LOOK_S if self._processes or self._memory else None
        while lifeline not in self._wait(lifeline, pause):
            self._reap()
            if pause is not None and not self._exited:
                began = time.monotonic()
                self._hold_to_limits()
                pause = max(LOOK_S, LOOK_SHARE * (time.monotonic() - began))
        # End of file without a byte: the sidecar died, so nobody else deletes the scratch folder.
        self._orphaned = not os.read(lifeline, 1)

    def _hold_to_limits(self) -> None:
        """End the command when it exceeds a limit. Killing the init process of a sandbox ends all processes in it at
        once, however fast they fork.
        """
        rows = process_table()
        generations = descendants(os.getpid(), rows)
        exceeded = self._exceeded_limit([(pid, rows[pid]) for pids in generations for pid in pids])
        if exceeded:
            self._tell(f"exceeded {exceeded}")
            self._signal(generations, signal.SIGKILL)

    def _exceeded_limit(self, found: list[tuple[int, ProcessRow]]) -> str | None:
        if self._processes and sum(row.threads for _, row in found) > self._processes + self._wrappers:
            return "processes"
        page = os.sysconf("SC_PAGESIZE")
        # Shared pages count for each process here: only when that exceeds the limit they are counted exactly.
        if self._memory and sum(row.resident for _, row in found) * page > self._memory:
            return "memory" if sum(map(_memory_of, (pid for pid, _ in found))) > self._memory else None
        return None

    def end(self) -> None:
        """End every descendant, and report how many a finished command had left."""
        self._reap()
        # Only what outlives a finished command is worth a report; those of an unfinished one are ended on
        # purpose.
        left = sum(map(len, descendants(os.getpid(), process_table()))) if self._exited else 0
        if not self._exited:
            self._ask_to_end()
        until = time.monotonic() + LAST_S
        # Again and again until no child is left: what forks between the search and the signal is found in the
        # next round.
        while self._reap() and time.monotonic() < until:
            self._signal(descendants(os.getpid(), process_table()), signal.SIGKILL)
            self._wait(None, AGAIN_S)
        if self._scratch and self._orphaned:
            remove(self._scratch)
        self._tell(f"left {left}")

    def _ask_to_end(self) -> None:
        until = time.monotonic() + TERM_WAIT_S
        self._signal(descendants(os.getpid(), process_table())[self._wrappers :], signal.SIGTERM)
        while self._reap() and (rest := until - time.monotonic()) > 0:
            self._wait(None, rest)

    def _signal(self, generations: list[list[int]], number: int) -> None:
        for pids in generations:
            send_signal(pids, number)
        # Without /proc nothing is found, and the process group is all there is. With wrappers in front of the
        # command a SIGTERM to the group would kill the sandbox before the command can react.
        if not generations and not self._exited and (number == signal.SIGKILL or not self._wrappers):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._main, number)

    def _reap(self) -> bool:
        """Reap ended children; return whether there are still others."""
        while True:
            try:
                # -1: orphans of the command are our children too, and stay zombies when nobody waits for them.
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
        # Drained at once: several signals may have written, and one pass handles all ended children.
        with suppress(BlockingIOError):
            while os.read(self._wake, 512):
                pass
        return ready

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # the reader has closed the pipe
            os.write(self._status, f"{line}\n".encode())


def main() -> None:
    lifeline, status, wrappers = map(int, sys.argv[1:4])
    for descriptor in (lifeline, status):
        # Or the command inherits them: it could report in our name, and take the byte of the lifeline.
        os.set_inheritable(descriptor, False)
    # Before the command starts: what it orphans in its first moment would otherwise go to init, out of
    # reach.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    keeper = Supervisor(status, wrappers, sys.argv[4], sys.argv[5], sys.argv[6:])
    # The output ends when the last process of the command has closed it; we must not hold it open.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A Ctrl-C in the terminal goes to the whole group. The supervisor must survive it, or nobody ends the
        # command's children.
        signal.signal(number, signal.SIG_IGN)
    keeper.watch(lifeline)
    keeper.end()


def _memory_of(pid: int) -> int:
    """Return the memory of a process in bytes: its own, and its share of common pages."""
    for name, field in (("smaps_rollup", b"Pss:"), ("status", b"RssAnon:")):
        with suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
            for line in file:
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
    return 0


def _offer_to_oom_killer() -> None:
    """When the machine runs out of memory, the kernel should kill a command, not the sidecar or the app."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _wake_on_children() -> int:
    """Return a descriptor that becomes readable when a child has ended."""
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    # An ignored SIGCHLD writes no wake-up byte; any Python handler makes it count.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wake


def _start(command: list[str], status: int | None) -> int:
    """Start the command in its own session; a wrapper gets `status` too. There are no threads here, so a plain fork
    is safe.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        # In case the supervisor itself is killed: then at least the command's first process ends.
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _offer_to_oom_killer()
        for number in (
            signal.SIGPIPE,
            signal.SIGXFSZ,
        ):  # Python ignores them, and exec would inherit that
            signal.signal(number, signal.SIG_DFL)
        if status is not None:
            os.dup2(status, WRAPPER_STATUS)
            os.set_inheritable(WRAPPER_STATUS, True)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be run: {error.strerror}\n".encode())
    finally:
        # Never back into the parent's code: exit handlers and buffers of the copy must not run twice.
        os._exit(127)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
