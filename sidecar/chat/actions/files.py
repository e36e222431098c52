"""What a user does with a chat's open files: open, close, pin, list. `workspace/open_files` is the set itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread
import msgspec

from ...model.events import NewEvent
from ...model.failures import Failure, Refused, invalid_param
from ...model.files import FileState, OpenFile
from ...policy.read_rules import ReadRules, excluded_summary
from ...system.clock import now
from ...tools.base import ToolError
from ...tools.files.glob import SECONDS, child_path, path_filter, walk
from ...workspace.globs import expand_braces, literal_brackets, parse_glob
from ...workspace.open_files import OpenFileLimits, OpenFiles
from ...workspace.paths import Workspace
from ..sessions.session import Session

MAX_MATCHED = 1000
"""Files of a pattern that are read; the limits of the set allow far fewer."""

BINARY_PROBE_BYTES = 8192
"""Bytes that decide whether a file is text, as in git."""


class ViewedFile(msgspec.Struct, frozen=True):
    file: OpenFile
    state: FileState


class FilesChanged(msgspec.Struct, frozen=True):
    """The open files; which were opened without the requested pin; how many did not fit."""

    files: list[ViewedFile]
    seq: int | None = None
    not_pinned: list[str] = []
    left: int = 0


async def list_files(session: Session) -> FilesChanged:
    return FilesChanged(await _viewed_files(session))


async def stored_files(session: Session, state: Sequence[Any]) -> list[ViewedFile]:
    """The open files of an earlier event, in the order of `list_files`, with their state on disk now."""
    return await _with_states(session, OpenFiles.from_state(state, OpenFileLimits(len(state), len(state))))


async def open_matching(session: Session, path: str | None, glob: str | None, pinned: bool) -> FilesChanged:
    """Open a file, or those that a pattern matches."""
    workspace = session.environment.require_workspace()
    if (path is None) == (glob is None):
        raise invalid_param("path", "exactly one of `path` and `glob`")
    if path is not None:
        real = await anyio.to_thread.run_sync(_existing_path, workspace, path)
        pin = pinned
        return await _apply_change(
            session, lambda files: (files.opened(real, "user", now(), pinned=pin), [], 0)
        )
    assert glob is not None
    rules = await session.environment.read_rules()
    found, withheld = await anyio.to_thread.run_sync(_find_matches, workspace, glob, rules)
    if not found and withheld:
        raise Refused("not_found", f"`glob`: {excluded_summary(withheld)}", params={"field": "glob"})
    if not found:
        raise Refused("not_found", f"`glob`: no file matches {glob!r}", params={"field": "glob"})

    def change(files: OpenFiles) -> tuple[OpenFiles, list[str], int]:
        changed, not_pinned, left = files.opened_all(found, "user", now(), pinned)
        return changed, not_pinned, left + len(withheld)

    return await _apply_change(session, change)


async def close_matching(session: Session, path: str | None, glob: str | None) -> FilesChanged:
    if (path is None) == (glob is None):
        raise invalid_param("path", "exactly one of `path` and `glob`")
    workspace = session.environment.workspace()

    def change(files: OpenFiles) -> tuple[OpenFiles, list[str], int]:
        if path is not None:
            return files.closed(open_path(files, workspace, path)), [], 0
        listed = files.display_order()
        matching = [file for file in listed if _matches(workspace, glob or "", file.path)]
        literal = literal_brackets(glob or "")
        for file in matching or [file for file in listed if _matches(workspace, literal, file.path)]:
            files = files.closed(file.path)
        return files, [], 0

    return await _apply_change(session, change)


async def pin_file(session: Session, path: str) -> FilesChanged:
    workspace = session.environment.require_workspace()
    real = await anyio.to_thread.run_sync(_existing_path, workspace, path)
    return await _apply_change(session, lambda files: (files.pinned(real, "user", now()), [], 0))


async def unpin_file(session: Session, path: str) -> FilesChanged:
    workspace = session.environment.workspace()
    return await _apply_change(
        session, lambda files: (files.unpinned(open_path(files, workspace, path)), [], 0)
    )


async def close_all(session: Session) -> FilesChanged:
    return await _apply_change(session, lambda files: (files.cleared(), [], 0))


async def is_file(session: Session, path: str) -> bool:
    """Return whether a file of the project has exactly this name, or is open under it."""
    workspace = session.environment.workspace()
    if workspace is None:
        return False
    try:
        real = await anyio.to_thread.run_sync(open_path, session.environment.files, workspace, path)
        if real in {file.path for file in session.environment.files.files}:
            return True
        await anyio.to_thread.run_sync(_existing_path, workspace, path)
    except Failure:
        return False
    return True


def open_path(files: OpenFiles, workspace: Workspace | None, path: str) -> str:
    """The open file that the user means by `path`, also when it is gone from the disk."""
    known = {file.path for file in files.files}
    if path in known or workspace is None:
        return path
    try:
        return workspace.real(path)
    except Failure:
        place = workspace.resolve(path)
        return "/".join((place.root, *place.parts))


OpenFilesChange = Callable[[OpenFiles], tuple[OpenFiles, list[str], int]]


async def _apply_change(session: Session, change: OpenFilesChange) -> FilesChanged:
    async def make() -> tuple[tuple[list[str], int], list[NewEvent]]:
        files, not_pinned, left = change(session.environment.files)
        return (not_pinned, left), [session.environment.set_open_files(files)]

    (not_pinned, left), seq = await session.apply(make)
    return FilesChanged(await _viewed_files(session), seq, not_pinned, left)


async def _viewed_files(session: Session) -> list[ViewedFile]:
    return await _with_states(session, session.environment.files)


async def _with_states(session: Session, files: OpenFiles) -> list[ViewedFile]:
    shown = files.display_order()
    largest = 0
    try:
        largest = session.environment.settings.values.open_files.max_file_bytes
        workspace = session.environment.workspace()
    except Failure:
        workspace = None  # the project is gone, and its files with it; or its settings cannot be read
    return await anyio.to_thread.run_sync(
        lambda: [ViewedFile(file, _file_state(workspace, file.path, largest)) for file in shown]
    )


def _file_state(workspace: Workspace | None, path: str, largest: int) -> FileState:
    """The state of a file on disk."""
    if workspace is None:
        return "missing"
    try:
        with open(workspace.open_file(path), "rb") as file:
            if file.seek(0, 2) > largest:
                return "too_large"
            file.seek(0)
            return "binary" if b"\0" in file.read(BINARY_PROBE_BYTES) else "ok"
    except Failure as failure:
        return "missing" if failure.name == "not_found" else "unreadable"
    except OSError:
        return "unreadable"


def _existing_path(workspace: Workspace, path: str) -> str:
    """The real path of an existing file in the project."""
    real = workspace.real(path)
    os.close(workspace.open_file(path))
    return real


def _find_matches(
    workspace: Workspace, glob: str, rules: ReadRules
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the matches of a pattern; if there are none, with its brackets as parts of names."""
    found, withheld = _readable_matches(workspace, glob, rules)
    literal = literal_brackets(glob)
    return (
        (found, withheld)
        if found or withheld or literal == glob
        else _readable_matches(workspace, literal, rules)
    )


def _readable_matches(
    workspace: Workspace, glob: str, rules: ReadRules
) -> tuple[list[str], list[tuple[str, str]]]:
    """The real paths of the files that a pattern matches, by path, and those that may not be read with the reason.
    Hidden files are left out.
    """
    try:
        chosen = path_filter(glob, workspace.resolve("."))
        folders = walk(workspace, ".", chosen, time.monotonic() + SECONDS)
        found = [child_path(place, entry.name) for place, entries in folders for entry in entries]
    except ToolError as wrong:
        raise invalid_param("glob", str(wrong)) from wrong
    except TimeoutError as late:
        raise invalid_param(
            "glob", f"a pattern that is found within {SECONDS:.0f} s; name a folder"
        ) from late
    reasons = {path: rules.skip_reason(path) for path in sorted(found)}
    withheld = [(path, reason) for path, reason in reasons.items() if reason]
    readable = [path for path, reason in reasons.items() if not reason]
    return [workspace.real(path) for path in readable[:MAX_MATCHED]], withheld


def _matches(workspace: Workspace | None, glob: str, path: str) -> bool:
    shown = workspace.relative(path) if workspace else path
    names = [name for name in shown.split("/") if name]
    return any(parse_glob(pattern).matches(names) for pattern in expand_braces(glob))
