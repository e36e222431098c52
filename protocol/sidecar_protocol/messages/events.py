"""The two notifications of the sidecar: `event`, for what happens in a chat, and `status`, for all else.

`event_types` says what their `data` has.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .base import Json, Wire

__all__ = ["Event", "Status"]


class Event(Wire, kw_only=True, frozen=True):
    """A stored fact of a chat. `from` to `seq` is the run of deltas that one frame contains."""

    session_id: str
    """The chat's session id."""
    chat_id: str | None
    """The app's name for the chat, or null."""
    epoch: str
    """The chat's epoch."""
    seq: int
    """Dense from 1 in the epoch."""
    ts: int
    """Milliseconds since 1970."""
    type: str
    """What happened; clients ignore types that they do not know."""
    data: Json
    """The members of this type."""
    from_: int | None = msgspec.field(default=None, name="from")
    """The first seq of a combined run of deltas; `seq` when absent."""
    turn_id: str | None = None
    """The turn that it belongs to."""


class Status(Wire, kw_only=True, frozen=True):
    """What belongs to no chat. It has no seq, and is not repeated."""

    type: Literal["chats.changed", "storage", "models", "mcp", "trust", "progress", "access"]
    """What the notification is about; clients ignore types that they do not know."""
    data: Json
    """The members of this type."""
