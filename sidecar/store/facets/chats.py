"""The facet of chats: find, create, list, search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from ...model.chats import Chat, ChatKey, ChatQuery, Lease, MessageHit, OwnConfig, Prompt
from ...model.events import NewEvent
from ...model.failures import Refused
from ...system import clock
from .. import purge
from ..engine.connection import DatabaseJob
from ..engine.sqlite import Connection
from ..search import chat_search
from ..tables import (
    chats,
    leases,
    mcp_secrets,
    recoveries,
    turns,
    work,
)
from ..tables.appending import append
from ..tables.recoveries import Salvage
from ..tables.turns import TurnPage
from ..tables.work import RequestRecord
from .base import Facet

T = TypeVar("T")


class Snapshot(msgspec.Struct, frozen=True):
    """A consistent view of a chat: its row, who may write, its newest turns, its queue, its open requests,
    and what was recovered from a damaged database if that is new."""

    chat: Chat
    lease: Lease | None
    page: TurnPage
    queue: list[Prompt]
    pending: list[RequestRecord]
    salvage: Salvage | None = None


class ChatRows(Facet):
    """Find, create, list and search chats."""

    async def find(self, session_id: str) -> Chat | None:
        return await self._db.read(lambda db: chats.find(db, session_id))

    async def create(self, key: ChatKey, project_path: str | None, config: OwnConfig) -> tuple[Chat, bool]:
        """Return the chat of this key, and whether it was created by this call."""

        def job(db: Connection) -> tuple[Chat, bool]:
            found = chats.find(db, key.session_id)
            if found and not found.deleted:
                return found, False
            return chats.create(db, key, project_path, config, clock.now()), True

        return await self._write_without_remains(key, job)

    async def _write_without_remains(self, key: ChatKey, job: DatabaseJob[T]) -> T:
        """Run `job` when no row of a deleted chat with this key is left: its id may be used again."""

        def checked(db: Connection) -> list[T]:
            found = chats.find(db, key.session_id)
            return [] if found and found.deleted and purge.has_rows(db, found.id) else [job(db)]

        while not (done := await self._db.write(checked)):
            remains = await self.find(key.session_id)
            if remains:
                await purge.finish(self._db, [(remains.id, remains.epoch)])
        return done[0]

    async def create_with(
        self,
        key: ChatKey,
        project_path: str | None,
        config: OwnConfig,
        events: Sequence[NewEvent],
        *,
        secrets_of: int,
        leased: bool = False,
    ) -> Chat:
        """Create a chat that starts with events; Refused (already_exists) when the key is in use. With `leased`, no
        other process may write to it, nor remove it as incomplete.

        `secrets_of` is the chat that `config` was taken from: its MCP servers need the same values.
        """

        def job(db: Connection) -> Chat:
            found = chats.find(db, key.session_id)
            if found and not found.deleted:
                raise Refused(
                    "already_exists",
                    f"A chat {key.value[:80]!r} exists already",
                    params={"field": "newChatId", "sessionId": key.session_id},
                )
            made = chats.create(db, key, project_path, config, clock.now())
            append(db, made.id, 0, events, clock.now())
            mcp_secrets.copy(db, secrets_of, made.id)
            if leased:
                leases.acquire(db, made.id, self._me, "", clock.monotonic_ms(), self._is_alive)
            return chats.get(db, made.id)

        return await self._write_without_remains(key, job)

    async def archive(self, chat: int, archived: bool) -> None:
        await self._db.write(lambda db: chats.archive(db, chat, archived))

    async def page(self, page: ChatQuery) -> tuple[list[Chat], str | None]:
        return await self._db.read(lambda db: chats.page(db, page))

    async def search(self, page: ChatQuery) -> tuple[list[MessageHit], str | None]:
        return await self._db.read(lambda db: chat_search.search_chats(db, page))

    async def changed_since(self, revision: int) -> list[Chat]:
        return await self._db.read(lambda db: chats.changed_since(db, revision))

    async def revision(self) -> int:
        return await self._db.read(chats.revision)

    async def get(self, id: int) -> Chat:
        return await self._db.read(lambda db: chats.get(db, id))

    async def last_seqs(self, ids: Sequence[int]) -> dict[int, int]:
        """Return the last seq of each of these chats."""
        marks = ", ".join("?" * len(ids))
        query = f"SELECT id, last_seq FROM chats WHERE id IN ({marks}) AND deleted = 0"
        return await self._db.read(lambda db: dict(db.execute(query, tuple(ids)).fetchall()))

    async def snapshot(self, chat: int, turn_limit: int, max_bytes: int) -> Snapshot:
        """Return everything that opening a chat shows, read in one transaction."""

        def job(db: Connection) -> Snapshot:
            page = turns.newest(db, chat, turn_limit, max_bytes)
            return Snapshot(
                chats.get(db, chat),
                leases.read(db, chat),
                page,
                turns.queue(db, chat),
                work.pending(db, chat),
                recoveries.salvage_of_chat(db, chat),
            )

        return await self._db.read(job)
