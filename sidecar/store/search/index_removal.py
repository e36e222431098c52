"""Removes texts from the index, with all of their words.

A text that is to be removed first loses its owner, which hides it from every query. Then its words, chunks and
rows are removed in slices, one short transaction each (`remove_slice`); after an interruption the next start
goes on. Deleted words are first marked in the full-text tables, which is fast, and then merged away in steps
(`scrub`): SQLite's own way to remove them at once takes twenty seconds for ten megabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...model.index import NewSource, RemovalCounts
from ..engine.sqlite import Connection
from .index_rows import full_text_rows, parts, read_ranges

MERGED_PAGES = 400
"""Pages that one step of scrubbing rewrites: about 10 ms, which is how long others may wait for the writer."""

NO_OWNER = 0
"""The owner of a text that is being removed. Ids of owners start at 1, and queries join the owner."""

MERGED_BETWEEN = 64
"""Pages of one full-text table that a part of a removal merges."""

CHUNK_ROWS = 32
"""As how many rows a chunk counts: its words are also removed from the full-text tables."""

SMALL_INDEX_PAGES = 1000
"""An empty full-text table with fewer pages is emptied at once; a larger one is merged in steps."""

_FULL_TEXT = ("index_words", "index_lines", "index_letters")
MESSAGE_TABLES = ("words", "stems", "grams", "message_parts")
_RESIDUE = {"index_residue": _FULL_TEXT, "message_residue": MESSAGE_TABLES}
"""Counters that say whether deleted words are still in pages of full-text tables."""


def mark_chat(db: Connection, chat: int) -> RemovalCounts:
    """Mark everything of a chat, in the transaction of the caller that deletes it."""
    return mark_owners(db, "chat = ?", chat)


def mark_older(db: Connection, new: NewSource) -> None:
    """Mark the previous text of a file of the same owner."""
    if new.path is not None:
        query = (
            "SELECT s.id FROM index_sources s JOIN index_owners o ON o.id = s.owner"
            " WHERE s.path = ? AND s.kind = ? AND o.chat IS ? AND o.project IS ?"
        )
        older = db.execute(query, (new.path, new.kind, new.chat, new.project)).fetchall()
        mark(db, [id for (id,) in older], scrub=False)


def mark_project(db: Connection, project: str) -> RemovalCounts:
    return mark_owners(db, "project = ?", project)


def mark_all(db: Connection) -> RemovalCounts:
    return mark_owners(db, "?", 1)


def expired_or_excess(db: Connection, before: int, max_bytes: int) -> list[str]:
    """Return the sources that were last used before `before`, and those beyond `max_bytes`, by their last use."""
    (left,) = db.execute("SELECT coalesce(sum(bytes), 0) FROM index_sources WHERE owner > 0").fetchone()
    keys = []
    query = "SELECT key, used_at, bytes FROM index_sources WHERE owner > 0 ORDER BY used_at, id"
    for key, used, size in db.execute(query):
        if used >= before and left <= max_bytes:
            break
        keys.append(key)
        left -= size
    return keys


def mark_keys(db: Connection, keys: Sequence[str], *, scrub: bool = True) -> RemovalCounts:
    query = "SELECT id FROM index_sources WHERE key = ? AND owner > 0"
    ids = [id for key in dict.fromkeys(keys) for (id,) in db.execute(query, (key,)).fetchall()]
    return mark(db, ids, scrub=scrub)


def mark_owners(db: Connection, where: str, value: Any) -> RemovalCounts:
    owners = [id for (id,) in db.execute(f"SELECT id FROM index_owners WHERE {where}", (value,))]
    query = "SELECT id FROM index_sources WHERE owner = ?"
    marked = mark(db, [id for owner in owners for (id,) in db.execute(query, (owner,)).fetchall()])
    db.executemany("DELETE FROM index_owners WHERE id = ?", [(owner,) for owner in owners])
    return marked


def mark(db: Connection, sources: Sequence[int], *, scrub: bool = True) -> RemovalCounts:
    """Hide texts that are to be removed, and count them; `remove_slice` removes them."""
    counts = RemovalCounts()
    for source in sources:
        held = db.execute("SELECT 1, chunks, bytes FROM index_sources WHERE id = ?", (source,)).fetchone()
        counts = counts.plus(RemovalCounts(*held))
    db.executemany(
        # One update hides a text from every query, since all of them join the owner; removing its rows takes
        # many transactions.
        "UPDATE index_sources SET owner = ?, pending = 0 WHERE id = ?",
        [(NO_OWNER, id) for id in sources],
    )
    if sources and scrub:
        _set_residue(db, "index_residue", True)
    return counts


def has_marked(db: Connection) -> bool:
    return (
        db.execute("SELECT 1 FROM index_sources WHERE owner = ? LIMIT 1", (NO_OWNER,)).fetchone() is not None
    )


def remove_slice(db: Connection, most: int) -> int | None:
    """Remove about `most` rows of marked texts, chunks and parts; None when there is no marked text."""
    done = 0
    query = "SELECT id, base, size FROM index_sources WHERE owner = ? LIMIT 1"
    while done < most and (found := db.execute(query, (NO_OWNER,)).fetchone()):
        source, base, size = found
        done += _remove_some(db, source, base, size, most - done)
    return done or None


def _remove_some(db: Connection, source: int, base: int, size: int, most: int) -> int:
    """Remove the last chunks of a text, then its last parts, then its row; return as how many rows they count."""
    rows = db.execute(
        # From the end: what is left is always a complete beginning, so an interrupted removal goes on without
        # a record of where it was.
        "SELECT id, first_line, title, size FROM index_chunks WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?",
        (base, base + size, max(1, most // CHUNK_ROWS)),
    ).fetchall()
    if rows:
        _remove_chunks(db, source, base, rows)
        _remove_spelled(db, rows[-1][0], base + size)
        return CHUNK_ROWS * len(rows)
    _remove_spelled(db, base, base + size)
    first, last = parts(source)
    held = db.execute(
        "SELECT id FROM index_texts WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?", (first, last, most)
    ).fetchall()
    db.executemany("DELETE FROM index_texts WHERE id = ?", held)
    if len(held) < most:
        db.execute("DELETE FROM index_sources WHERE id = ?", (source,))
        _empty_small_tables(db)
    return len(held) + 1


def _remove_chunks(db: Connection, source: int, base: int, rows: Sequence[tuple[int, int, str, int]]) -> None:
    ranges = [(source, id - base, id - base + length) for id, _, _, length in rows]
    texts = read_ranges(db, ranges)
    words, lines = full_text_rows(
        (id, first, title, text) for (id, first, title, _), text in zip(rows, texts, strict=True)
    )
    # A full-text table without content needs the exact text that was inserted; with another one it keeps
    # words of deleted rows.
    db.executemany("INSERT INTO index_words (index_words, rowid, text) VALUES ('delete', ?, ?)", words)
    db.executemany("INSERT INTO index_lines (index_lines, rowid, text) VALUES ('delete', ?, ?)", lines)
    db.executemany("DELETE FROM index_chunks WHERE id = ?", [(id,) for id, *_ in rows])


def _remove_spelled(db: Connection, first: int, last: int) -> None:
    db.execute(
        "INSERT INTO index_letters (index_letters, rowid, words)"
        " SELECT 'delete', id, words FROM index_spelled WHERE id BETWEEN ? AND ?",
        (first, last),
    )
    db.execute("DELETE FROM index_spelled WHERE id BETWEEN ? AND ?", (first, last))


def _empty_small_tables(db: Connection) -> None:
    """Empty the full-text tables at once if no text is left and they are small."""
    if db.execute("SELECT 1 FROM index_sources").fetchone():
        return
    for table in _FULL_TEXT:
        count = f"SELECT count(*) FROM (SELECT 1 FROM {table}_data LIMIT {SMALL_INDEX_PAGES})"
        if db.execute(count).fetchone()[0] == SMALL_INDEX_PAGES:
            return
    for table in _FULL_TEXT:
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
    _set_residue(db, "index_residue", False)


def mark_messages(db: Connection, chat: int) -> None:
    """Note that words of a chat's messages, which are about to be deleted, must be merged away.

    The tables may be set to remove words at once, by an earlier version: that takes 30 ms per message.
    """
    if db.execute("SELECT 1 FROM messages WHERE chat = ? LIMIT 1", (chat,)).fetchone() is None:
        return
    for table in MESSAGE_TABLES:
        if db.execute(f"SELECT 1 FROM {table}_config WHERE k = 'secure-delete' AND v").fetchone():
            db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', 0)")
    _set_residue(db, "message_residue", True)


def merge_some(db: Connection, table: str) -> None:
    """Merge a little of a full-text table from which many rows are removed.

    Otherwise SQLite does that itself, rarely and then for all tables in one transaction, also of another chat.
    """
    db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (MERGED_BETWEEN,))


def has_residue(db: Connection) -> bool:
    return bool(_residues(db))


def _residues(db: Connection) -> list[str]:
    rows = db.execute(
        "SELECT name FROM counters WHERE value = 1 AND name IN ('index_residue', 'message_residue')"
    )
    return [name for (name,) in rows]


def _set_residue(db: Connection, name: str, residue: bool) -> None:
    db.execute(
        "INSERT INTO counters VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (name, residue)
    )


def reindex(db: Connection) -> None:
    """Remove all words and chunks; the texts wait to be indexed again."""
    for table in ("index_words", "index_lines", "index_letters"):
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
    db.execute("DELETE FROM index_spelled")
    db.execute("DELETE FROM index_chunks")
    db.execute("UPDATE index_sources SET chunks = 0, done = 0, pending = 1 WHERE owner > 0")


def scrub(db: Connection, pages: int = MERGED_PAGES) -> None:
    """Run one merge step; when nothing is left to merge, no deleted word is left either."""
    for name in _residues(db):
        for table in _RESIDUE[name]:
            before = db.total_changes
            db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-pages,))
            if db.total_changes - before >= 2:
                return
        _set_residue(db, name, False)
