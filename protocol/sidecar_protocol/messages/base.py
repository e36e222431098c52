"""What all messages share: camelCase on the wire, absent instead of null, unknown parameters refused."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

Json = dict[str, Any]

Value = TypeVar("Value", bool, int, str, list[Any], dict[str, Any])


def always(value: Value) -> Value:
    """The default of a member that is sent even when it has it: readers need no defaults of their own."""
    # msgspec leaves out values that equal a default, and empty ones of the factories `list` and `dict`, but no others.
    default: Value = msgspec.field(default_factory=lambda: type(value)(value))
    return default


class Wire(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """A value that the sidecar sends. Readers ignore members that they do not know."""


class Params(Wire, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The parameters of a method. An unknown member is refused by name."""


class Key(Params, kw_only=True, frozen=True):
    """Which chat: `chatId`, else `projectPath`, else the default chat; or `sessionId` alone."""

    chat_id: str | None = None
    """The app's own name for the chat: 1 to 512 bytes of UTF-8 after NFC."""
    project_path: str | None = None
    """The project's folder. With a `chatId` it is the workspace; alone it is the chat's key."""
    namespace: str | None = None
    """Separates the chats of several apps or users that share a database; `default` when absent."""
    session_id: str | None = None
    """The session id, alone, in place of the other three."""


class Empty(Params, kw_only=True, frozen=True):
    """No parameters."""


class Cursor(Wire, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A position in the events of a chat. The epoch changes only when a deleted chat is created again."""

    epoch: str
    """The `epoch` of the chat, as in `chat/open` and every event."""
    seq: int
    """The seq of the last event that the client has; 0 is before the first."""


class ChatRef(Wire, kw_only=True, frozen=True):
    """The chat of a result."""

    session_id: str
    """The chat's session id."""
    chat_id: str | None
    """The app's name for the chat; null for a chat that is keyed by its project or is the default one."""
