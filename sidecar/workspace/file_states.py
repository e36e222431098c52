"""The files of a project at two moments, and what has changed between: for programs that write files themselves.

Bounded: of a file that is too large, and beyond all bounds, only the mark is remembered; its bytes before a change are
then unknown. Blocking; knows no ledger.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import msgspec

from ..model.failures import Failure
from ..model.files import ChangeKind
from ..text.surrogates import is_well_formed
from .ignore import Ignore
from .paths import Workspace
from .writing import digest

MAX_FILES = 20_000
"""Files of a project that are compared; listing them takes some 100 ms."""

MAX_FILE_BYTES = 1024 * 1024
MAX_BYTES = 32 * 1024 * 1024
"""Bytes that are remembered: of one file, and of all. Sources that people write are smaller."""

Mark = tuple[int, int, int, int]
"""What changes when a file is written: inode, size, and both times. No program can set the change time."""


class FileState(msgspec.Struct, frozen=True):
    """A file at a moment. `data` is None when it was too large to remember."""

    mark: Mark
    data: bytes | None


class OutsideChange(msgspec.Struct, frozen=True):
    """A file that is not as it was. None for bytes that there were not, or that are not `known`."""

    path: str
    kind: ChangeKind
    before: bytes | None
    after: bytes | None
    known: bool


FileStates = Mapping[str, FileState]
"""By path, relative to the project."""


def take_states(workspace: Workspace, last: FileStates, further: Iterable[str] = ()) -> FileStates:
    """The files that git would not ignore, and `further` ones; of those that are as in `last` nothing is read."""
    states: dict[str, FileState] = {}
    space = MAX_BYTES
    for path in _paths(workspace, further):
        mark = _mark(workspace, path)
        if mark is None or path in states:
            continue
        known = last.get(path)
        if known is not None and known.mark == mark:
            state = known
        else:
            size = mark[1]
            state = FileState(mark, _read(workspace, path) if size <= min(MAX_FILE_BYTES, space) else None)
        space -= len(state.data or b"")
        states[path] = state
        if len(states) >= MAX_FILES:
            break
    return states


def changes_between(before: FileStates, after: FileStates) -> list[OutsideChange]:
    """What has changed, by path. A file that was written with the same bytes has not."""
    found: list[OutsideChange] = []
    is_cut = len(before) >= MAX_FILES or len(after) >= MAX_FILES
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if (old is None or new is None) and is_cut:
            continue  # it may only have moved beyond the bound
        if old is None and new is not None:
            found.append(OutsideChange(path, "create", None, new.data, new.data is not None))
        elif new is None and old is not None:
            found.append(OutsideChange(path, "delete", old.data, None, old.data is not None))
        elif old is not None and new is not None and old.mark != new.mark:
            known = old.data is not None and new.data is not None
            if not known or old.data != new.data:
                found.append(OutsideChange(path, "modify", old.data, new.data, known))
    return found


def digest_of(data: bytes | None) -> str | None:
    return None if data is None else digest(data)


def _paths(workspace: Workspace, further: Iterable[str]) -> Iterable[str]:
    yield from further
    ignore = Ignore(workspace)
    for place, entries in workspace.walk():
        entries[:] = ignore.without_ignored(place, entries)
        for entry in entries:
            if entry.kind == "file" and is_well_formed(entry.name):
                yield "/".join((*place.parts, entry.name))


def _mark(workspace: Workspace, path: str) -> Mark | None:
    try:
        found = os.lstat(os.path.join(workspace.root, path))
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(workspace: Workspace, path: str) -> bytes | None:
    try:
        return workspace.read_bytes(path, MAX_FILE_BYTES)
    except Failure:
        return None  # gone, unreadable or a link: its bytes stay unknown
