"""The facet of what the model was sent."""

from __future__ import annotations

import anyio.to_thread

from ...model.content import Turn
from ...model.sent import SentRequest, StoredRequest
from ...system.clock import now
from ...text.pieces import PieceTree, divide_text
from ..engine.slices import write_slices
from ..tables import sent_texts
from .base import Facet


class SentRequests(Facet):
    """What the model was sent: the texts of requests, shared by their hashes."""

    async def put(self, chat: int, epoch: str, request: SentRequest) -> None:
        trees = await anyio.to_thread.run_sync(_trees, request.texts)
        await self._db.write(
            lambda db: sent_texts.put(db, chat, epoch, request.turn, request.number, trees, now())
        )

    async def read(self, chat: int, turn: Turn, number: int) -> StoredRequest | None:
        """Return a request of a turn; None when the turn has made no such request."""
        return await self._db.read(lambda db: sent_texts.read(db, chat, turn, number))

    async def remove_before(self, ts: int) -> int:
        """Remove what was sent before a time, in slices; return how many rows."""
        return sum(await write_slices(self._db, lambda db, most: sent_texts.remove_before(db, ts, most)))


def _trees(texts: list[str]) -> list[PieceTree | None]:
    return [divide_text(text) if text else None for text in texts]
