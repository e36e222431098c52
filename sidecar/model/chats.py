"""Chats as values: their key, what the list shows of them, their queue, and who may write to them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .content import Block, Usage

KeyKind = Literal["chat", "project", "default"]


class ChatKey(msgspec.Struct, frozen=True):
    """What a session id is derived from."""

    namespace: str
    kind: KeyKind
    value: str
    session_id: str

    @property
    def chat_id(self) -> str | None:
        return self.value if self.kind == "chat" else None


class Chat(msgspec.Struct, frozen=True):
    """A chat's row. `id` is the store's own handle and means nothing outside it."""

    id: int
    key: ChatKey
    epoch: str
    last_seq: int
    title: str | None
    title_by: str | None
    project_path: str | None
    config: dict[str, Any]
    archived: bool
    created_at: int
    last_activity: int
    turns: int
    preview: str | None
    state: str
    head: str | None
    queue_paused: bool
    usage: Usage
    model: str | None
    deleted: bool
    revision: int
    open_files: list[dict[str, Any]] = []


class Prompt(msgspec.Struct, frozen=True):
    """A prompt that waits, or that a turn answers."""

    id: str
    turn_id: str
    content: list[Block]
    delivery: str
    overrides: dict[str, Any]
    revision: int = 1


class PromptRecord(msgspec.Struct, frozen=True):
    """What is known of a `promptId` that was used before."""

    turn_id: str
    status: str
    seq: int


class ProcessIdentity(msgspec.Struct, frozen=True):
    """A process, told apart from every other that ever had its pid."""

    instance: str
    boot: str
    pid_namespace: str
    pid: int
    started: int


class Lease(msgspec.Struct, frozen=True):
    """The right to write to a chat. A held one that nobody renews ends at `expires` (monotonic milliseconds)."""

    generation: int
    owner: ProcessIdentity | None
    client: str
    expires: int
    closing: bool


class Page(msgspec.Struct, frozen=True):
    """Which chats a list asks for."""

    namespace: str | None = None
    project_path: str | None = None
    archived: bool | None = None
    query: str | None = None
    cursor: str | None = None
    limit: int = 50
    project_ids: tuple[str, ...] = ()


class Hit(msgspec.Struct, frozen=True):
    """Where words were found."""

    chat: Chat
    turn_id: str
    item_id: str
    snippet: str
