"""Resume snapshots: what a chat's session has come to, for a model that has lost sight of it."""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Key, Wire

__all__ = [
    "SnapshotEntry",
    "SnapshotInfo",
    "SnapshotsListResult",
    "SnapshotsRestoreParams",
    "SnapshotsRestoreResult",
    "SnapshotsShowParams",
    "SnapshotsShowResult",
]

SnapshotKind = Literal["context", "workflow", "navigation"]
SnapshotReason = Literal["interval", "compaction", "close", "exit", "now"]
EntryKind = Literal[
    "goal", "blocker", "rule", "plan", "task", "error", "decision", "git", "file", "page", "prompt"
]


class SnapshotInfo(Wire, kw_only=True, frozen=True):
    """A snapshot in a list."""

    id: str
    """Of a kept one its own; `workflow` and `navigation` are called what they are."""
    kind: SnapshotKind
    """`context`: all that matters, kept. `workflow`: what is under way now. `navigation`: what was looked at last. The
    latter two are made anew whenever they are asked for."""
    reason: SnapshotReason
    """Why it was taken: so many turns had passed, before a compaction, when the chat was closed or the process left."""
    turn_id: str
    """The last turn within."""
    turns: int
    """How many turns are within."""
    ts: int
    """When it was taken."""
    entries: int
    """How many entries it has."""
    tokens: int
    """What its text takes, by the count of the chat's model; never more than 500."""
    hidden: bool = False
    """Its last turn is out of view: it is not sent, and cannot be restored until that turn comes back."""


class SnapshotsListResult(ChatRef, kw_only=True, frozen=True):
    items: list[SnapshotInfo]
    """Those of now first, then the kept ones, the newest first."""
    next_cursor: str | None = None
    """Absent: the list is whole."""


class SnapshotsShowParams(Key, kw_only=True, frozen=True):
    id: str
    """The `id` of a snapshot in the list."""


class SnapshotEntry(Wire, kw_only=True, frozen=True):
    """One thing to remember."""

    kind: EntryKind
    """What it is about."""
    text: str
    """In words."""
    priority: int
    """On one scale for all kinds, up to 100: what is higher goes before in a text that has not room for all."""
    turn_id: str | None = None
    """The turn that it comes from, where one is known."""
    path: str | None = None
    """A file's path or a page's address."""
    resolution: str | None = None
    """How an error went away; absent while it has not."""


class SnapshotsShowResult(ChatRef, kw_only=True, frozen=True):
    snapshot: SnapshotInfo
    """What was asked for."""
    text: str
    """As a model would be sent it, without the fence."""
    entries: list[SnapshotEntry]
    """All entries, the highest priority first; the text may have room for fewer."""


class SnapshotsRestoreParams(Key, kw_only=True, frozen=True):
    """Nothing is rewound, and no file is changed."""

    id: str
    """The `id` of a snapshot in the list."""


class SnapshotsRestoreResult(ChatRef, kw_only=True, frozen=True):
    snapshot: SnapshotInfo
    """Its text goes along with the next prompt, once."""
    text: str
    """That text, without the fence."""
    opened: list[str]
    """Files that are open again, as paths."""
    missing: list[str]
    """Files that were open then and are gone, or for which there is no room."""
    seq: int
    """The seq of `snapshot.restored`."""
