"""Looks a whole database through: SQLite's own check, checksums, dense seqs, blobs by their hash, full-text indexes.

Reads and changes nothing. Works beside processes that use the database: each part sees one moment of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from . import checksums
from .sqlite import FAULTS, Connection

Progress = Callable[[str, int, int], None]
"""Is told the part, how much of it is done, and how much there is."""

STEP = 2000
"""Rows between two words to `Progress`."""

_GARBAGE = (TypeError, ValueError, AttributeError)
"""What comes of values of a kind that is never written."""

MAX_PROBLEMS = 200
"""Of one kind: more tell nothing new."""


class Problem(msgspec.Struct, frozen=True):
    """`index` is a full-text index, which is made anew from the rows; all else is damage."""

    kind: Literal["file", "event", "seq", "message", "blob", "index"]
    message: str

    def __str__(self) -> str:
        return self.message


class Counts(msgspec.Struct):
    """How much was looked at."""

    events: int = 0
    messages: int = 0
    blobs: int = 0
    chats: int = 0
    indexes: int = 0
    unsummed: int = 0
    """Rows from before there were checksums."""


def problems(
    db: Connection, progress: Progress = lambda part, done, total: None, counts: Counts | None = None
) -> Iterator[Problem]:
    counts = counts or Counts()
    for check in (_file, _events, _messages, _blobs, _indexes):
        try:
            yield from check(db, progress, counts)
        except (*FAULTS, *_GARBAGE) as error:
            kind: Literal["file", "index"] = "index" if check is _indexes else "file"
            yield Problem(kind, f"{check.__name__[1:]}: {error}")


def _file(db: Connection, progress: Progress, counts: Counts) -> Iterator[Problem]:
    progress("file", 0, 1)
    for (text,) in db.execute(f"PRAGMA integrity_check({MAX_PROBLEMS})"):
        if text != "ok":
            # SQLite looks through full-text indexes too, and says so.
            kind: Literal["file", "index"] = "index" if "fts5" in text.lower() else "file"
            yield Problem(kind, text)
    progress("file", 1, 1)


def _events(db: Connection, progress: Progress, counts: Counts) -> Iterator[Problem]:
    (total,) = db.execute("SELECT count(*) FROM events").fetchone()
    reached: dict[int, int] = {}
    db.execute("BEGIN")  # one moment, or a chat would seem to end early
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
                counts.unsummed += 1
            elif sum != checksums.of_event(*columns):
                yield Problem("event", f"chat {chat}: event {seq} is not what was written")
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


def _messages(db: Connection, progress: Progress, counts: Counts) -> Iterator[Problem]:
    (total,) = db.execute("SELECT count(*) FROM messages").fetchone()
    rows = db.execute("SELECT id, chat, turn, item, role, ts, text, sum FROM messages ORDER BY id")
    for done, (id, *columns, sum) in enumerate(rows, 1):
        if sum is None:
            counts.unsummed += 1
        elif sum != checksums.of_message(*columns):
            yield Problem("message", f"chat {columns[0]}: message {id} is not what was written")
        if done % STEP == 0:
            progress("messages", done, total)
        counts.messages += 1
    progress("messages", total, total)


def _blobs(db: Connection, progress: Progress, counts: Counts) -> Iterator[Problem]:
    (total,) = db.execute("SELECT count(*) FROM blobs").fetchone()
    for done, (id, data) in enumerate(db.execute("SELECT id, data FROM blobs"), 1):
        if hashlib.sha256(data).hexdigest() != id:
            yield Problem("blob", f"blob {id[:16]}… is not what was put")
        progress("blobs", done, total)
        counts.blobs += 1
    progress("blobs", total, total)


def index_problems(db: Connection) -> Iterator[Problem]:
    """What is wrong with the full-text indexes alone."""
    return _indexes(db, lambda part, done, total: None, Counts())


def _indexes(db: Connection, progress: Progress, counts: Counts) -> Iterator[Problem]:
    names = full_text_indexes(db)
    for done, name in enumerate(names):
        progress("indexes", done, len(names))
        counts.indexes += 1
        try:
            db.execute(f"INSERT INTO {name} ({name}, rank) VALUES ('integrity-check', 1)")
        except FAULTS as error:
            yield Problem("index", f"the full-text index {name} is out of step: {error}")
    progress("indexes", len(names), len(names))


def full_text_indexes(db: Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%'"
    return [name for (name,) in db.execute(query)]
