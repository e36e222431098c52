"""What the machine says: memory of a process and its children, load, and whether it is quiet. Linux only."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path


def tree(roots: list[int]) -> list[int]:
    """The processes and all that descend from them."""
    found, children = list(roots), _children()
    for pid in found:
        found += [child for child in children.get(pid, []) if child not in found]
    return found


def rss_mb(roots: list[int]) -> float:
    """Resident memory of the whole tree."""
    return sum(_rollup(pid, "Rss:") for pid in tree(roots)) / 1024


def load() -> str:
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def wait_until_quiet(seconds: float = 1.0, busy_below: float = 0.35) -> None:
    """Give other work a moment to end; go on in any case."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        total, idle = _ticks()
        time.sleep(0.1)
        later, later_idle = _ticks()
        if 1 - (later_idle - idle) / max(1, later - total) < busy_below:
            return


def description() -> str:
    cores = os.cpu_count()
    return f"{platform.system()} {platform.machine()}, {cores} cores, Python {platform.python_version()}"


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        parent = int(stat.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(int(folder.name))
    return children


def _rollup(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(field))


def _ticks() -> tuple[int, int]:
    with Path("/proc/stat").open() as stat:
        figures = [int(figure) for figure in stat.readline().split()[1:9]]
    return sum(figures), figures[3] + figures[4]
