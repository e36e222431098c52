"""The facet of turns, their prompts and their branches."""

from __future__ import annotations

from ...model.chats import Chat, ProcessIdentity, PromptRecord
from ...model.content import Item, Turn
from ...model.recall import MessagePool, PromptTerms
from ..engine.database import Database
from ..engine.slices import write_slices
from ..engine.sqlite import Connection
from ..search import message_search
from ..tables import (
    blobs,
    chats,
    message_parts,
    turns,
)
from ..tables.leases import IsAlive
from ..tables.turn_cache import TurnCache
from ..tables.turns import TurnNode, TurnPage
from .base import Facet


class Turns(Facet):
    """Turns, their prompts and their branches."""

    def __init__(self, db: Database, me: ProcessIdentity, is_alive: IsAlive, cache: TurnCache) -> None:
        super().__init__(db, me, is_alive)
        self._cache = cache

    async def page(
        self,
        chat: int,
        *,
        before: str | None = None,
        after: str | None = None,
        around: str | None = None,
        limit: int,
        max_bytes: int,
    ) -> tuple[Chat, TurnPage]:
        """Return a page of visible turns: around a turn, after a cursor, or before one (by default the
        newest)."""

        def job(db: Connection) -> tuple[Chat, TurnPage]:
            if around is not None:
                page = turns.around(db, chat, around, limit, max_bytes)
            elif after is not None:
                page = turns.after(db, chat, after, limit, max_bytes)
            else:
                page = turns.before(db, chat, before, limit, max_bytes)
            return chats.get(db, chat), page

        return await self._db.read(job)

    async def recent(
        self, chat: int, before: str | None, floor: int, limit: int, max_bytes: int
    ) -> tuple[TurnPage, dict[str, str]]:
        """Return the newest visible turns before the cursor and after the ordinal `floor`, with the texts of
        their attachments."""

        def job(db: Connection) -> tuple[TurnPage, dict[str, str]]:
            page = self._cache.before(db, chat, before, limit, max_bytes, floor)
            refs = [kept.ref for turn in page.turns for kept in turn.context if kept.ref]
            return page, blobs.texts(db, refs)

        return await self._db.read(job)

    async def all(self, chat: int) -> tuple[Chat, list[Turn]]:
        return await self._db.read(lambda db: (chats.get(db, chat), turns.all_turns(db, chat)), long=True)

    async def get(self, chat: int, turn: str) -> Turn | None:
        return await self._db.read(lambda db: turns.get(db, chat, turn))

    async def end_seq(self, chat: int, turn: str) -> int | None:
        """Return the seq of the event that ended a turn."""
        query = "SELECT last_seq FROM turns WHERE chat = ? AND id = ?"
        return await self._db.read(lambda db: (db.execute(query, (chat, turn)).fetchone() or (None,))[0])

    async def running(self, chat: int) -> Turn | None:
        return await self._db.read(lambda db: turns.running(db, chat))

    async def tree(self, chat: int) -> list[TurnNode]:
        return await self._db.read(lambda db: turns.tree(db, chat), long=True)

    async def visible_from(self, chat: int, turn: str) -> list[str]:
        return await self._db.read(lambda db: turns.visible_from(db, chat, turn))

    async def prompt(self, chat: int, id: str) -> PromptRecord | None:
        return await self._db.read(lambda db: turns.prompt(db, chat, id))

    async def item_of_source(self, chat: int, source: str) -> Item | None:
        """Return the tool call of this chat whose output has this source id in the index."""
        return await self._db.read(lambda db: turns.item_of_source(db, chat, source))

    async def fill_search(self) -> None:
        """Add messages of earlier versions to the index of their parts, in short transactions."""
        await write_slices(self._db, message_parts.fill_slice)

    async def search(self, chat: int, terms: PromptTerms) -> MessagePool:
        """Return messages of the chat's past that could match these terms."""
        return await self._db.read(lambda db: message_search.search(db, chat, terms))
