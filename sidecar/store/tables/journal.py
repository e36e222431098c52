"""The journal: append events with dense seqs, read them from any cursor. SQL for `events` only."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ...model.events import NewEvent, StoredEvent, encode, part_after
from ...model.failures import Refused, StorageFailed
from ..engine.sqlite import Connection
from . import checksums

_INSERT = "INSERT INTO events (chat, seq, first, ts, turn, type, data, pieces, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_COLUMNS = "chat, seq, first, ts, turn, type, data, pieces, sum"

JournalRow = tuple[int, int, int, int, str | None, str, bytes, bytes | None, int | None]


def number(events: Sequence[NewEvent], last_seq: int, now: int) -> list[StoredEvent]:
    """Assign seqs to each event, dense after `last_seq`."""
    stored = []
    for event in events:
        first, last_seq = last_seq + 1, last_seq + event.width
        data = event.data if isinstance(event.data, bytes) else encode(event.data)
        ts = now if event.ts is None else event.ts
        stored.append(StoredEvent(last_seq, first, ts, event.turn_id, event.type, data, event.pieces))
    return stored


def insert(db: Connection, chat: int, events: Sequence[StoredEvent]) -> None:
    db.executemany(
        _INSERT,
        [_row(chat, event) for event in events],
    )


def read_after(db: Connection, chat: int, seq: int, limit: int, max_bytes: int) -> list[StoredEvent]:
    """Return the events after the cursor, at least one if there is one; the first may be the rest of a run."""
    events: list[StoredEvent] = []
    size = 0
    query = f"SELECT {_COLUMNS} FROM events WHERE chat = ? AND seq > ? ORDER BY seq LIMIT ?"
    for row in db.execute(query, (chat, seq, limit)):
        event = event_of(row)
        size += len(event.data)
        if events and size > max_bytes:
            break
        events.append(event)
    # The cursor may be in the middle of a run of deltas, which is one row.
    if events and (rest := part_after(events[0], seq)) is not None:
        events[0] = rest
    return events


def read_turn(db: Connection, chat: int, turn: str, first: int, last: int | None) -> list[StoredEvent]:
    """Return the events of one turn; without deltas if it has ended, because its items then contain their
    whole text."""
    wanted = "AND type NOT IN ('message.delta', 'thought.delta', 'tool.output')" if last else ""
    query = f"SELECT {_COLUMNS} FROM events WHERE chat = ? AND seq BETWEEN ? AND ? AND turn = ? {wanted} ORDER BY seq"
    return [event_of(row) for row in db.execute(query, (chat, first, last or 2**53, turn))]


def check_cursor(seq: int, last_seq: int, epoch: str, given: str) -> None:
    """Refuse a cursor that this chat never reached."""
    if epoch != given or not 0 <= seq <= last_seq:
        raise Refused(
            "cursor_expired",
            "The cursor is of another epoch" if epoch != given else f"`seq` must be between 0 and {last_seq}",
            facts={"epoch": epoch, "lastSeq": last_seq},
            hint='Open the chat with after: "tail"',
        )


def event_of(row: JournalRow) -> StoredEvent:
    """Return the event of a row as it was written; StorageFailed (corrupt) when the row does not match its
    checksum."""
    chat, seq, first, ts, turn, type, data, pieces, sum = row
    if sum is not None and sum != checksums.event_checksum(chat, seq, first, ts, turn, type, data, pieces):
        raise StorageFailed("corrupt", f"Event {seq} does not match its checksum", action="run_doctor")
    return StoredEvent(seq, first, ts, turn, type, data, _unpack(pieces))


def _row(chat: int, event: StoredEvent) -> JournalRow:
    pieces = _pack(event.pieces)
    columns = (chat, event.seq, event.first, event.ts, event.turn_id, event.type, event.data, pieces)
    return (*columns, checksums.event_checksum(*columns))


def _pack(pieces: tuple[int, ...]) -> bytes | None:
    return struct.pack(f"<{len(pieces)}I", *pieces) if len(pieces) > 1 else None


def _unpack(pieces: bytes | None) -> tuple[int, ...]:
    return struct.unpack(f"<{len(pieces) // 4}I", pieces) if pieces else ()
