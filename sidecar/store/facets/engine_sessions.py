"""The facet of sessions that engines have for chats."""

from __future__ import annotations

from ..tables import engine_sessions
from ..tables.engine_sessions import EngineSessionRow
from .base import Facet


class EngineSessions(Facet):
    """Which session of an engine goes on with a chat."""

    async def find(self, chat: int, engine: str) -> EngineSessionRow | None:
        """The session, unless the chat was rewound to before what it contains."""
        return await self._db.read(lambda db: engine_sessions.find(db, chat, engine))

    async def put(self, chat: int, engine: str, row: EngineSessionRow) -> None:
        await self._db.write(lambda db: engine_sessions.put(db, chat, engine, row))
