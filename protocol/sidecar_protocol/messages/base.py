"""What all messages share: camelCase names on the wire, absent instead of null, unknown parameters refused."""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]


class Wire(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """A value that the sidecar sends. Readers ignore members that they do not know."""


class Params(Wire, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a method. An unknown member is refused by name."""


class Key(Params, kw_only=True):
    """Which chat: `chatId`, else `projectPath`, else the default chat of the namespace; or `sessionId` alone."""

    chat_id: str | None = None
    project_path: str | None = None
    namespace: str | None = None
    session_id: str | None = None


class Empty(Params, kw_only=True):
    """No parameters."""


class Cursor(Wire, forbid_unknown_fields=True, kw_only=True):
    """A place in a chat's journal. The epoch changes only when a deleted chat is created again."""

    epoch: str
    seq: int


class ChatRef(Wire, kw_only=True):
    """Which chat a result speaks of."""

    session_id: str
    chat_id: str | None
