"""Checks a whole database: SQLite's integrity check, checksums, dense seqs, hashes of blobs, full-text
indexes.

Changes nothing. Runs while other processes use the database: each part reads in one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from ..engine.sqlite import STORAGE_ERRORS, Connection
from ..tables import checksums

ReportRows = Callable[[str, int, int], None]
"""Called with the part, how much of it is done, and how much there is."""

STEP = 2000
"""Rows between two calls of `ReportRows`."""

_DECODE_ERRORS = (TypeError, ValueError, AttributeError)
"""Raised by values of a type that is never written."""

MAX_PROBLEMS = 200
"""Per kind: more add no information."""


class Problem(msgspec.Struct, frozen=True):
    """`index` is a full-text index, which can be rebuilt from the rows; everything else is damage."""

    kind: Literal["file", "event", "seq", "message", "blob", "index"]
    message: str

    def __str__(self) -> str:
        return self.message


class CheckedCounts(msgspec.Struct):
    """How much was checked."""

    events: int = 0
    messages: int = 0
    blobs: int = 0
    chats: int = 0
    indexes: int = 0
    without_checksum: int = 0
    """Rows written before checksums were introduced."""


def problems(
    db: Connection, progress: ReportRows = lambda part, done, total: None, counts: CheckedCounts | None = None
) -> Iterator[Problem]:
    counts = counts or CheckedCounts()
    for check in (_file_problems, _event_problems, _message_problems, _blob_problems, _index_problems):
        try:
            yield from check(db, progress, counts)
        except (*STORAGE_ERRORS, *_DECODE_ERRORS) as error:
            kind: Literal["file", "index"] = "index" if check is _index_problems else "file"
            yield Problem(kind, f"{check.__name__[1:]}: {error}")


def _file_problems(db: Connection, progress: ReportRows, counts: CheckedCounts) -> Iterator[Problem]:
    progress("file", 0, 1)
    for (text,) in db.execute(f"PRAGMA integrity_check({MAX_PROBLEMS})"):
        if text != "ok":
            # SQLite's check includes full-text indexes and names them in its message.
            kind: Literal["file", "index"] = "index" if "fts5" in text.lower() else "file"
            yield Problem(kind, text)
    progress("file", 1, 1)


def _event_problems(db: Connection, progress: ReportRows, counts: CheckedCounts) -> Iterator[Problem]:
    (total,) = db.execute("SELECT count(*) FROM events").fetchone()
    reached: dict[int, int] = {}
    db.execute("BEGIN")  # one transaction, or a chat would seem to end early
    try:
        rows = db.execute(
            "SELECT chat, seq, first, ts, turn, type, data, pieces, sum FROM events ORDER BY chat, seq"
        )
        for done, (*columns, sum) in enumerate(rows, 1):
            chat, seq, first = columns[:3]
            if first != reached.get(chat, 0) + 1:
                yield Problem("seq", f"chat {chat}: after event {reached.get(chat, 0)} comes {first}")
            reached[chat] = seq
            if sum is None:
                counts.without_checksum += 1
            elif sum != checksums.event_checksum(*columns):
                yield Problem("event", f"chat {chat}: event {seq} does not match its checksum")
            if done % STEP == 0:
                progress("events", done, total)
            counts.events += 1
        for id, last in db.execute("SELECT id, last_seq FROM chats WHERE deleted = 0"):
            counts.chats += 1
            if reached.get(id, 0) != last:
                yield Problem("seq", f"chat {id}: ends at event {reached.get(id, 0)}, not at {last}")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
    progress("events", total, total)


def _message_problems(db: Connection, progress: ReportRows, counts: CheckedCounts) -> Iterator[Problem]:
    (total,) = db.execute("SELECT count(*) FROM messages").fetchone()
    rows = db.execute("SELECT id, chat, turn, item, role, ts, text, sum FROM messages ORDER BY id")
    for done, (id, *columns, sum) in enumerate(rows, 1):
        if sum is None:
            counts.without_checksum += 1
        elif sum != checksums.message_checksum(*columns):
            yield Problem("message", f"chat {columns[0]}: message {id} does not match its checksum")
        if done % STEP == 0:
            progress("messages", done, total)
        counts.messages += 1
    progress("messages", total, total)


def _blob_problems(db: Connection, progress: ReportRows, counts: CheckedCounts) -> Iterator[Problem]:
    (total,) = db.execute("SELECT count(*) FROM blobs").fetchone()
    for done, (id, data) in enumerate(db.execute("SELECT id, data FROM blobs"), 1):
        if hashlib.sha256(data).hexdigest() != id:
            yield Problem("blob", f"blob {id[:16]}… does not match its hash")
        progress("blobs", done, total)
        counts.blobs += 1
    progress("blobs", total, total)


def index_problems(db: Connection) -> Iterator[Problem]:
    """Return what is wrong with the full-text indexes only."""
    return _index_problems(db, lambda part, done, total: None, CheckedCounts())


def _index_problems(db: Connection, progress: ReportRows, counts: CheckedCounts) -> Iterator[Problem]:
    names = full_text_indexes(db)
    # A long message of a deleted chat is removed in pieces, and its rest does not match the indexes.
    removing = "SELECT 1 FROM chats WHERE deleted = 1 AND id IN (SELECT chat FROM messages) LIMIT 1"
    with_content = db.execute(removing).fetchone() is None
    for done, name in enumerate(names):
        progress("indexes", done, len(names))
        counts.indexes += 1
        try:
            check = f"INSERT INTO {name} ({name}, rank) VALUES ('integrity-check', ?)"
            db.execute(check, (int(with_content),))
        except STORAGE_ERRORS as error:
            yield Problem("index", f"the full-text index {name} does not match its table: {error}")
    progress("indexes", len(names), len(names))


def full_text_indexes(db: Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%'"
    return [name for (name,) in db.execute(query)]
