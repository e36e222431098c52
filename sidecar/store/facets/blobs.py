"""The facet of blobs: bytes addressed by their hash."""

from __future__ import annotations

from collections.abc import Sequence

from ...system import clock
from ..tables import (
    blobs,
)
from ..tables.blobs import BlobInfo
from .base import Facet


class Blobs(Facet):
    """Bytes addressed by their hash."""

    async def put(self, data: bytes, mime_type: str, name: str | None) -> BlobInfo:
        return await self._db.write(lambda db: blobs.put(db, data, mime_type, name, clock.now()))

    async def put_all(self, all_data: Sequence[bytes], mime_type: str) -> list[BlobInfo]:
        """Store several blobs in one commit."""
        now = clock.now()
        return await self._db.write(
            lambda db: [blobs.put(db, data, mime_type, None, now) for data in all_data]
        )

    async def info(self, id: str) -> BlobInfo:
        return await self._db.read(lambda db: blobs.info(db, id))

    async def read(self, id: str, offset: int, length: int) -> tuple[BlobInfo, bytes]:
        return await self._db.read(lambda db: blobs.read(db, id, offset, length))

    async def texts(self, refs: Sequence[str]) -> dict[str, str]:
        """Return stored texts by their blob ids, without those that were removed."""
        return await self._db.read(lambda db: blobs.texts(db, refs)) if refs else {}
