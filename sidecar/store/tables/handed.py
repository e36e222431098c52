"""Rows of `handed_requests`: what one process asks the owner of a chat to do, and the outcomes. SQL for it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...model.chats import Lease
from ..engine.sqlite import Connection
from . import leases

SILENT_MS = 3_000
"""An owner that has not taken a request by then gets no other chance to: the sender refuses the request."""

LOST_MS = 3_600_000
"""Nobody waits that long for an outcome: the sender has died."""


class HandedRow(msgspec.Struct, frozen=True):
    """A request to execute."""

    id: str
    chat: int
    request: str


class HandedState(msgspec.Struct, frozen=True):
    """How far a request is, and who has the lease of its chat. `known` is False when the row was removed."""

    known: bool
    taken: bool
    outcome: str | None
    lease: Lease | None


def put(db: Connection, row: HandedRow, now: int) -> None:
    """Hand a request over; also remove what dead senders left, or what was sent before a reboot."""
    db.execute("DELETE FROM handed_requests WHERE sent < ? OR sent > ?", (now - LOST_MS, now))
    db.execute(
        "INSERT INTO handed_requests (id, chat, sent, request) VALUES (?, ?, ?, ?)",
        (row.id, row.chat, now, row.request),
    )


def any_waiting(db: Connection, chats: Sequence[int], now: int) -> bool:
    """Return whether there is a request for one of these chats."""
    return bool(_waiting(db, chats, now))


def take(db: Connection, chats: Sequence[int], now: int) -> list[HandedRow]:
    """Take the requests for these chats, in the order in which they were sent."""
    found = _waiting(db, chats, now)
    db.executemany("UPDATE handed_requests SET taken = 1 WHERE id = ?", [(row.id,) for row in found])
    return found


def finish(db: Connection, id: str, outcome: str) -> None:
    db.execute("UPDATE handed_requests SET outcome = ? WHERE id = ?", (outcome, id))


def state(db: Connection, id: str, chat: int) -> HandedState:
    row = db.execute("SELECT taken, outcome FROM handed_requests WHERE id = ?", (id,)).fetchone()
    taken, outcome = row or (0, None)
    return HandedState(row is not None, bool(taken), outcome, leases.read(db, chat))


def withdraw(db: Connection, id: str) -> bool:
    """Remove a request that nobody has taken; False when somebody has."""
    return db.execute("DELETE FROM handed_requests WHERE id = ? AND taken = 0", (id,)).rowcount > 0


def remove(db: Connection, id: str) -> None:
    db.execute("DELETE FROM handed_requests WHERE id = ?", (id,))


def _waiting(db: Connection, chats: Sequence[int], now: int) -> list[HandedRow]:
    marks = ", ".join("?" * len(chats))
    rows = db.execute(
        f"SELECT id, chat, request FROM handed_requests WHERE chat IN ({marks}) AND taken = 0"
        " AND sent > ? AND sent <= ? ORDER BY rowid",
        (*chats, now - SILENT_MS, now),
    )
    return [HandedRow(*row) for row in rows]
