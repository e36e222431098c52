"""The facet of compactions: summaries of a chat's oldest turns, measured token ratios and saved preferences."""

from __future__ import annotations

from ..tables import (
    compactions,
)
from ..tables.compactions import StoredCompaction
from .base import Facet


class Compactions(Facet):
    """Summaries of a chat's oldest turns, measured token ratios and saved preferences."""

    async def current(self, chat: int) -> StoredCompaction | None:
        return await self._db.read(lambda db: compactions.current(db, chat))

    async def was_undone(self, chat: int) -> bool:
        return await self._db.read(lambda db: compactions.was_undone(db, chat))

    async def calibration(self, model: str) -> float:
        return await self._db.read(lambda db: compactions.calibration(db, model))

    async def put_calibration(self, model: str, factor: float) -> None:
        await self._db.write(lambda db: compactions.put_calibration(db, model, factor))

    async def standing(self, chat: int) -> list[str]:
        return await self._db.read(lambda db: compactions.standing(db, chat))
