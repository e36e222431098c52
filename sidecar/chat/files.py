"""What a person does with a chat's open files: open, close, pin, list. The set itself is `workspace/open_files`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import anyio.to_thread
import msgspec

from ..model.events import NewEvent
from ..model.failures import Failure, Refused, invalid
from ..model.files import FileState, OpenFile
from ..tools.base import Wrong
from ..tools.glob import SECONDS, beneath, choice, walk
from ..workspace.globs import alternatives, parsed
from ..workspace.open_files import OpenFiles
from ..workspace.paths import Workspace
from .running import now
from .session import Session

MAX_MATCHED = 1000
"""Files of a pattern that are looked at; the limits of the set let far fewer in."""

BINARY_LOOK = 8192
"""Bytes that tell whether a file is text, as git does it."""


class Viewed(msgspec.Struct, frozen=True):
    file: OpenFile
    state: FileState


class FilesChanged(msgspec.Struct, frozen=True):
    """The open files now; which were opened without the pin that was asked for; how many found no room."""

    files: list[Viewed]
    seq: int | None = None
    not_pinned: list[str] = []
    left: int = 0


async def listed(session: Session) -> FilesChanged:
    return FilesChanged(await _viewed(session))


async def opened(session: Session, path: str | None, glob: str | None, pinned: bool) -> FilesChanged:
    """Bring a file, or those that a pattern matches, into view."""
    workspace = session.desk.needed_workspace()
    if (path is None) == (glob is None):
        raise invalid("path", "exactly one of `path` and `glob`")
    if path is not None:
        real = await anyio.to_thread.run_sync(_file, workspace, path)
        pin = pinned
        return await _change(session, lambda files: (files.opened(real, "user", now(), pinned=pin), [], 0))
    assert glob is not None
    found = await anyio.to_thread.run_sync(_matching, workspace, glob)
    if not found:
        raise Refused("not_found", f"`glob`: no file matches {glob!r}", params={"field": "glob"})
    return await _change(session, lambda files: files.opened_all(found, "user", now(), pinned))


async def closed(session: Session, path: str | None, glob: str | None) -> FilesChanged:
    if (path is None) == (glob is None):
        raise invalid("path", "exactly one of `path` and `glob`")
    workspace = session.desk.workspace()

    def change(files: OpenFiles) -> tuple[OpenFiles, list[str], int]:
        if path is not None:
            return files.closed(named(files, workspace, path)), [], 0
        for file in files.listed():
            if _matches(workspace, glob or "", file.path):
                files = files.closed(file.path)
        return files, [], 0

    return await _change(session, change)


async def pinned(session: Session, path: str) -> FilesChanged:
    workspace = session.desk.needed_workspace()
    real = await anyio.to_thread.run_sync(_file, workspace, path)
    return await _change(session, lambda files: (files.pinned(real, "user", now()), [], 0))


async def unpinned(session: Session, path: str) -> FilesChanged:
    workspace = session.desk.workspace()
    return await _change(session, lambda files: (files.unpinned(named(files, workspace, path)), [], 0))


async def cleared(session: Session) -> FilesChanged:
    return await _change(session, lambda files: (files.cleared(), [], 0))


def named(files: OpenFiles, workspace: Workspace | None, path: str) -> str:
    """The open file that a person means by `path`, also when it is gone from the disk."""
    known = {file.path for file in files.files}
    if path in known or workspace is None:
        return path
    try:
        return workspace.real(path)
    except Failure:
        place = workspace.resolve(path)
        return "/".join((place.root, *place.parts))


Change = Callable[[OpenFiles], tuple[OpenFiles, list[str], int]]


async def _change(session: Session, change: Change) -> FilesChanged:
    async def make() -> tuple[tuple[list[str], int], list[NewEvent]]:
        files, not_pinned, left = change(session.desk.files)
        return (not_pinned, left), [session.desk.put_files(files)]

    (not_pinned, left), seq = await session.apply(make)
    return FilesChanged(await _viewed(session), seq, not_pinned, left)


async def _viewed(session: Session) -> list[Viewed]:
    listed = session.desk.files.listed()
    largest = session.desk.settings.max_file_bytes
    try:
        workspace = session.desk.workspace()
    except Failure:
        workspace = None  # the project is gone: so are its files
    return await anyio.to_thread.run_sync(
        lambda: [Viewed(file, _state(workspace, file.path, largest)) for file in listed]
    )


def _state(workspace: Workspace | None, path: str, largest: int) -> FileState:
    """How a file is on disk now."""
    if workspace is None:
        return "missing"
    try:
        with open(workspace.open_file(path), "rb") as file:
            if file.seek(0, 2) > largest:
                return "too_large"
            file.seek(0)
            return "binary" if b"\0" in file.read(BINARY_LOOK) else "ok"
    except Failure as failure:
        return "missing" if failure.name == "not_found" else "unreadable"
    except OSError:
        return "unreadable"


def _file(workspace: Workspace, path: str) -> str:
    """The real path of an existing file beneath the project."""
    real = workspace.real(path)
    os.close(workspace.open_file(path))
    return real


def _matching(workspace: Workspace, glob: str) -> list[str]:
    """The real paths of the files that a pattern matches, by path; hidden ones are left out."""
    try:
        chosen = choice(glob, workspace.resolve("."))
        folders = walk(workspace, ".", chosen, time.monotonic() + SECONDS)
        found = [beneath(place, entry.name) for place, entries in folders for entry in entries]
    except Wrong as wrong:
        raise invalid("glob", str(wrong)) from wrong
    except TimeoutError as late:
        raise invalid("glob", f"a pattern that is found within {SECONDS:.0f} s; name a folder") from late
    return [workspace.real(path) for path in sorted(found)[:MAX_MATCHED]]


def _matches(workspace: Workspace | None, glob: str, path: str) -> bool:
    shown = workspace.relative(path) if workspace else path
    names = [name for name in shown.split("/") if name]
    return any(parsed(pattern).matches(names) for pattern in alternatives(glob))
