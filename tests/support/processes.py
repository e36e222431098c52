"""What the operating system knows of processes: who is alive, who descends, how much memory."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MARK = "SIDECAR_TEST_MARK"
"""An environment variable that the harness plants: it finds descendants that were orphaned, too."""


def pids_with_mark(mark: str) -> set[int]:
    """The live processes whose environment carries `mark`; zombies have none and do not count."""
    return pids_with_variable(MARK, mark)


def pids_with_variable(name: str, value: str) -> set[int]:
    needle = f"{name}={value}".encode()
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if needle in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def is_running(pid: int) -> bool:
    """Whether `pid` runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def rss_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used: what other work on the machine delays does not count."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_gone(pid: int, seconds: float) -> bool:
    """Whether a process that is not our child ends within `seconds`.

    What it waits for a processor meanwhile does not count: other work on the machine is not its fault.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    left, queued = seconds, queued_seconds(pid)
    try:
        while left > 0:
            if select.select([handle], [], [], left)[0]:
                return True
            before, queued = queued, queued_seconds(pid)
            left = queued - before
        return False
    finally:
        os.close(handle)


class Stopwatch:
    """Measures processes that live from now on; what they wait for a processor does not count."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self._began = self._now()

    def seconds(self) -> float:
        return self._now() - self._began

    def _now(self) -> float:
        return time.monotonic() - sum(map(queued_seconds, self._pids))


@contextlib.contextmanager
def within(seconds: float, *pids: int) -> Iterator[None]:
    """What is done inside takes at most so long; what this process and those wait for a processor does not count."""
    watch = Stopwatch(os.getpid(), *pids)
    yield
    assert watch.seconds() <= seconds


def queued_seconds(pid: int) -> float:
    """How long the threads of a process have waited for a processor; 0 where the system does not tell."""
    waited = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            waited += int(task.read_text().split()[1])
    return waited / 1e9


def poll_until(condition: Callable[[], bool], seconds: float, interval: float = 0.002) -> bool:
    """For what has no event to wait on: try `condition()` again and again, for at most `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(interval)
    return True


def pids_with_arguments(*words: str) -> list[int]:
    """The live processes that were started with exactly these words."""
    needle = b"\0".join(word.encode() for word in words) + b"\0"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes() == needle and is_running(int(folder.name)):
                found.append(int(folder.name))
        except OSError:
            continue
    return found
