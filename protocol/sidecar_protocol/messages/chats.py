"""Chats: open, list, search, read, move in and out, configure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .base import ChatRef, Cursor, Json, Key, Params, Wire
from .content import ContentBlock, Turn, Usage

__all__ = [
    "ChatArchiveParams",
    "ChatChanged",
    "ChatCloseResult",
    "ChatConfigureParams",
    "ChatConfigureResult",
    "ChatDeleteResult",
    "ChatExportParams",
    "ChatExportResult",
    "ChatHistoryParams",
    "ChatHistoryResult",
    "ChatImportParams",
    "ChatImportResult",
    "ChatListParams",
    "ChatListResult",
    "ChatOpenParams",
    "ChatOpenResult",
    "ChatRenameParams",
    "ChatSearchParams",
    "ChatSearchResult",
    "ChatSummary",
    "KeyInfo",
    "Owner",
    "Queue",
    "QueuedPrompt",
    "Recovered",
    "Replay",
    "SearchHit",
    "Tail",
    "TurnRef",
]

ChatStateName = Literal["idle", "running", "requires_action", "retrying"]


class TurnRef(Params, kw_only=True):
    turn_id: str


class Tail(Params, kw_only=True):
    """How many of the newest turns a result carries."""

    turns: int = 30
    max_bytes: int = 1024 * 1024


class ChatOpenParams(Key, kw_only=True):
    if_missing: Literal["create", "fail"] = "create"
    after: Cursor | Literal["start", "tail"] = "tail"
    tail: Tail = Tail()
    config: Json | None = None


class KeyInfo(Wire, kw_only=True):
    kind: Literal["chat", "project", "default"]
    value: str


class Owner(Wire, kw_only=True):
    """The process that may write to a chat now."""

    pid: int
    client: str


class Replay(Wire, kw_only=True):
    """What follows the result: stored events `from` to `to`, a snapshot in the result, or nothing."""

    kind: Literal["events", "snapshot", "none"]
    from_: int | None = msgspec.field(default=None, name="from")
    to: int | None = None
    reason: str | None = None


class QueuedPrompt(Wire, kw_only=True):
    prompt_id: str
    turn_id: str
    content: list[ContentBlock]
    delivery: str
    position: int
    revision: int


class Queue(Wire, kw_only=True):
    paused: bool
    items: list[QueuedPrompt]


class Recovered(Wire, kw_only=True):
    """What crash closure ended when the chat was opened."""

    turns: list[str]
    items: list[str]


class ChatOpenResult(ChatRef, kw_only=True):
    status: Literal["created", "resumed", "attached", "recovered"]
    key: KeyInfo
    access: Literal["writer", "reader"]
    epoch: str
    last_seq: int
    as_of: Cursor
    replay: Replay
    turns: list[Turn]
    state: ChatStateName
    queue: Queue
    pending: list[Json]
    usage: Usage
    config: Json
    open_files: list[Json]
    title: str | None = None
    project_path: str | None = None
    before: str | None = None
    owner: Owner | None = None
    recovered: Recovered | None = None


class ChatCloseResult(ChatRef, kw_only=True):
    closed: bool


class ChatChanged(ChatRef, kw_only=True):
    """The chat as it is after a change."""

    title: str | None = None
    archived: bool = False
    seq: int | None = None


class ChatDeleteResult(Wire, kw_only=True):
    session_id: str
    deleted: bool


class ChatRenameParams(Key, kw_only=True):
    """`title: null` makes the title automatic again."""

    title: str | None


class ChatArchiveParams(Key, kw_only=True):
    archived: bool = True


class ChatListParams(Params, kw_only=True):
    namespace: str | None = None
    project_path: str | None = None
    archived: bool | None = None
    query: str | None = None
    cursor: str | None = None
    limit: int = 50


class ChatSummary(ChatRef, kw_only=True):
    namespace: str
    title: str | None
    project_path: str | None
    model: str | None
    state: ChatStateName
    created_at: int
    last_activity: int
    turns: int
    preview: str | None
    archived: bool
    meta: Any = None


class ChatListResult(Wire, kw_only=True):
    items: list[ChatSummary]
    next_cursor: str | None = None


class ChatSearchParams(Params, kw_only=True):
    query: str
    namespace: str | None = None
    project_path: str | None = None
    archived: bool | None = None
    cursor: str | None = None
    limit: int = 20


class SearchHit(ChatSummary, kw_only=True):
    turn_id: str
    item_id: str
    snippet: str


class ChatSearchResult(Wire, kw_only=True):
    items: list[SearchHit]
    next_cursor: str | None = None


class ChatHistoryParams(Key, kw_only=True):
    before: str | None = None
    after: str | None = None
    around: TurnRef | None = None
    limit: int = 30
    max_bytes: int = 1024 * 1024


class ChatHistoryResult(ChatRef, kw_only=True):
    turns: list[Turn]
    before: str | None
    after: str | None
    as_of: Cursor


class ChatExportParams(Key, kw_only=True):
    format: Literal["jsonl", "markdown"] = "jsonl"
    path: str | None = None


class ChatExportResult(ChatRef, kw_only=True):
    turns: int
    bytes: int
    path: str | None = None
    data: str | None = None


class ChatImportParams(Key, kw_only=True):
    path: str | None = None
    data: str | None = None
    append: bool = False


class ChatImportResult(ChatRef, kw_only=True):
    turns: int
    items: int
    epoch: str
    last_seq: int


class ChatConfigureParams(Key, kw_only=True):
    set: Json


class ChatConfigureResult(ChatRef, kw_only=True):
    config: Json
    seq: int
