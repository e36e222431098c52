"""The index in the store: whole operations on indexed texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..model.index import ChunkPool, IndexChunk, NewSource, QueryPlan, RemovalCounts, Source
from .engine.database import Database
from .engine.slices import Pace, write_slices
from .engine.sqlite import Connection
from .search import index_removal, index_rows, index_search
from .search.index_removal import MERGED_PAGES
from .search.index_rows import IndexSlice, PendingSource, TextFigures
from .search.index_search import SearchBounds

SCRUB_S = 5.0
"""How long a deletion waits for the words to be overwritten in the file; the rest is done later, in steps."""


class IndexStore:
    """The database operations of `Index`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(self, new: NewSource, figures: TextFigures, parts: Sequence[bytes]) -> Source:
        """Store a text and replace an older text of the same file and owner. Its words are indexed later."""

        def job(db: Connection) -> Source:
            index_removal.mark_older(db, new)
            return index_rows.put(db, new, figures, parts)

        return await self._db.write(job)

    async def pending(self) -> list[PendingSource]:
        query = (
            "SELECT id, kind, label, path, size, done FROM index_sources WHERE pending = 1 AND owner > 0"
            " ORDER BY size - done, id"
        )
        return await self._db.read(lambda db: [PendingSource(*row) for row in db.execute(query)])

    async def is_waiting(self, chat: int | None, project: str | None) -> bool:
        """Return whether a text of the scope is not completely indexed."""
        return await self._db.read(lambda db: index_rows.is_waiting(db, chat, project))

    async def has_any(self, chat: int, project: str | None) -> bool:
        """Return whether a text of the chat, or of its project and no chat, is stored."""
        return await self._db.read(lambda db: index_rows.has_any(db, chat, project))

    async def is_pending(self, key: str) -> bool:
        query = "SELECT pending FROM index_sources WHERE key = ?"
        return await self._db.read(lambda db: bool((db.execute(query, (key,)).fetchone() or (0,))[0]))

    async def give_up(self, source: int) -> None:
        """Mark a text that cannot be indexed as done."""
        query = "UPDATE index_sources SET pending = 0 WHERE id = ?"
        await self._db.write(lambda db: db.execute(query, (source,)) and None)

    async def read_range(self, source: int, start: int, end: int) -> str:
        """Return the code points of a text from `start` to `end`."""
        return await self._db.read(lambda db: index_rows.read_ranges(db, [(source, start, end)])[0])

    async def text(self, source: int) -> str | None:
        """Return the whole text; None when it was removed."""
        return await self._db.read(lambda db: index_rows.text(db, source))

    async def enter(self, source: int, done: int, slice: IndexSlice) -> bool:
        """Add the chunks that follow `done`; False when another process added them or the text was removed."""
        return await self._db.write(lambda db: index_rows.enter(db, source, done, slice), yields=True)

    async def row(self, key: str) -> tuple[int, Source] | None:
        return await self._db.read(lambda db: index_rows.row(db, key))

    async def by_path(
        self, path: str, chat: int | None, project: str | None
    ) -> tuple[Source, str | None] | None:
        """Return the source of a file and its stored hash."""
        return await self._db.read(lambda db: index_rows.by_path(db, path, chat, project))

    async def chunk_at(self, source: int, start: int) -> IndexChunk | None:
        """Return the chunk that starts there."""
        return await self._db.read(lambda db: index_rows.chunk_at(db, source, start))

    async def chunks(
        self, source: int, start: int, limit: int, *, with_text: bool
    ) -> tuple[list[IndexChunk], list[str]]:
        """Return chunks from a code point on, and their texts if wanted."""

        def job(db: Connection) -> tuple[list[IndexChunk], list[str]]:
            chunks = index_rows.chunks_from(db, source, start, limit)
            ranges = [(source, chunk.start, chunk.end) for chunk in chunks]
            return chunks, index_rows.read_ranges(db, ranges) if with_text and ranges else []

        return await self._db.read(job)

    async def gather(self, plan: QueryPlan, bounds: SearchBounds) -> ChunkPool:
        """Return the chunks of these sources that could match a query."""

        def job(db: Connection) -> ChunkPool:
            found, frequency, total = index_search.find_candidates(db, plan, bounds, index_rows.read_ranges)
            ids = {candidate.source for candidate in found}
            return ChunkPool(tuple(found), {id: index_rows.by_id(db, id) for id in ids}, frequency, total)

        return await self._db.read(job)

    async def spellings(self, pieces: Sequence[str], bounds: SearchBounds) -> list[str]:
        """Return words of these sources that contain all the pieces, as space-separated words."""
        return await self._db.read(lambda db: index_search.spellings(db, pieces, bounds))

    async def page(self, bounds: SearchBounds, before: int | None, limit: int) -> list[tuple[int, Source]]:
        return await self._db.read(lambda db: index_rows.page(db, bounds, before, limit))

    async def remove(self, keys: Sequence[str]) -> RemovalCounts:
        return await self._remove(lambda db: index_removal.mark_keys(db, keys))

    async def remove_chat(self, chat: int) -> RemovalCounts:
        return await self._remove(lambda db: index_removal.mark_chat(db, chat))

    async def remove_project(self, project: str) -> RemovalCounts:
        return await self._remove(lambda db: index_removal.mark_project(db, project))

    async def remove_all(self) -> RemovalCounts:
        return await self._remove(index_removal.mark_all)

    async def _remove(self, mark: Callable[[Connection], RemovalCounts]) -> RemovalCounts:
        removed = await self._db.write(mark)
        await self.remove_marked()
        await self.scrub(SCRUB_S)
        return removed

    async def remove_marked(self) -> None:
        """Remove the texts that were marked, by this process or by one that ended before it had removed them."""
        if await self._db.read(index_removal.has_marked):
            await write_slices(self._db, index_removal.remove_slice)

    async def expired_or_excess(self, before: int, max_bytes: int) -> list[str]:
        """Return sources unused since `before`, and the least recently used ones above the size limit."""
        return await self._db.read(lambda db: index_removal.expired_or_excess(db, before, max_bytes))

    async def expire(self, keys: Sequence[str]) -> RemovalCounts:
        """Mark sources for removal without overwriting their words: expired text is not secret."""
        return await self._db.write(lambda db: index_removal.mark_keys(db, keys, scrub=False))

    async def scrub(self, seconds: float | None) -> None:
        """Overwrite deleted words in the file in steps, for at most `seconds`; the rest follows after the
        next start or removal."""
        until = None if seconds is None else time.monotonic() + seconds
        pace = Pace(MERGED_PAGES // 8, 4 * MERGED_PAGES)
        while await self._db.read(index_removal.has_residue) and (until is None or time.monotonic() < until):
            pace.begin()
            await self._db.write(lambda db: index_removal.scrub(db, pace.most), yields=True)
            await pace.rest()

    async def touch(self, keys: Sequence[str], now: int) -> None:
        query = "UPDATE index_sources SET used_at = ? WHERE key = ?"
        await self._db.write(lambda db: db.executemany(query, [(now, key) for key in keys]) and None)
