"""The facet of the cache of fetched pages."""

from __future__ import annotations

from ...model.pages import PageFigures
from ...model.pages import WebPage as WebPage
from ...system import clock
from ..tables import (
    pages,
)
from .base import Facet


class WebPages(Facet):
    """The cache of fetched pages."""

    async def find(self, key: str) -> WebPage | None:
        return await self._db.read(lambda db: pages.find(db, key))

    async def count(self, outcome: pages.CacheOutcome, key: str) -> None:
        await self._db.write(lambda db: pages.count_outcome(db, outcome, key, clock.now()))

    async def put(self, key: str, page: WebPage, max_bytes: int) -> None:
        await self._db.write(lambda db: pages.put(db, key, page, max_bytes, clock.now()))

    async def remove(self, key: str) -> None:
        await self._db.write(lambda db: pages.remove(db, key))

    async def clear(self) -> int:
        """Empty the cache of fetched pages and reset its figures; return how many pages there were."""
        return await self._db.write(pages.clear)

    async def figures(self) -> PageFigures:
        """Return what the cache of fetched pages contains, and its hit counts."""
        return await self._db.read(pages.figures)
