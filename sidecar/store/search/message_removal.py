"""Removes a long message from the full-text tables piece by piece, from its end.

SQLite takes the words of a whole text out in one statement: two seconds for 4 MiB. The text gets shorter with each
piece, and its row is deleted like any other when what is left is short. Only for messages that are hidden from every
search: words of a removed piece are no longer found in the rest.
"""

from __future__ import annotations

import re

from ..engine.sqlite import Connection
from ..tables.checksums import message_checksum

PIECE_CHARACTERS = 64 * 1024
"""Code points that one step takes out of the full-text tables: about 25 ms."""

LONG_CHARACTERS = 2 * PIECE_CHARACTERS
"""A longer text is removed in pieces."""

_SEPARATOR = re.compile("[\\s!-/:-@\\[-`{-~\u3000-\u3002\uff0c]")
"""Characters that are part of no word in any of the tables, so that a cut before one divides no word."""


def remove_piece(db: Connection, chat: int) -> int:
    """Remove a piece of the next message of a chat if that is long; return its code points, or 0."""
    row = db.execute("SELECT id, length(text) FROM messages WHERE chat = ? LIMIT 1", (chat,)).fetchone()
    if row is None:
        return 0
    id, size = row
    return (_shorten(db, id) if size > LONG_CHARACTERS else 0) or _shorten_parts(db, id)


def _shorten(db: Connection, id: int) -> int:
    query = "SELECT turn, item, role, ts, text, chat, sum FROM messages WHERE id = ?"
    turn, item, role, ts, text, chat, checksum = db.execute(query, (id,)).fetchone()
    rest = _rest(text)
    if rest == text:
        return 0
    for table in ("words", "stems"):
        _take_out(db, table, id, text[len(rest) :])
    if checksum is not None:
        checksum = message_checksum(chat, turn, item, role, ts, rest)
    db.execute("UPDATE messages SET text = ?, sum = ? WHERE id = ?", (rest, checksum, id))
    return len(text) - len(rest)


def _shorten_parts(db: Connection, id: int) -> int:
    query = "SELECT text FROM message_part_texts WHERE id = ? AND length(text) > ?"
    found = db.execute(query, (id, LONG_CHARACTERS)).fetchone()
    if found is None or (rest := _rest(found[0])) == found[0]:
        return 0
    _take_out(db, "message_parts", id, found[0][len(rest) :])
    db.execute("UPDATE message_part_texts SET text = ? WHERE id = ?", (rest, id))
    return len(found[0]) - len(rest)


def _rest(text: str) -> str:
    """Return the text without its last piece; all of it when no cut is possible."""
    cut = _SEPARATOR.search(text, len(text) - PIECE_CHARACTERS)
    return text[: cut.start()] if cut else text


def _take_out(db: Connection, table: str, id: int, piece: str) -> None:
    db.execute(f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", (id, piece))
    # The table now counts one row less, and the row is still there.
    db.execute(f"INSERT INTO {table} (rowid, text) VALUES (?, '')", (id,))
