"""Rows of `message_parts`: what the index of whole words misses in messages."""

from __future__ import annotations

from ...text.search_words import part_words
from ..engine.sqlite import Connection

FILLED_LETTERS = 20_000
"""Code points of old messages that one step adds to the index."""

_COUNTER = "message_parts"


def add_parts(db: Connection, message: int, text: str) -> None:
    """Add the parts of a message that has none in the index yet."""
    if words := part_words(text):
        db.execute("INSERT INTO message_part_texts (id, text) VALUES (?, ?)", (message, words))


def fill_slice(db: Connection, most: int) -> int | None:
    """Add up to `most` messages that wait, newest first; None when none does."""
    (newest,) = db.execute("SELECT value FROM counters WHERE name = ?", (_COUNTER,)).fetchone()
    if not newest:
        return None
    rows = db.execute(
        "SELECT id, text FROM messages WHERE id <= ? ORDER BY id DESC LIMIT ?", (newest, max(1, most))
    )
    left, done, last = FILLED_LETTERS, 0, 0
    for id, text in rows.fetchall():
        # It has parts if it took the number of a deleted message that waited, and after a rebuild.
        db.execute("DELETE FROM message_part_texts WHERE id = ?", (id,))
        add_parts(db, id, text)
        done, last, left = done + 1, id, left - len(text)
        if left < 0:
            break
    db.execute("UPDATE counters SET value = ? WHERE name = ?", (max(0, last - 1), _COUNTER))
    return done or None


def rebuild(db: Connection) -> None:
    """Rebuild the index from the stored parts; all messages wait to have theirs computed again."""
    db.execute("INSERT INTO message_parts (message_parts) VALUES ('rebuild')")
    db.execute("DELETE FROM message_part_texts WHERE id NOT IN (SELECT id FROM messages)")
    db.execute(
        "INSERT INTO counters VALUES (?, (SELECT coalesce(max(id), 0) FROM messages))"
        " ON CONFLICT DO UPDATE SET value = excluded.value",
        (_COUNTER,),
    )
