"""The patches of a chat: every change that a tool made to a file, to show, revert and export."""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Key, Wire, always

__all__ = [
    "FileRestore",
    "Patch",
    "PatchInfo",
    "PatchesApplyParams",
    "PatchesChanged",
    "PatchesClearResult",
    "PatchesExportParams",
    "PatchesExportResult",
    "PatchesListParams",
    "PatchesListResult",
    "PatchesRevertParams",
    "PatchesShowParams",
    "PatchesShowResult",
]


class PatchesListParams(Key, kw_only=True, frozen=True):
    turn_id: str | None = None
    """Only what this turn changed."""
    path: str | None = None
    """Only changes of this file."""
    cursor: str | None = None
    """The `nextCursor` of the page before."""
    limit: int = 50
    """Maximum number of items."""


class PatchInfo(Wire, kw_only=True, frozen=True):
    """One change that a tool made."""

    id: str
    """Unique in the chat."""
    turn_id: str
    """The turn that made it."""
    file_path: str
    """Relative to the project, or absolute in another folder of the chat."""
    ts: int
    """Milliseconds since 1970."""
    tool_name: str
    """The tool that made it."""
    summary: str
    """A line to show, such as `-3, +5 lines`."""
    added: int
    """Lines that it added."""
    removed: int
    """Lines that it removed."""
    status: Literal["applied", "reverted", "superseded", "drifted"]
    """Whether the file is as the change left it; otherwise reverted, changed by a later patch, or by another
    program."""
    kind: Literal["create", "modify", "delete"]
    """What happened to the file."""
    binary: bool = always(False)
    """Whether it has no diff because the bytes are not text."""
    revertible: bool = always(True)
    """Whether the bytes before and after are known, so that it can be reverted."""
    truncated: bool = always(False)
    """Whether its stored diff is truncated, or was removed for newer ones. It can be reverted and exported
    completely."""


class PatchesListResult(ChatRef, kw_only=True, frozen=True):
    items: list[PatchInfo]
    """The changes of this page, newest first."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""


class PatchesShowParams(Key, kw_only=True, frozen=True):
    """Exactly one of `id`, `path` and `turnId`."""

    id: str | None = None
    """One change."""
    path: str | None = None
    """All changes of this file."""
    turn_id: str | None = None
    """All changes of this turn."""


class Patch(PatchInfo, kw_only=True, frozen=True):
    """A change with its diff."""

    unified_diff: str | None = None
    """The change as a unified diff; absent for binary files and where only the summary was kept."""
    before_hash: str | None = None
    """The sha256 of the bytes before; absent for a new file."""
    after_hash: str | None = None
    """The sha256 of the bytes after; absent for a deleted file."""


class PatchesShowResult(ChatRef, kw_only=True, frozen=True):
    items: list[Patch]
    """The changes, newest first."""


class PatchesClearResult(ChatRef, kw_only=True, frozen=True):
    cleared: int
    """How many recorded changes were removed. The files do not change."""
    seq: int | None = None
    """The seq of the event of the change; absent when there were no recorded changes."""


class PatchesRevertParams(PatchesShowParams, kw_only=True, frozen=True):
    """Exactly one of `id`, `path` and `turnId`. All files are restored, or none: a file that was changed since
    is a conflict, and -32010."""

    dry_run: bool = False
    """Only report what would be done."""


class PatchesApplyParams(PatchesRevertParams, kw_only=True, frozen=True):
    """Exactly one of `id`, `path` and `turnId`. Reverted changes are applied again: all files, or none."""


class FileRestore(Wire, kw_only=True, frozen=True):
    """What a revert did to a file, or would do."""

    path: str
    """Relative to the project, or absolute in another folder of the chat."""
    kind: Literal["create", "modify", "delete"]
    """What happens to the file."""
    status: Literal["restored", "would_restore", "conflict", "unchanged"]
    """Done, would be done, could not be done as the file is not as it was left, or not needed."""
    reason: str | None = None
    """Why it is a conflict, or left as it is, in English."""
    reason_code: (
        Literal["drifted", "later_patch", "earlier_patch", "edited_between", "unknown_bytes"] | None
    ) = None
    """The same by name, to translate: the file is not as the change left it, a later patch changed it again, an
    earlier one must come with it, it was edited from outside between two of the patches, or its bytes are not known,
    as the patch is history of another program."""


class PatchesChanged(ChatRef, kw_only=True, frozen=True):
    items: list[PatchInfo]
    """The selected changes, as they are now, newest first."""
    file_changes: list[FileRestore]
    """What happened to each file, or would."""
    seq: int | None = None
    """The seq of the last event of the change; absent when nothing changed."""


class PatchesExportParams(Key, kw_only=True, frozen=True):
    turn_id: str | None = None
    """Only what this turn changed; the whole chat when absent."""
    path: str | None = None
    """The file to write, an absolute path; without it the patch comes inline. A link in its place is never followed,
    and the sidecar's own data folder is refused in any case."""
    overwrite: bool = False
    """Replace an existing regular file, instead of answering -32003. Ignored without `path`."""


class PatchesExportResult(ChatRef, kw_only=True, frozen=True):
    """One patch for `git apply`."""

    files: int
    """How many files it changes."""
    bytes: int
    """Its size."""
    patch: str | None = None
    """The patch, when no `path` was given and it is UTF-8."""
    data: str | None = None
    """The patch in base64, when no `path` was given and it is not UTF-8."""
    path: str | None = None
    """The file that was written."""
    left_out: list[str] = always([])
    """Files outside the project, which a patch for it cannot name."""
