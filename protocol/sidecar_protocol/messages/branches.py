"""Branches of a chat: a new chat from a point of another, and the head moved back and forth within one."""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Key
from .chats import TurnRef
from .patches import FileRestore

__all__ = ["ChatForkParams", "ChatRewindParams", "ChatRewindResult"]


class ChatForkParams(Key, kw_only=True, frozen=True):
    """The new chat has the turns up to that turn as finished ones, in its own epoch, with the open files and
    the recorded changes of that turn."""

    new_chat_id: str
    """The id of the new chat, in the same namespace; an existing chat gets -32003."""
    at: TurnRef | None = None
    """The last turn to copy; the last ended one when absent."""


class ChatRewindParams(Key, kw_only=True, frozen=True):
    """Exactly one of `before` and `to`. Nothing is erased: the head moves, and can be moved back."""

    before: TurnRef | None = None
    """Hide this turn and all that follow it."""
    to: TurnRef | None = None
    """Make this turn the newest visible one; a hidden turn is shown again with those before it."""
    files: Literal["keep", "restore"] = "keep"
    """Keep the files, or restore them to their state after the visible turns: all of them, or none. A file that
    another program changed is a conflict, and -32010."""
    dry_run: bool = False
    """Only report what would be done."""


class ChatRewindResult(ChatRef, kw_only=True, frozen=True):
    head: str | None
    """The newest visible turn; null when there is none."""
    hidden: list[str]
    """Turns that were hidden."""
    shown: list[str]
    """Turns that were shown again."""
    file_changes: list[FileRestore]
    """What happened to each file, or would; empty with `files: "keep"`."""
    seq: int | None = None
    """The seq of `chat.rewound`; absent when nothing moved."""
