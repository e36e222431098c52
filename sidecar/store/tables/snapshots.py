"""Snapshots of the state of a chat's session, each up to a turn, and the turns since."""

from __future__ import annotations

from typing import Any

import msgspec

from ...model import JsonObject
from ...model.content import Turn
from ...model.events import decode, encode
from ..engine.database import Database
from ..engine.sqlite import Connection
from ..tables.pending_snapshot import PendingSnapshot
from . import compactions, pending_snapshot, turns
from .compactions import StoredCompaction


class SnapshotRow(msgspec.Struct, frozen=True):
    """A snapshot up to a turn; `hidden` when that turn is not visible, `ordinal` counts the chat's turns."""

    id: str
    turn: str
    reason: str
    ts: int
    session_state: JsonObject
    hidden: bool = False
    ordinal: int = 0
    seq: int = 0
    """The last seq of the journal when the turn ended."""


class SnapshotBase(msgspec.Struct, frozen=True):
    """The newest visible snapshot, and the turns after it; `first` is the chat's first turn when it is not
    among them and no snapshot covers it."""

    known: SnapshotRow | None
    turns: list[Turn]
    first: Turn | None


class Snapshots:
    """The facet of snapshots."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def list_snapshots(self, chat: int) -> list[SnapshotRow]:
        """Return the snapshots, newest first."""
        return await self._db.read(lambda db: list_snapshots(db, chat))

    async def find(self, chat: int, id: str) -> SnapshotRow | None:
        return await self._db.read(lambda db: find(db, chat, id))

    async def since(self, chat: int, limit: int, max_bytes: int) -> SnapshotBase:
        return await self._db.read(lambda db: since(db, chat, limit, max_bytes))

    async def turns_since(self, chat: int) -> int:
        """Return how many visible turns have ended since the newest snapshot."""
        return await self._db.read(lambda db: turns_since(db, chat))

    async def put(self, chat: int, epoch: str, row: SnapshotRow, most: int) -> None:
        await self._db.write(lambda db: put(db, chat, epoch, row, most))

    async def before_a_request(self, chat: int) -> tuple[StoredCompaction | None, PendingSnapshot | None]:
        """Return the compaction in force, and the snapshot that is pending for the next prompt."""
        return await self._db.read(
            lambda db: (compactions.current(db, chat), pending_snapshot.pending(db, chat))
        )


_COLUMNS = (
    "SELECT s.id, s.turn, s.reason, s.ts, s.course, coalesce(t.hidden, 1), coalesce(t.ordinal, 0),"
    " coalesce(t.last_seq, 0) FROM snapshots s LEFT JOIN turns t ON t.chat = s.chat AND t.id = s.turn"
)
_NEWEST = f"{_COLUMNS} WHERE s.chat = ? AND t.hidden = 0 ORDER BY t.ordinal DESC, s.ordinal DESC LIMIT 1"


def list_snapshots(db: Connection, chat: int) -> list[SnapshotRow]:
    """Return the snapshots, newest first."""
    return [_row(row) for row in db.execute(f"{_COLUMNS} WHERE s.chat = ? ORDER BY s.ordinal DESC", (chat,))]


def find(db: Connection, chat: int, id: str) -> SnapshotRow | None:
    row = db.execute(f"{_COLUMNS} WHERE s.chat = ? AND s.id = ?", (chat, id)).fetchone()
    return _row(row) if row else None


def since(db: Connection, chat: int, limit: int, max_bytes: int) -> SnapshotBase:
    row = db.execute(_NEWEST, (chat,)).fetchone()
    known = _row(row) if row else None
    page = turns.sent_before(db, chat, None, limit, max_bytes, known.ordinal if known else 0)
    ended = [turn for turn in page.turns if turn.status != "running"]
    first = turns.first_sent(db, chat) if known is None and page.before else None
    is_read = first is not None and any(turn.id == first.id for turn in ended)
    return SnapshotBase(known, ended, None if is_read else first)


def turns_since(db: Connection, chat: int) -> int:
    """Return how many visible turns have ended since the newest snapshot."""
    row = db.execute(_NEWEST, (chat,)).fetchone()
    query = "SELECT count(*) FROM turns WHERE chat = ? AND hidden = 0 AND status <> 'running' AND ordinal > ?"
    (count,) = db.execute(query, (chat, _row(row).ordinal if row else 0)).fetchone()
    return int(count)


def put(db: Connection, chat: int, epoch: str, row: SnapshotRow, most: int) -> None:
    """Store a snapshot, and keep the newest `most`. A chat that was purged or created again meanwhile gets
    none, and a turn no second one: another process may have been faster."""
    wanted = db.execute(
        "SELECT 1 FROM chats WHERE id = ?1 AND epoch = ?2 AND deleted = 0"
        " AND NOT EXISTS (SELECT 1 FROM snapshots WHERE chat = ?1 AND turn = ?3)",
        (chat, epoch, row.turn),
    ).fetchone()
    if not wanted:
        return
    db.execute(
        "INSERT INTO snapshots (chat, ordinal, id, turn, reason, ts, course) VALUES"
        " (?1, (SELECT coalesce(max(ordinal), 0) + 1 FROM snapshots WHERE chat = ?1), ?2, ?3, ?4, ?5, ?6)",
        (chat, row.id, row.turn, row.reason, row.ts, encode(row.session_state)),
    )
    db.execute(
        "DELETE FROM snapshots WHERE chat = ?1 AND ordinal NOT IN"
        " (SELECT ordinal FROM snapshots WHERE chat = ?1 ORDER BY ordinal DESC LIMIT ?2)",
        (chat, most),
    )


def _row(row: tuple[Any, ...]) -> SnapshotRow:
    id, turn, reason, ts, session_state, hidden, ordinal, seq = row
    return SnapshotRow(id, turn, reason, ts, decode(session_state), bool(hidden), ordinal, seq)
