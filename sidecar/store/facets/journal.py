"""The facet of the journal: append events under a lease, read them by cursor."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...model.chats import Chat
from ...model.events import NewEvent, StoredEvent
from ...system import clock
from ..engine.sqlite import Connection
from ..tables import (
    chats,
    journal,
    leases,
)
from ..tables.appending import append
from .base import Facet


class Appended(msgspec.Struct, frozen=True):
    """The stored events of a commit, and the lease under which it wrote."""

    generation: int
    events: list[StoredEvent]


class Journal(Facet):
    """Append events under a lease, read them by cursor."""

    async def append(
        self,
        chat: int,
        last_seq: int,
        generation: int | None,
        events: Sequence[NewEvent],
        *,
        client: str = "",
        release: bool = False,
        last: bool = False,
        yields: bool = False,
    ) -> Appended:
        """Append events after `last_seq` under the lease; acquire it first when `generation` is None.

        `last` marks events that end something, which may use the reserve when the disk is full; `yields` marks those
        of a long operation, which lets other chats go first. Raises
        LeaseHeld, LeaseLost, UnclosedChat (crash closure comes first), StaleWrite (the chat has newer events) or
        Refused (deleted); then nothing was written.
        """

        def job(db: Connection) -> Appended:
            held = generation
            if held is None:
                held = leases.acquire_released(
                    db, chat, self._me, client, clock.monotonic_ms(), self._is_alive
                )
            else:
                leases.check(db, chat, held, self._me)
            stored = append(db, chat, last_seq, events, clock.now())
            if release:
                leases.release(db, chat, held)
            return Appended(held, stored)

        return await self._db.write(job, last=last, yields=yields)

    async def after(self, chat: int, seq: int, limit: int, max_bytes: int) -> list[StoredEvent]:
        return await self._db.read(lambda db: journal.read_after(db, chat, seq, limit, max_bytes))

    async def read(
        self, chat: int, epoch: str, seq: int, limit: int, max_bytes: int
    ) -> tuple[Chat, list[StoredEvent]]:
        """As `events_after`, for a cursor that may be from another epoch or ahead: then Refused
        (cursor_expired)."""

        def job(db: Connection) -> tuple[Chat, list[StoredEvent]]:
            found = chats.get(db, chat)
            journal.check_cursor(seq, found.last_seq, found.epoch, epoch)
            return found, journal.read_after(db, chat, seq, limit, max_bytes)

        return await self._db.read(job)
