"""What all messages share: camelCase on the wire, absent instead of null, unknown parameters refused."""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]


class Wire(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """A value that the sidecar sends. Readers ignore members that they do not know."""


class Params(Wire, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The parameters of a method. An unknown member is refused by name."""


class Key(Params, kw_only=True, frozen=True):
    """Which chat: `chatId`, else `projectPath`, else the default chat; or `sessionId` alone."""

    chat_id: str | None = None
    """The app's own name for the chat: 1 to 512 bytes of UTF-8 after NFC."""
    project_path: str | None = None
    """The project's folder. Beside a `chatId` it is the workspace; alone it is the chat's key."""
    namespace: str | None = None
    """Keeps apart the chats of several apps or users that share a database; `default` when absent."""
    session_id: str | None = None
    """The session id, alone, in place of the other three."""


class Empty(Params, kw_only=True, frozen=True):
    """No parameters."""


class Cursor(Wire, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A place in a chat's journal. The epoch changes only when a deleted chat is created again."""

    epoch: str
    """The `epoch` of the chat, as `chat/open` and every event tell it."""
    seq: int
    """The last event that the client has; 0 stands before the first."""


class ChatRef(Wire, kw_only=True, frozen=True):
    """Which chat a result speaks of."""

    session_id: str
    """The chat's session id."""
    chat_id: str | None
    """The app's name for the chat; null for a chat that is keyed by its project or is the default one."""
