"""The facet of patches: the ledger of changed files, open files and checkpoints."""

from __future__ import annotations

from ...model import JsonObject
from ..tables import (
    work,
)
from ..tables.work import Checkpoint, LedgerEntry
from .base import Facet


class Patches(Facet):
    """The ledger of changed files, open files and checkpoints."""

    async def all(self, chat: int) -> list[LedgerEntry]:
        return await self._db.read(lambda db: work.patches(db, chat))

    async def open_files_at(self, chat: int, seq: int) -> list[JsonObject]:
        return await self._db.read(lambda db: work.open_files_at(db, chat, seq))

    async def checkpoints(self, chat: int) -> list[Checkpoint]:
        return await self._db.read(lambda db: work.checkpoints(db, chat))
