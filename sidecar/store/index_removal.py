"""Texts that leave the index, with every word of them.

Deleted words are first marked in the full-text tables, which is fast, and then merged away, step by step (`scrub`):
SQLite's own way to drop them at once takes twenty seconds for ten megabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..model.index import NewSource, Removed
from .index_rows import entries, parts, text
from .sqlite import Connection

MERGED_PAGES = 400
"""Pages that one step of scrubbing rewrites: some 10 ms, which is what others may wait for the writer."""

_FULL_TEXT = ("index_words", "index_lines", "index_letters")


def remove_chat(db: Connection, chat: int) -> Removed:
    """Everything of a chat, within the transaction of whoever deletes it."""
    return remove_owners(db, "chat = ?", chat)


def remove_older(db: Connection, new: NewSource) -> None:
    """The text that a file had before, of the same owner."""
    if new.path is not None:
        query = (
            "SELECT s.id FROM index_sources s JOIN index_owners o ON o.id = s.owner"
            " WHERE s.path = ? AND s.kind = ? AND o.chat IS ? AND o.project IS ?"
        )
        older = db.execute(query, (new.path, new.kind, new.chat, new.project)).fetchall()
        remove(db, [id for (id,) in older], scrub=False)


def remove_project(db: Connection, project: str) -> Removed:
    return remove_owners(db, "project = ?", project)


def remove_all(db: Connection) -> Removed:
    return remove_owners(db, "?", 1)


def oldest(db: Connection, before: int, max_bytes: int) -> list[str]:
    (left,) = db.execute("SELECT coalesce(sum(bytes), 0) FROM index_sources").fetchone()
    keys = []
    for key, used, size in db.execute("SELECT key, used_at, bytes FROM index_sources ORDER BY used_at, id"):
        if used >= before and left <= max_bytes:
            break
        keys.append(key)
        left -= size
    return keys


def remove_keys(db: Connection, keys: Sequence[str], *, scrub: bool = True) -> Removed:
    query = "SELECT id FROM index_sources WHERE key = ?"
    ids = [id for key in dict.fromkeys(keys) for (id,) in db.execute(query, (key,)).fetchall()]
    return remove(db, ids, scrub=scrub)


def remove_owners(db: Connection, where: str, value: Any) -> Removed:
    owners = [id for (id,) in db.execute(f"SELECT id FROM index_owners WHERE {where}", (value,))]
    query = "SELECT id FROM index_sources WHERE owner = ?"
    removed = remove(db, [id for owner in owners for (id,) in db.execute(query, (owner,)).fetchall()])
    db.executemany("DELETE FROM index_owners WHERE id = ?", [(owner,) for owner in owners])
    return removed


def remove(db: Connection, sources: Sequence[int], *, scrub: bool = True) -> Removed:
    removed = Removed()
    for source in sources:
        removed = removed.plus(_remove_one(db, source))
    if not sources:
        return removed
    empty = db.execute("SELECT 1 FROM index_sources").fetchone() is None
    if empty:
        for table in _FULL_TEXT:
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
    if empty or scrub:
        db.execute("UPDATE counters SET value = ? WHERE name = 'index_residue'", (not empty,))
    return removed


def _remove_one(db: Connection, source: int) -> Removed:
    base, size, held = db.execute(
        "SELECT base, size, bytes FROM index_sources WHERE id = ?", (source,)
    ).fetchone()
    whole = text(db, source) or ""
    rows = db.execute(
        "SELECT id, first_line, title, size FROM index_chunks WHERE id BETWEEN ? AND ?", (base, base + size)
    ).fetchall()
    words, lines = entries(
        (id, first, title, whole[id - base : id - base + length]) for id, first, title, length in rows
    )
    db.executemany("INSERT INTO index_words (index_words, rowid, text) VALUES ('delete', ?, ?)", words)
    db.executemany("INSERT INTO index_lines (index_lines, rowid, text) VALUES ('delete', ?, ?)", lines)
    db.execute(
        "INSERT INTO index_letters (index_letters, rowid, words)"
        " SELECT 'delete', id, words FROM index_spelled WHERE id BETWEEN ? AND ?",
        (base, base + size),
    )
    db.execute("DELETE FROM index_spelled WHERE id BETWEEN ? AND ?", (base, base + size))
    db.execute("DELETE FROM index_chunks WHERE id BETWEEN ? AND ?", (base, base + size))
    db.execute("DELETE FROM index_texts WHERE id BETWEEN ? AND ?", parts(source))
    db.execute("DELETE FROM index_sources WHERE id = ?", (source,))
    return Removed(1, len(rows), held)


def has_residue(db: Connection) -> bool:
    query = "SELECT value FROM counters WHERE name = 'index_residue'"
    return bool(db.execute(query).fetchone()[0])


def reindex(db: Connection) -> None:
    """Forget all words and chunks; the texts wait to be entered again."""
    for table in ("index_words", "index_lines", "index_letters"):
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
    db.execute("DELETE FROM index_spelled")
    db.execute("DELETE FROM index_chunks")
    db.execute("UPDATE index_sources SET chunks = 0, done = 0, pending = 1")


def scrub(db: Connection) -> None:
    """A step of merging; when nothing is left to merge, no deleted word is left either."""
    for table in _FULL_TEXT:
        before = db.total_changes
        db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-MERGED_PAGES,))
        if db.total_changes - before >= 2:
            return
    db.execute("UPDATE counters SET value = 0 WHERE name = 'index_residue'")
