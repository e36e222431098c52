"""A chat's open files and its patches as the journal keeps them."""

from __future__ import annotations

from typing import Literal

from .content import Value

ChangeKind = Literal["create", "modify", "delete"]
PatchStatus = Literal["applied", "reverted", "superseded", "drifted"]
FileState = Literal["ok", "missing", "binary", "too_large", "unreadable"]


class OpenFile(Value, kw_only=True, frozen=True):
    """A file that a chat has in view. `touch` orders them: clocks tie and jump. `seen` is the sha256 of the bytes
    that the model last saw."""

    path: str
    pinned: bool = False
    added_at: int
    last_viewed_at: int
    touch: int
    opened_by: str
    seen: str | None = None


class Change(Value, kw_only=True, frozen=True):
    """A file as a tool changes it: the diff for people, hashes and blobs for putting it back."""

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


class Patch(Value, kw_only=True, frozen=True):
    """An entry of the ledger: one change that a tool made. `mode` are the permission bits of a file that is gone."""

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
    status: PatchStatus = "applied"
