"""Finds FIFOs, devices and huge rule files where git and ripgrep expect small files: both would block on
them.

Checks only names; opens nothing. Blocking.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Callable

from ..model.failures import Refused

MAX_FOLDERS = 20_000
"""Folders per check, those near the top first; in a larger tree git's own time limit covers the rest."""

MAX_SECONDS = 1.0
"""Per check: on a slower file system the check would delay the diff more than it protects it."""

READ_IN_WORK_TREE = frozenset((".gitignore", ".gitattributes"))
"""What git reads in every folder of the work tree, besides files that are in its index."""

RULES = READ_IN_WORK_TREE | {"exclude"}
MAX_RULES_BYTES = 1024 * 1024
"""Of one rule file: git and ripgrep read it whole, and try each rule on each name."""

OWN_FILES = ("HEAD", "index", "config", "packed-refs", "shallow")


def git_refusal(reason: str, words: str) -> Refused:
    return Refused("denied", words, reason=reason)


def check_waits(top: str, own: str, common: str) -> None:
    """Refuse a repository in which git would wait for a FIFO or read a device."""
    until = time.monotonic() + MAX_SECONDS
    for path in dict.fromkeys(os.path.join(folder, name) for folder in (own, common) for name in OWN_FILES):
        if _waits(path):
            raise _blocking_file_refusal(path, top)
    for folder in ("refs", "objects"):
        if found := _find(os.path.join(common, folder), until, lambda name: True):
            raise _blocking_file_refusal(found, top)
    if found := _find(top, until, READ_IN_WORK_TREE.__contains__):
        raise _blocking_file_refusal(found, top)


def has_waiting_rules(root: str) -> bool:
    """Return whether a program that reads ignore files below `root`, as ripgrep does, would block on one of
    them."""
    if _waits(os.path.join(root, ".git/info/exclude")):
        return True
    return _find(root, time.monotonic() + MAX_SECONDS, READ_IN_WORK_TREE.__contains__) is not None


def _find(start: str, until: float, is_read: Callable[[str], bool]) -> str | None:
    """Return the first FIFO or device below `start`, nearest folders first, within the bounds."""
    # Breadth first: git meets what is near the top in every command.
    waiting = deque([start])
    seen = 0
    while waiting and seen < MAX_FOLDERS and time.monotonic() < until:
        folder = waiting.popleft()
        seen += 1
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != ".git":
                            waiting.append(entry.path)
                    elif is_read(entry.name) and _is_unfit(entry):
                        return entry.path
        except OSError:
            continue  # git cannot read it either
    return None


def _is_unfit(entry: os.DirEntry[str]) -> bool:
    """Check the size only of a file with rules, so that most entries cost no system call."""
    return (entry.name in READ_IN_WORK_TREE or not entry.is_file()) and _waits(entry.path)


def _waits(path: str) -> bool:
    """Return whether a path leads to a FIFO, a device or an oversized rule file. A socket cannot be opened at
    all."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    if os.path.basename(path) in RULES and found.st_size > MAX_RULES_BYTES:
        return True
    return stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)


def _blocking_file_refusal(path: str, top: str) -> Refused:
    shown = os.path.relpath(path, top)
    return git_refusal("kind", f"{shown} is a FIFO, a device or too large, and would block git: remove it")
