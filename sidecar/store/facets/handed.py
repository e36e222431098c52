"""The facet of requests that processes hand to each other."""

from __future__ import annotations

from collections.abc import Sequence

from ...system import clock
from ..tables import handed
from ..tables.handed import HandedRow, HandedState
from .base import Facet


class HandedRequests(Facet):
    """Requests for a chat that another process writes to."""

    async def put(self, row: HandedRow) -> None:
        await self._db.write(lambda db: handed.put(db, row, clock.monotonic_ms()))

    async def take(self, chats: Sequence[int]) -> list[HandedRow]:
        """Take the requests for these chats; nothing is written when there are none."""
        if not await self._db.read(lambda db: handed.any_waiting(db, chats, clock.monotonic_ms())):
            return []
        return await self._db.write(lambda db: handed.take(db, chats, clock.monotonic_ms()))

    async def finish(self, id: str, outcome: str) -> None:
        await self._db.write(lambda db: handed.finish(db, id, outcome), last=True)

    async def state(self, row: HandedRow) -> HandedState:
        return await self._db.read(lambda db: handed.state(db, row.id, row.chat))

    async def withdraw(self, row: HandedRow) -> bool:
        """Remove a request that nobody has taken; False when somebody has."""
        return await self._db.write(lambda db: handed.withdraw(db, row.id), last=True)

    async def remove(self, row: HandedRow) -> None:
        await self._db.write(lambda db: handed.remove(db, row.id), last=True)
