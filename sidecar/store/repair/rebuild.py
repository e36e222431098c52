"""Rebuilds a chat from its salvaged events: fills the gaps, then derives all other rows.

Seqs stay dense. Each gap is filled with notices, and with the ends and beginnings of turns that the events
around it require.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ...model.events import NewEvent, StoredEvent, decode
from ...model.failures import StorageFailed
from ...settings.engine_keys import NATIVE_ENGINE
from ..engine.sqlite import Connection, DatabaseError
from ..tables import journal
from ..tables.projections import Projection

logger = logging.getLogger(__name__)

CHUNK = 500
"""Events derived at once."""

MAX_GAP = 100_000
"""A longer gap means that a seq is garbage: the events after it are dropped."""


class RebuiltChat(msgspec.Struct, frozen=True):
    """The result for a chat: its events, and the lost seqs."""

    saved: int
    last_seq: int
    gaps: list[tuple[int, int]]


def rebuild(db: Connection, chat: int, expected_seqs: int) -> RebuiltChat:
    """Fill the gaps of a chat's journal and derive its other rows. `expected_seqs` is the last seq that it
    had."""
    spans = db.execute("SELECT first, seq FROM events WHERE chat = ? ORDER BY seq", (chat,)).fetchall()
    saved = sum(seq - first + 1 for first, seq in spans)
    gaps, last = _gaps(spans)
    db.execute("DELETE FROM events WHERE chat = ? AND seq > ?", (chat, last))
    for gap in gaps:
        _fill(db, chat, gap)
    # One by one after a loss: an event that contradicts the gap must not take 499 others with it.
    _derive(db, chat, 1 if gaps else CHUNK)
    db.execute("UPDATE chats SET last_seq = ? WHERE id = ?", (last, chat))
    if last < expected_seqs <= last + MAX_GAP:
        gaps.append((last + 1, expected_seqs))
    return RebuiltChat(saved, last, gaps)


def _gaps(spans: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], int]:
    """Return the missing seqs before the newest event, and the newest seq."""
    gaps: list[tuple[int, int]] = []
    last = 0
    for first, seq in spans:
        if first - last - 1 > MAX_GAP:
            break
        if first > last + 1:
            gaps.append((last + 1, first - 1))
        last = max(last, seq)
    return gaps, last


def _fill(db: Connection, chat: int, gap: tuple[int, int]) -> None:
    start, end = gap
    ts = db.execute(
        "SELECT ts FROM events WHERE chat = ? AND seq > ? ORDER BY seq LIMIT 1", (chat, end)
    ).fetchone()[0]
    # The seqs of the gap are filled exactly, so that the events after it keep theirs.
    needed = _missing_events(db, chat, gap)[-(end - start + 1) :]
    notice = {"code": "events_lost", "params": {"from": start, "to": end}}
    made = [NewEvent("notice", notice) for _ in range(end - start + 1 - len(needed))] + needed
    journal.insert(db, chat, journal.number(made, start - 1, ts))


def _missing_events(db: Connection, chat: int, gap: tuple[int, int]) -> list[NewEvent]:
    """Return the events that the gap must have contained: the end of the turn before it, the start of the
    turn after it."""
    before = _open_turn(db, chat, gap[0])
    row = db.execute(
        "SELECT turn, type, data FROM events WHERE chat = ? AND seq > ? AND turn IS NOT NULL ORDER BY seq LIMIT 1",
        (chat, gap[1]),
    ).fetchone()
    behind, type, data = row if row else (None, "", b"{}")
    if behind == before:
        return []
    made = [NewEvent("turn.ended", {"reason": "interrupted", "usage": {}}, before)] if before else []
    if (
        behind is None
        or type in ("prompt.accepted", "prompt.queued")
        or _was_started(db, chat, behind, gap[0])
    ):
        return made
    prompt = decode(data).get("promptId") if type == "turn.started" else None
    known = _prompt_of_turn(db, chat, behind, gap[0])
    name = prompt or known or f"lost-{behind}"
    if not known:
        accepted = {"promptId": name, "turnId": behind, "delivery": "queue"}
        made.append(NewEvent("prompt.accepted", accepted, behind))
    if type != "turn.started":
        started = {"promptId": name, "model": "unknown", "engine": NATIVE_ENGINE}
        made.append(NewEvent("turn.started", started, behind))
    return made


def _prompt_of_turn(db: Connection, chat: int, turn: str, seq: int) -> str | None:
    """Return the prompt of a turn, if it was salvaged."""
    query = "SELECT data FROM events WHERE chat = ? AND seq < ? AND turn = ? AND type = 'prompt.accepted'"
    row = db.execute(query, (chat, seq, turn)).fetchone()
    return str(decode(row[0])["promptId"]) if row else None


def _open_turn(db: Connection, chat: int, seq: int) -> str | None:
    """Return the turn that had started and not ended before `seq`."""
    row = db.execute(
        "SELECT turn, type FROM events WHERE chat = ? AND seq < ? AND type IN ('turn.started', 'turn.ended')"
        " ORDER BY seq DESC LIMIT 1",
        (chat, seq),
    ).fetchone()
    return str(row[0]) if row and row[1] == "turn.started" else None


def _was_started(db: Connection, chat: int, turn: str, seq: int) -> bool:
    query = "SELECT 1 FROM events WHERE chat = ? AND seq < ? AND turn = ? AND type = 'turn.started' LIMIT 1"
    return db.execute(query, (chat, seq, turn)).fetchone() is not None


def _derive(db: Connection, chat: int, size: int) -> None:
    for events in _chunks(db, chat, size):
        db.execute("SAVEPOINT derived")
        try:
            projection = Projection(db, chat)
            for event in events:
                projection.take(event, live=False)
            projection.finish()
        except (DatabaseError, KeyError, TypeError, ValueError, AssertionError) as error:
            # The events stay; the rows derived from them would contradict rows that the gap affected.
            db.execute("ROLLBACK TO derived")
            logger.warning(
                "rows cannot be derived from events", extra={"seq": events[0].seq, "error": str(error)[:200]}
            )
        db.execute("RELEASE derived")


def _chunks(db: Connection, chat: int, size: int) -> Iterator[list[StoredEvent]]:
    seq = 0
    while rows := db.execute(
        "SELECT chat, seq, first, ts, turn, type, data, pieces, sum FROM events WHERE chat = ? AND seq > ?"
        " ORDER BY seq LIMIT ?",
        (chat, seq, size),
    ).fetchall():
        events: list[Any] = []
        for row in rows:
            seq = row[1]
            try:
                events.append(journal.event_of(row))
            except StorageFailed:  # was checked when it was salvaged
                continue
        yield events
