"""The index's part of the store's door: whole operations on kept texts."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..model.index import Chunk, NewSource, Plan, Pool, Removed, Source
from . import index_removal, index_rows, index_search
from .database import Database
from .index_rows import Figures, Pending, Slice
from .index_search import Bounds
from .sqlite import Connection

SCRUB_S = 2.0
"""How long a deletion waits until the words are gone from the file too; what is left is done later, step by step."""


class IndexStore:
    """`Index`'s hold of the database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(self, new: NewSource, figures: Figures, parts: Sequence[bytes]) -> Source:
        """Keep a text; its words come later. The text of the same file and owner makes room for it."""

        def job(db: Connection) -> Source:
            index_removal.remove_older(db, new)
            return index_rows.put(db, new, figures, parts)

        return await self._db.write(job)

    async def pending(self) -> list[Pending]:
        query = "SELECT id, kind, label, path, size, done FROM index_sources WHERE pending = 1 ORDER BY size - done, id"
        return await self._db.read(lambda db: [Pending(*row) for row in db.execute(query)])

    async def is_waiting(self, chat: int | None, project: str | None) -> bool:
        """Whether a text of the scope is not wholly indexed."""
        return await self._db.read(lambda db: index_rows.is_waiting(db, chat, project))

    async def has_any(self, chat: int, project: str | None) -> bool:
        """Whether a text of the chat, or a file of its project, is kept."""
        query = (
            "SELECT EXISTS (SELECT 1 FROM index_owners o JOIN index_sources s ON s.owner = o.id"
            " WHERE ifnull(o.chat, -1) = ?1) OR EXISTS (SELECT 1 FROM index_owners o JOIN index_sources s"
            " ON s.owner = o.id WHERE o.project = ?2 AND s.kind = 'file')"
        )
        return await self._db.read(lambda db: bool(db.execute(query, (chat, project)).fetchone()[0]))

    async def is_pending(self, key: str) -> bool:
        query = "SELECT pending FROM index_sources WHERE key = ?"
        return await self._db.read(lambda db: bool((db.execute(query, (key,)).fetchone() or (0,))[0]))

    async def give_up(self, source: int) -> None:
        """Have a text that cannot be indexed count as done."""
        query = "UPDATE index_sources SET pending = 0 WHERE id = ?"
        await self._db.write(lambda db: db.execute(query, (source,)) and None)

    async def stretch(self, source: int, start: int, end: int) -> str:
        """The code points of a text from one to another."""
        return await self._db.read(lambda db: index_rows.stretches(db, [(source, start, end)])[0])

    async def text(self, source: int) -> str | None:
        """The whole text; None when it is gone."""
        return await self._db.read(lambda db: index_rows.text(db, source))

    async def enter(self, source: int, done: int, slice: Slice) -> bool:
        """Add what follows after `done`; False when another process has done so, or the text is gone."""
        return await self._db.write(lambda db: index_rows.enter(db, source, done, slice))

    async def row(self, key: str) -> tuple[int, Source] | None:
        return await self._db.read(lambda db: index_rows.row(db, key))

    async def by_path(
        self, path: str, chat: int | None, project: str | None
    ) -> tuple[Source, str | None] | None:
        """The source of a file, and the hash that it had."""
        return await self._db.read(lambda db: index_rows.by_path(db, path, chat, project))

    async def chunk_at(self, source: int, start: int) -> Chunk | None:
        """The chunk that begins there."""
        return await self._db.read(lambda db: index_rows.chunk_at(db, source, start))

    async def gather(self, plan: Plan, bounds: Bounds) -> Pool:
        """What of these sources has to do with a query."""

        def job(db: Connection) -> Pool:
            found, frequency, total = index_search.gather(db, plan, bounds, index_rows.stretches)
            ids = {candidate.source for candidate in found}
            return Pool(tuple(found), {id: index_rows.by_id(db, id) for id in ids}, frequency, total)

        return await self._db.read(job)

    async def spellings(self, pieces: Sequence[str], bounds: Bounds) -> list[str]:
        """Words of these sources that hold all of the pieces, as rows of words."""
        return await self._db.read(lambda db: index_search.spellings(db, pieces, bounds))

    async def page(self, bounds: Bounds, before: int | None, limit: int) -> list[tuple[int, Source]]:
        return await self._db.read(lambda db: index_rows.page(db, bounds, before, limit))

    async def remove(self, keys: Sequence[str]) -> Removed:
        removed = await self._db.write(lambda db: index_removal.remove_keys(db, keys))
        await self.scrub(SCRUB_S)
        return removed

    async def remove_chat(self, chat: int) -> Removed:
        removed = await self._db.write(lambda db: index_removal.remove_chat(db, chat))
        await self.scrub(SCRUB_S)
        return removed

    async def remove_project(self, project: str) -> Removed:
        removed = await self._db.write(lambda db: index_removal.remove_project(db, project))
        await self.scrub(SCRUB_S)
        return removed

    async def remove_all(self) -> Removed:
        return await self._db.write(index_removal.remove_all)

    async def oldest(self, before: int, max_bytes: int) -> list[str]:
        """Sources that nobody used since `before`, and the least recently used of those that are too many."""
        return await self._db.read(lambda db: index_removal.oldest(db, before, max_bytes))

    async def expire(self, keys: Sequence[str]) -> Removed:
        """Remove without scrubbing: what is old is no secret."""
        return await self._db.write(lambda db: index_removal.remove_keys(db, keys, scrub=False))

    async def scrub(self, seconds: float | None) -> None:
        """Let no deleted word stay in the file, step by step, for so long; what is left then is done after the next
        start or removal."""
        until = None if seconds is None else time.monotonic() + seconds
        while await self._db.read(index_removal.has_residue) and (until is None or time.monotonic() < until):
            await self._db.write(index_removal.scrub)

    async def touch(self, keys: Sequence[str], now: int) -> None:
        query = "UPDATE index_sources SET used_at = ? WHERE key = ?"
        await self._db.write(lambda db: db.executemany(query, [(now, key) for key in keys]) and None)
