"""A chat's open files and its patches as the journal stores them."""

from __future__ import annotations

from typing import Literal

from .content import JournalValue

ChangeKind = Literal["create", "modify", "delete"]
PatchStatus = Literal["applied", "reverted", "superseded", "drifted"]
FileState = Literal["ok", "missing", "binary", "too_large", "unreadable"]


class OpenFile(JournalValue, kw_only=True, frozen=True):
    """An open file of a chat. `touch` is a counter of uses that orders them: two times can be equal, and a clock
    can be set back. `seen` is the sha256 of the bytes that the model last saw. `imported` says that the entry came
    from an imported file: no user here has chosen it."""

    path: str
    pinned: bool = False
    added_at: int
    last_viewed_at: int
    touch: int
    opened_by: str
    seen: str | None = None
    imported: bool = False

    @property
    def is_chosen(self) -> bool:
        """Return whether a user here has opened it, which counts as permission to send it."""
        return self.opened_by == "user" and not self.imported


class Change(JournalValue, kw_only=True, frozen=True):
    """A tool's change to a file: the diff for display, hashes and blobs for reverting it."""

    path: str
    kind: ChangeKind
    unified_diff: str | None = None
    before_hash: str | None = None
    after_hash: str | None = None
    old_ref: str | None = None
    new_ref: str | None = None
    added: int = 0
    removed: int = 0
    binary: bool = False
    truncated: bool = False


class Patch(JournalValue, kw_only=True, frozen=True):
    """An entry of the ledger: one change that a tool made. `mode` are the permission bits of a deleted file. Without
    the bytes before and after it is not `revertible`."""

    id: str
    turn_id: str
    file_path: str
    ts: int
    tool_name: str
    summary: str
    kind: ChangeKind
    item_id: str | None = None
    unified_diff: str | None = None
    before_hash: str | None = None
    after_hash: str | None = None
    old_ref: str | None = None
    new_ref: str | None = None
    added: int = 0
    removed: int = 0
    binary: bool = False
    truncated: bool = False
    mode: int | None = None
    revertible: bool = True
    status: PatchStatus = "applied"
