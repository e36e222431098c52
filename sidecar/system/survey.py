"""Scan a project before and after a command: for files through which other programs would run code later.

The caller decides which names are watched. One bounded walk also finds the repositories in the project, whose hooks
the sandbox makes read-only, and sockets, which it covers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from . import trusted_files
from .lazy import lazy_module

if TYPE_CHECKING:
    from . import git_folders
else:
    git_folders = lazy_module("sidecar.system.git_folders")

MAX_ENTRIES = 30_000
"""Entries that are scanned: some 50 ms. Folders near the top come first, so only deep ones are missed."""

MAX_WATCHED = 300
"""Files of one watched folder that are compared."""

MAX_REPOSITORIES = 100
"""Nested repositories that are scanned, and protected: each takes some mounts."""

_WAITING = ("rebase-merge/git-rebase-todo", "rebase-apply/git-rebase-todo")
"""Steps that `git rebase --continue` takes, programs among them. Each step changes them: only their creation counts."""

_SKIPPED = frozenset(("node_modules", ".venv", "venv", "__pycache__", "target", ".tox", ".mypy_cache"))
"""Folders with many files that are not entered: files planted there take effect only for whoever works there."""

Mark = tuple[object, ...]
"""What changes when a file is replaced or written: its inode, size and times. No program can set the change time."""


class FolderSurvey(msgspec.Struct, frozen=True):
    """By relative path: the marks of watched files and folders. `repositories` are folders that hold a `.git`, `bare`
    those that are a repository themselves.
    """

    watched: dict[str, Mark]
    repositories: tuple[str, ...]
    bare: tuple[str, ...]
    sockets: tuple[str, ...]


def survey(project: str, is_watched: Callable[[str], bool]) -> FolderSurvey:
    """Scan a project; `is_watched` judges a name without its folder. Blocking."""
    watched: dict[str, Mark] = {}
    repositories: list[str] = []
    bare: list[str] = []
    sockets: list[str] = []
    for entry in _entries(project):
        name = entry.name
        path = os.path.relpath(entry.path, project)
        if name == ".git" and len(repositories) < MAX_REPOSITORIES:
            repositories.append(os.path.dirname(entry.path))
            watched.update(_git_marks(path, entry.path))
        elif name == "HEAD" and len(bare) < MAX_REPOSITORIES and _is_bare(os.path.dirname(entry.path)):
            bare.append(os.path.dirname(entry.path))
            watched.update(_git_marks(os.path.dirname(path) or ".", bare[-1]))
        elif is_watched(name):
            if not (path in trusted_files.NAMES and _is_mount_point(entry.path)):
                watched[path] = _mark(entry.path)
        elif _is_special(entry):
            sockets.append(entry.path)
    gits = [*(f"{folder}/.git" for folder in repositories), *bare]
    watched.update(_named_marks(gits, project))
    return FolderSurvey(watched, tuple(repositories), tuple(bare), tuple(sockets))


def compare(before: FolderSurvey, after: FolderSurvey) -> tuple[list[str], list[str]]:
    """Return the watched paths that were created, and those that were changed."""
    created = sorted(after.watched.keys() - before.watched.keys())
    known = before.watched.keys() & after.watched.keys()
    return created, sorted(path for path in known if before.watched[path] != after.watched[path])


def _entries(project: str) -> Iterator[os.DirEntry[str]]:
    """Walk breadth first, so that the limit cuts off what is deep."""
    waiting = [project]
    left = MAX_ENTRIES
    # The list grows during the loop.
    for folder in waiting:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return
                # Of git's own folder only its top: its sockets, not its thousands of objects.
                enters = os.path.basename(folder) != ".git" and entry.name not in _SKIPPED
                if enters and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                yield entry


def _is_empty(folder: str) -> bool:
    """Return whether it is an empty folder, such as the mount point of the sandbox for missing hooks."""
    try:
        return not os.listdir(folder)
    except OSError:
        return False


def _is_mount_point(path: str) -> bool:
    """Return whether it may be one of a sandbox that runs at the same time: an empty folder, or gone since it was
    listed. Nothing in it steers a program.
    """
    return not os.path.lexists(path) or (_is_empty(path) and not os.path.islink(path))


def _is_bare(folder: str) -> bool:
    """Return whether git takes this folder for a repository, though it is not called `.git`."""
    if os.path.basename(folder) == ".git":
        return False
    try:
        return git_folders.is_git_folder(os.listdir(folder))
    except OSError:
        return False


def _named_marks(gits: list[str], project: str) -> Iterator[tuple[str, Mark]]:
    """Return the marks of the project's files that git's hooks and configuration lead to."""
    for git in gits:
        for _, target in git_folders.links(git):
            if target.startswith(f"{project}/") and os.path.lexists(target):
                yield os.path.relpath(target, project), _mark(target)


def _git_marks(path: str, real: str) -> Iterator[tuple[str, Mark]]:
    """Return the marks of git's own folder: that it exists, and what makes git run programs; a file in its place as
    it is.
    """
    if os.path.islink(real) or not os.path.isdir(real):
        yield path, _file_mark(real)
        return
    yield path, ("folder",)
    for name in git_folders.GIT_NAMES:
        part = os.path.join(real, name)
        if os.path.lexists(part) and not (name == "hooks" and _is_empty(part)):
            # Git changes the folders of submodules whenever it works there: only their creation counts.
            yield f"{path}/{name}", ("folder",) if name == "modules" else _mark(part)
    rest = [
        os.path.join(tree, name)
        for tree in git_folders.work_trees(real)
        for name in git_folders.WORK_TREE_NAMES
    ]
    for part in (*rest, *(os.path.join(real, name) for name in _WAITING)):
        if os.path.lexists(part):
            yield f"{path}/{os.path.relpath(part, real)}", ("file",) if part not in rest else _file_mark(part)


def _mark(path: str) -> Mark:
    """Return the marks of a folder: those of all files beneath it."""
    if os.path.islink(path) or not os.path.isdir(path):
        return _file_mark(path)
    marks: list[object] = []
    for folder, names, files in os.walk(path):
        names.sort()
        for name in sorted(files):
            if not name.endswith(".sample"):
                marks.append(
                    (os.path.relpath(os.path.join(folder, name), path), _file_mark(f"{folder}/{name}"))
                )
            if len(marks) >= MAX_WATCHED:
                return tuple(marks)
    return tuple(marks)


def _file_mark(path: str) -> Mark:
    try:
        found = os.lstat(path)
    except OSError:
        return ("gone",)
    return (found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _is_special(entry: os.DirEntry[str]) -> bool:
    """Return whether it is neither a file, a folder nor a link; by the listing itself, without a stat."""
    return not (
        entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False) or entry.is_symlink()
    )
