"""The facet of leases: which process may write to which chat."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.chats import Lease, ProcessIdentity
from ...system import clock
from ..engine.sqlite import Connection
from ..tables import (
    leases,
)
from .base import Facet


class Leases(Facet):
    """Which process may write to which chat."""

    async def take(self, chat: int, client: str) -> int:
        """Acquire the lease even if its last owner left a turn open; the caller must close that turn."""
        return await self._db.write(
            lambda db: leases.acquire(db, chat, self._me, client, clock.monotonic_ms(), self._is_alive)
        )

    async def release(self, chat: int, generation: int) -> None:
        await self._db.write(lambda db: leases.release(db, chat, generation), last=True)

    async def renew(self) -> None:
        await self._db.write(lambda db: leases.renew(db, self._me, clock.monotonic_ms()), last=True)

    async def of(self, chats: Sequence[int]) -> dict[int, Lease]:
        """Return the leases of these chats; a chat that nobody has written to has none."""

        def job(db: Connection) -> dict[int, Lease]:
            found = {chat: leases.read(db, chat) for chat in chats}
            return {chat: lease for chat, lease in found.items() if lease is not None}

        return await self._db.read(job)

    async def held(self) -> dict[int, int]:
        """Return the chats that this process may write to, with the generation of each lease."""
        query = "SELECT chat, generation FROM leases WHERE instance = ?"
        return await self._db.read(lambda db: dict(db.execute(query, (self._me.instance,)).fetchall()))

    async def announce_closing(self) -> None:
        await self._db.write(lambda db: leases.announce_closing(db, self._me), last=True)

    async def release_all(self) -> None:
        await self._db.write(lambda db: leases.release_all(db, self._me), last=True)

    def other_holder(self, lease: Lease | None) -> ProcessIdentity | None:
        """Return the other live process that holds this lease, if one does."""
        return leases.other_holder(lease, self._me, clock.monotonic_ms(), self._is_alive)
