"""Imports that are in progress or were interrupted: which chats they concern, and how to undo them in slices.

A chat that an import was creating is removed completely. For a chat that it was adding to, the added turns
are listed, so that the chat can hide them.
"""

from __future__ import annotations

import msgspec

from ..model.chats import ProcessIdentity
from ..model.figures import PurgeCounts
from ..system import clock
from . import purge
from .engine.database import Database
from .engine.slices import write_slices
from .engine.sqlite import Connection
from .search import index_removal
from .tables import leases

SLICE_TURNS = 500
"""Turns hidden per commit, which bounds how long other writers wait."""


class Added(msgspec.Struct, frozen=True):
    """A visible turn that an import added."""

    id: str
    parent: str | None


class Imports:
    def __init__(self, db: Database, me: ProcessIdentity, is_alive: leases.IsAlive) -> None:
        self._db = db
        self._me = me
        self._is_alive = is_alive

    async def cut_off(self) -> list[int]:
        """Return chats that an import was creating and whose process has ended."""

        def job(db: Connection) -> list[int]:
            rows = db.execute(
                "SELECT chat FROM requests WHERE outcome IS NULL AND kind = 'import' AND data ->> '$.created'"
            )
            return [chat for (chat,) in rows if self._is_abandoned(db, chat)]

        return await self._db.read(job)

    async def begun_at(self, chat: int) -> int:
        """Return the seq in the journal where the newest import of a chat began."""
        query = "SELECT max(seq) FROM events WHERE chat = ? AND type = 'import.started'"
        return await self._db.read(lambda db: int(db.execute(query, (chat,)).fetchone()[0] or 0))

    async def newest_added(self, chat: int, after_seq: int) -> list[Added]:
        """Return the newest visible turns that began after a seq, newest first."""
        query = (
            "SELECT id, parent FROM turns WHERE chat = ? AND hidden = 0 AND first_seq > ?"
            " ORDER BY ordinal DESC LIMIT ?"
        )
        return await self._db.read(
            lambda db: [Added(*row) for row in db.execute(query, (chat, after_seq, SLICE_TURNS))]
        )

    async def remove(self, chat: int) -> None:
        """Remove a chat that an import was creating, in slices, and its row last. After an interruption
        `cut_off` finds it again: the import stays unfinished until the row is removed."""
        epoch = await self._db.read(lambda db: _epoch(db, chat))
        if epoch is None:
            return
        await write_slices(self._db, lambda db, most: _remove_slice(db, chat, epoch, most), last=True)
        await self._db.write(lambda db: _remove_row(db, chat, epoch), last=True)

    def _is_abandoned(self, db: Connection, chat: int) -> bool:
        lease = leases.read(db, chat)
        if lease is None or lease.owner is None:
            return True
        if lease.owner.instance == self._me.instance:
            return False
        return leases.other_holder(lease, self._me, clock.monotonic_ms(), self._is_alive) is None


def _epoch(db: Connection, chat: int) -> str | None:
    found = db.execute("SELECT epoch FROM chats WHERE id = ?", (chat,)).fetchone()
    return found[0] if found else None


def _remove_slice(db: Connection, chat: int, epoch: str, most: int) -> PurgeCounts | None:
    # Two processes may remove the same chat, and a chat that is created after the first has ended may get its id.
    if _epoch(db, chat) != epoch:
        return None
    index_removal.mark_messages(db, chat)
    left = purge.PurgeBudget(most)
    purge.remove_rows(db, chat, left)
    return left.removed


def _remove_row(db: Connection, chat: int, epoch: str) -> None:
    if _epoch(db, chat) != epoch:
        return
    for table in (*purge.CHAT_TABLES, "leases"):
        db.execute(f"DELETE FROM {table} WHERE chat = ?", (chat,))
    db.execute("DELETE FROM chats WHERE id = ?", (chat,))
