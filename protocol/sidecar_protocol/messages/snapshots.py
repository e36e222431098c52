"""Resume snapshots: the state of a chat's work, for a model whose context no longer has it."""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Key, Wire, always

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
    """`context`: all entries, stored. `workflow`: the current work. `navigation`: what was read last. The
    latter two are created on each request."""
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
    """Tokens of its text, counted for the chat's model; never more than 500."""
    hidden: bool = always(False)
    """Its last turn is hidden: it is not sent, and cannot be restored until that turn is shown again."""


class SnapshotsListResult(ChatRef, kw_only=True, frozen=True):
    items: list[SnapshotInfo]
    """Those of now first, then the kept ones, the newest first."""
    next_cursor: str | None = None
    """Absent: the list is complete."""


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
    """On one scale for all kinds, up to 100: higher entries come first when the text cannot contain all."""
    turn_id: str | None = None
    """The turn that it comes from, where one is known."""
    path: str | None = None
    """A file's path or a page's address."""
    resolution: str | None = None
    """How an error was solved; absent while it is open."""


class SnapshotsShowResult(ChatRef, kw_only=True, frozen=True):
    snapshot: SnapshotInfo
    """What was asked for."""
    text: str
    """The text for the model, without the fence."""
    entries: list[SnapshotEntry]
    """All entries, the highest priority first; the text may contain fewer."""


class SnapshotsRestoreParams(Key, kw_only=True, frozen=True):
    """Nothing is rewound, and no file is changed."""

    id: str
    """The `id` of a snapshot in the list."""


class SnapshotsRestoreResult(ChatRef, kw_only=True, frozen=True):
    snapshot: SnapshotInfo
    """Its text is sent once with the next prompt."""
    text: str
    """That text, without the fence."""
    opened: list[str]
    """Files that are open again, as paths."""
    missing: list[str]
    """Files that were open then and no longer exist, or exceed the limit of open files."""
    seq: int
    """The seq of `snapshot.restored`."""
