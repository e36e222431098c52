"""Finds session files in a program's folder. Follows no links below it, and opens nothing."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator

from .base import ForeignChat, Found, FoundChat, Problem

MAX_FILES = 200_000
"""Looked at in one folder: more is not what a program's sessions are."""

MAX_LEVELS = 8
"""Of folders below the one that is searched."""


def home_folder(variable: str | None, default: str) -> str:
    """The folder where a program keeps its data: the one that its variable names, or one in the home."""
    chosen = os.environ.get(variable) if variable else None
    return chosen or os.path.join(os.path.expanduser("~"), default)


def session_files(
    root: str,
    suffix: str,
    chat_id: Callable[[str], str],
    read: Callable[[str], ForeignChat],
    accept: Callable[[str], bool] = lambda file: True,
) -> Iterator[Found]:
    """Each file below `root` that may be a session, or `root` itself when it is a file."""
    for file, found in walk(root, suffix):
        if isinstance(found, str):
            yield Problem(file, None, found)
        elif accept(file):
            yield found_file(file, found, chat_id(file), lambda file=file: read(file))  # type: ignore[misc]


def found_file(
    file: str, state: os.stat_result, id: str, read: Callable[[], ForeignChat], more: str = ""
) -> FoundChat:
    """The chat in a file; `more` is what its mark depends on besides the file."""
    return FoundChat(
        id=id,
        file=file,
        mark=mark_of(state.st_size, state.st_mtime_ns, more),
        size=state.st_size,
        updated_at=state.st_mtime_ns // 1_000_000,
        read=read,
    )


def mark_of(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode(errors="replace")).hexdigest()[:32]


def walk(root: str, suffix: str) -> Iterator[tuple[str, os.stat_result | str]]:
    """The files below a folder with this ending, sorted by name, or why one is not read."""
    try:
        state = os.stat(root)
    except (OSError, ValueError) as error:
        yield root, getattr(error, "strerror", None) or str(error)
        return
    if not stat.S_ISDIR(state.st_mode):
        yield root, state
        return
    seen = 0
    for file, entry in _entries(root, MAX_LEVELS):
        is_folder = isinstance(entry, str) and os.path.isdir(file)  # one that is not searched is named
        if not (file.endswith(suffix) or is_folder):
            continue
        seen += 1
        if seen > MAX_FILES:
            yield root, f"it has more than {MAX_FILES} files; the others are left out"
            return
        yield file, entry


def _entries(folder: str, levels: int) -> Iterator[tuple[str, os.stat_result | str]]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        yield folder, error.strerror or str(error)
        return
    for entry in entries:
        try:
            if entry.is_symlink():
                yield entry.path, "it is a link, which is not followed"
            elif entry.is_dir(follow_symlinks=False):
                if levels:
                    yield from _entries(entry.path, levels - 1)
            else:
                yield entry.path, entry.stat(follow_symlinks=False)
        except OSError as error:
            yield entry.path, error.strerror or str(error)
