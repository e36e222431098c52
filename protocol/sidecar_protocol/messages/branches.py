"""Branches of a chat: a new chat from a point of another, and the head moved back and forth within one."""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Key
from .chats import TurnRef
from .patches import FileRestore

__all__ = ["ChatForkParams", "ChatRewindParams", "ChatRewindResult"]


class ChatForkParams(Key, kw_only=True, frozen=True):
    """The new chat has the turns up to the point as finished ones, in an epoch of its own, with the open files and
    the ledger of that point."""

    new_chat_id: str
    """The id of the new chat, in the same namespace; one that is there answers -32003."""
    at: TurnRef | None = None
    """The last turn that comes along; the last ended one when absent."""


class ChatRewindParams(Key, kw_only=True, frozen=True):
    """Exactly one of `before` and `to`. Nothing is erased: the head moves, and can be moved back."""

    before: TurnRef | None = None
    """Hide this turn and all that follow it."""
    to: TurnRef | None = None
    """Make this turn the newest visible one; a hidden one comes back with those before it."""
    files: Literal["keep", "restore"] = "keep"
    """Leave the files as they are, or make them as the visible turns left them: all of them, or none. A file that was
    changed from outside is a conflict, and -32010."""
    dry_run: bool = False
    """Only say what would be done."""


class ChatRewindResult(ChatRef, kw_only=True, frozen=True):
    head: str | None
    """The newest visible turn; null when none is left."""
    hidden: list[str]
    """Turns that left the view."""
    shown: list[str]
    """Turns that came back into it."""
    file_changes: list[FileRestore]
    """What happened to each file, or would; empty with `files: "keep"`."""
    seq: int | None = None
    """The seq of `chat.rewound`; absent when nothing moved."""
