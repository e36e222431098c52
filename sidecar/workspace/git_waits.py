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
from ..system.safe_open import FileRefused, read_regular

MAX_FOLDERS = 20_000
"""Folders per check, those near the top first; in a larger tree git's own time limit covers the rest."""

MAX_SECONDS = 1.0
"""Per check: on a slower file system the check would delay the diff more than it protects it."""

READ_IN_WORK_TREE = frozenset((".gitignore", ".gitattributes"))
"""What git reads in every folder of the work tree, besides files that are in its index."""

READ_BY_RIPGREP = frozenset((".gitignore", ".ignore", ".rgignore"))
"""What ripgrep opens in every folder and in all folders above, whatever it should ignore."""

RULES = READ_IN_WORK_TREE | READ_BY_RIPGREP | {"exclude"}
MAX_RULES_BYTES = 1024 * 1024
"""Of one rule file: git and ripgrep read it whole, and try each rule on each name."""

MAX_POINTER_BYTES = 4096
"""Of a `.git` file, and of a `commondir`: each holds one path."""

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
    """Return whether ripgrep, which reads ignore files below `root` and above it, would block on one of them."""
    folder = os.path.abspath(root)
    while True:
        names = (*READ_BY_RIPGREP, ".git/info/exclude")
        if any(_waits(os.path.join(folder, name)) for name in names) or _is_repository_waiting(folder):
            return True
        if folder == (folder := os.path.dirname(folder)):
            break
    until = time.monotonic() + MAX_SECONDS
    return _find(root, until, READ_BY_RIPGREP.__contains__, _is_repository_waiting) is not None


def _is_repository_waiting(top: str) -> bool:
    """Return whether the `.git` of this folder, a folder or a file that names one, has an exclude file that blocks."""
    own = os.path.join(top, ".git")
    if not os.path.isdir(own):
        own = _pointed_path(top, ".git", "gitdir:")
    common = _pointed_path(own, "commondir")
    return any(
        _waits(os.path.join(own, name)) or _waits(os.path.join(common, name))
        for name in ("commondir", "info/exclude")
    )


def _pointed_path(folder: str, name: str, prefix: str = "") -> str:
    """Return the path that a file names, as git writes it: relative to its folder; the folder if it names none."""
    try:
        text = read_regular(os.path.join(folder, name), MAX_POINTER_BYTES).decode("utf-8", "surrogateescape")
    except FileRefused:
        return folder
    return os.path.join(folder, text.removeprefix(prefix).strip().replace("\0", ""))


def _find(
    start: str,
    until: float,
    is_read: Callable[[str], bool],
    is_waiting: Callable[[str], bool] | None = None,
) -> str | None:
    """Return the first FIFO or device below `start`, nearest folders first, within the bounds. `is_waiting` is asked
    about each folder with a `.git`.
    """
    # Breadth first: git meets what is near the top in every command.
    waiting = deque([start])
    seen = 0
    while waiting and seen < MAX_FOLDERS and time.monotonic() < until:
        folder = waiting.popleft()
        seen += 1
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name == ".git" and is_waiting and is_waiting(folder):
                        return entry.path
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
    return (entry.name in RULES or not entry.is_file()) and _waits(entry.path)


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
