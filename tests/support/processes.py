"""What the operating system knows of processes: who is alive, who descends, how much memory."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from pathlib import Path

MARK = "SIDECAR_TEST_MARK"
"""An environment variable that the harness plants: it finds descendants that were orphaned, too."""


def marked(mark: str) -> set[int]:
    """The live processes whose environment carries `mark`; zombies have none and do not count."""
    return with_environment(MARK, mark)


def with_environment(name: str, value: str) -> set[int]:
    needle = f"{name}={value}".encode()
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if needle in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def alive(pid: int) -> bool:
    """Whether `pid` runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def rss_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def wait_until_gone(pid: int, seconds: float) -> bool:
    """Whether a process that is not our child ends within `seconds`."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def poll_until(condition: Callable[[], bool], seconds: float, interval: float = 0.002) -> bool:
    """For what has no event to wait on: try `condition()` again and again, for at most `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(interval)
    return True


def with_words(*words: str) -> list[int]:
    """The live processes that were started with exactly these words."""
    needle = b"\0".join(word.encode() for word in words) + b"\0"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes() == needle and alive(int(folder.name)):
                found.append(int(folder.name))
        except OSError:
            continue
    return found
