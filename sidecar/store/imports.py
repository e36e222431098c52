"""Imports: chats that come from elsewhere, and imports that were interrupted: which chats they concern, and how to
undo them in slices.

A chat that an import was creating is removed completely. For a chat that it was adding to, the added turns
are listed, so that the chat can hide them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.chats import ChatKey, ProcessIdentity
from ..model.events import NewEvent
from ..model.figures import PurgeCounts
from ..system import clock
from . import purge
from .engine.database import Database
from .engine.slices import write_slices
from .engine.sqlite import Connection
from .search import index_removal
from .tables import blobs, chats, leases
from .tables.appending import append

SLICE_TURNS = 500
"""Turns hidden per commit, which bounds how long other writers wait."""


class Added(msgspec.Struct, frozen=True):
    """A visible turn that an import added."""

    id: str
    parent: str | None


class BlobBytes(msgspec.Struct, frozen=True):
    """A blob that comes with a chat."""

    data: bytes
    mime_type: str
    name: str | None


class NewChat(msgspec.Struct, frozen=True):
    """A chat to create: the events that it starts with, and the blobs that these refer to."""

    key: ChatKey
    project_path: str | None
    created_at: int
    blobs: Sequence[BlobBytes]
    events: Sequence[NewEvent]


class Begun(msgspec.Struct, frozen=True):
    """A chat that is being created in several commits, under a lease."""

    chat: int
    last_seq: int
    generation: int


class Known(msgspec.Struct, frozen=True):
    """A chat that was imported before: its row, whether it was deleted since, and the newest mark of its source."""

    chat: int
    deleted: bool
    mark: str | None


class KnownTurns(msgspec.Struct, frozen=True):
    """What a chat has: of each turn the ids of its items with their status, its visible turns, its patches."""

    items: dict[str, dict[str, str]]
    visible: list[str]
    patches: set[str]


class Imports:
    def __init__(self, db: Database, me: ProcessIdentity, is_alive: leases.IsAlive) -> None:
        self._db = db
        self._me = me
        self._is_alive = is_alive

    async def create(self, new: Sequence[NewChat]) -> list[bool]:
        """Create these chats in one commit; False for each whose key is in use."""
        return await self._db.write(lambda db: [_create(db, one) is not None for one in new], yields=True)

    async def begin(self, new: NewChat) -> Begun | None:
        """Create a chat that further commits go on with; None when its key is in use."""

        def job(db: Connection) -> Begun | None:
            id = _create(db, new)
            if id is None:
                return None
            held = leases.acquire(db, id, self._me, "", clock.monotonic_ms(), self._is_alive)
            return Begun(id, chats.get(db, id).last_seq, held)

        return await self._db.write(job, yields=True)

    async def known(self, namespace: str, prefix: str) -> dict[str, Known]:
        """Return the chats of a namespace whose key begins with a prefix, by session id."""
        rows_query = (
            "SELECT session_id, id, deleted FROM chats"
            " WHERE namespace = ? AND kind = 'chat' AND substr(key, 1, ?) = ?"
        )
        marks_query = (
            "SELECT chat, data ->> '$.source.mark' FROM requests WHERE kind = 'import'"
            " AND outcome ->> '$.outcome' = 'completed' AND data ->> '$.source.mark' IS NOT NULL"
            " ORDER BY data ->> '$.source.at'"
        )

        def job(db: Connection) -> dict[str, Known]:
            marks = dict(db.execute(marks_query).fetchall())
            rows = db.execute(rows_query, (namespace, len(prefix), prefix))
            return {session: Known(id, bool(deleted), marks.get(id)) for session, id, deleted in rows}

        return await self._db.read(job)

    async def known_turns(self, chat: int) -> KnownTurns:
        """Return the turns and items that a chat has."""
        items_query = (
            "SELECT turn, data ->> '$.item.id', data ->> '$.item.status' FROM events"
            " WHERE chat = ? AND turn IS NOT NULL AND data ->> '$.item.id' IS NOT NULL ORDER BY seq"
        )

        def job(db: Connection) -> KnownTurns:
            turns = db.execute(
                "SELECT id, hidden FROM turns WHERE chat = ? ORDER BY ordinal", (chat,)
            ).fetchall()
            items: dict[str, dict[str, str]] = {id: {} for id, _ in turns}
            for turn, item, status in db.execute(items_query, (chat,)):
                items.setdefault(turn, {})[item] = status
            patches = {id for (id,) in db.execute("SELECT id FROM patches WHERE chat = ?", (chat,))}
            return KnownTurns(items, [id for id, hidden in turns if not hidden], patches)

        return await self._db.read(job)

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
        # `last`: also on a full disk, where removing is what helps.
        await self._db.write(lambda db: _remove_row(db, chat, epoch), last=True)

    def _is_abandoned(self, db: Connection, chat: int) -> bool:
        lease = leases.read(db, chat)
        if lease is None or lease.owner is None:
            return True
        # Our own import is in progress, however long its lease was not renewed.
        if lease.owner.instance == self._me.instance:
            return False
        return leases.other_holder(lease, self._me, clock.monotonic_ms(), self._is_alive) is None


def _create(db: Connection, new: NewChat) -> int | None:
    if chats.find(db, new.key.session_id):
        return None
    now = clock.now()
    made = chats.create(db, new.key, new.project_path, {}, new.created_at or now)
    for blob in new.blobs:
        blobs.put(db, blob.data, blob.mime_type, blob.name, now)
    append(db, made.id, 0, new.events, now)
    return made.id


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
