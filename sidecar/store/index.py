"""Rows of the index: kept texts, their chunks and the words in them. Every statement about them stands here.

Decides nothing about borders, queries or ranks. What reaches MATCH is made of quoted tokens by the caller; whose words
may be found is bound by ranges of ids and parameters, never by text.
"""

from __future__ import annotations

import secrets
import time
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from ..model.index import Chunk, Found, NewSource, Removed, Source, SourceKind
from .database import Database
from .sqlite import Connection

PART = 16 * 1024
"""Code points of a text in one row: small enough that a snippet unpacks in a tenth of a millisecond."""

PART_BITS = 16
OWNER_BITS = 40
"""How the ids are made: a text of 64 MiB has 4,096 parts, and an owner room for a million million chunks."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_KEY_LETTERS = 8

_SOURCE = (
    "s.key, s.label, s.kind, o.chat, c.session_id, o.project, s.tool, s.path, s.ts, s.bytes, s.lines, s.tokens,"
    " s.chunks, s.truncated, s.stale"
)
_FROM = "index_sources s JOIN index_owners o ON o.id = s.owner LEFT JOIN chats c ON c.id = o.chat"


class Pending(msgspec.Struct, frozen=True):
    """A text that is not wholly indexed: its row, whose it is, how far it is done."""

    id: int
    kind: SourceKind
    label: str
    path: str | None
    done: int


class IndexStore:
    """`Index`'s hold of the database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(self, new: NewSource, figures: Figures, parts: Sequence[bytes]) -> Source:
        """Keep a text; its words come later. A source of the same owner and path makes room for it."""
        return await self._db.write(lambda db: put(db, new, figures, parts))

    async def pending(self) -> list[Pending]:
        return await self._db.read(pending)

    async def text(self, source: int) -> str | None:
        return await self._db.read(lambda db: text(db, source))

    async def enter(
        self, source: int, done: int, chunks: Sequence[tuple[Chunk, str]], until: int | None
    ) -> bool:
        """Add chunks with their texts after `done`, up to `until` (None: that was all); False when another has."""
        return await self._db.write(lambda db: enter(db, source, done, chunks, until))

    async def row(self, key: str) -> tuple[int, Source] | None:
        return await self._db.read(lambda db: row(db, key))

    async def by_path(
        self, path: str, chat: int | None, project: str | None
    ) -> tuple[Source, str | None] | None:
        """The source of a file, and the hash that it had."""
        return await self._db.read(lambda db: by_path(db, path, chat, project))

    async def chunk(self, source: int, ordinal: int) -> Chunk | None:
        return await self._db.read(lambda db: chunk(db, source, ordinal))

    async def find(self, match: str, bounds: Bounds, limit: int) -> list[Found]:
        return await self._db.read(lambda db: find(db, match, bounds, limit))

    async def page(self, bounds: Bounds, before: int | None, limit: int) -> list[tuple[int, Source]]:
        return await self._db.read(lambda db: page(db, bounds, before, limit))

    async def remove(self, keys: Sequence[str]) -> Removed:
        return await self._db.write(lambda db: remove(db, keys))

    async def remove_chat(self, chat: int) -> Removed:
        return await self._db.write(lambda db: remove_chat(db, chat))

    async def remove_project(self, project: str) -> Removed:
        return await self._db.write(lambda db: remove_project(db, project))

    async def expire(self, before: int, max_bytes: int) -> Removed:
        """Remove what nobody used since `before`, and then the least recently used until the rest fits."""
        return await self._db.write(lambda db: expire(db, before, max_bytes))

    async def touch(self, keys: Sequence[str]) -> None:
        await self._db.write(lambda db: touch(db, keys))


class Figures(msgspec.Struct, frozen=True):
    bytes: int
    lines: int
    tokens: int
    truncated: bool


class Bounds(msgspec.Struct, frozen=True):
    """Which sources count: those of a chat, of a project, or all; and of these, only some."""

    chat: int | None = None
    project: str | None = None
    source: str | None = None
    tool: str | None = None
    kind: SourceKind | None = None


def put(db: Connection, new: NewSource, figures: Figures, parts: Sequence[bytes]) -> Source:
    owner = _owner(db, new.chat, new.project)
    if new.path is not None:
        replaced = "SELECT id FROM index_sources WHERE path = ? AND owner = ? AND kind = ?"
        _remove(db, [id for (id,) in db.execute(replaced, (new.path, owner, new.kind))])
    now = _now()
    cursor = db.execute(
        "INSERT INTO index_sources (key, owner, label, kind, tool, path, hash, ts, used_at, bytes, lines,"
        " tokens, truncated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            _new_key(db),
            owner,
            new.label,
            new.kind,
            new.tool,
            new.path,
            new.hash,
            now,
            now,
            figures.bytes,
            figures.lines,
            figures.tokens,
            figures.truncated,
        ),
    )
    id = cursor.lastrowid
    assert id is not None
    db.executemany(
        "INSERT INTO index_texts (id, data) VALUES (?, ?)",
        [((id << PART_BITS) + at, data) for at, data in enumerate(parts)],
    )
    return _source(db.execute(f"SELECT {_SOURCE} FROM {_FROM} WHERE s.id = ?", (id,)).fetchone())


def pending(db: Connection) -> list[Pending]:
    query = "SELECT id, kind, label, path, done FROM index_sources WHERE pending = 1 ORDER BY id"
    return [Pending(*row) for row in db.execute(query)]


def text(db: Connection, source: int) -> str | None:
    """The whole text; None when the source is gone."""
    if db.execute("SELECT 1 FROM index_sources WHERE id = ?", (source,)).fetchone() is None:
        return None
    rows = db.execute(
        "SELECT data FROM index_texts WHERE id BETWEEN ? AND ? ORDER BY id",
        (source << PART_BITS, ((source + 1) << PART_BITS) - 1),
    )
    return "".join(unpacked(data) for (data,) in rows)


def stretch(db: Connection, source: int, start: int, end: int) -> str:
    """The code points of a text from `start` to `end`."""
    first = start // PART
    rows = db.execute(
        "SELECT data FROM index_texts WHERE id BETWEEN ? AND ? ORDER BY id",
        ((source << PART_BITS) + first, (source << PART_BITS) + max(first, (end - 1) // PART)),
    )
    return "".join(unpacked(data) for (data,) in rows)[start - first * PART : end - first * PART]


def enter(
    db: Connection, source: int, done: int, chunks: Sequence[tuple[Chunk, str]], until: int | None
) -> bool:
    found = db.execute("SELECT owner, done, pending FROM index_sources WHERE id = ?", (source,)).fetchone()
    if found is None or found[1] != done or not found[2]:
        return False
    owner = found[0]
    (used,) = db.execute("SELECT chunks FROM index_owners WHERE id = ?", (owner,)).fetchone()
    base = (owner << OWNER_BITS) + used
    db.executemany(
        "INSERT INTO index_chunks (id, source, first_line, last_line, start, end, title) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (base + at, source, *chunk.lines, chunk.start, chunk.end, chunk.title)
            for at, (chunk, _) in enumerate(chunks)
        ],
    )
    db.executemany(
        "INSERT INTO index_words (rowid, title, text) VALUES (?, ?, ?)",
        [(base + at, chunk.title, text) for at, (chunk, text) in enumerate(chunks)],
    )
    db.execute("UPDATE index_owners SET chunks = chunks + ? WHERE id = ?", (len(chunks), owner))
    db.execute(
        "UPDATE index_sources SET chunks = chunks + ?, done = ?, pending = ? WHERE id = ?",
        (len(chunks), done if until is None else until, until is not None, source),
    )
    return True


def row(db: Connection, key: str) -> tuple[int, Source] | None:
    found = db.execute(f"SELECT s.id, {_SOURCE} FROM {_FROM} WHERE s.key = ?", (key,)).fetchone()
    return (found[0], _source(found[1:])) if found else None


def by_path(
    db: Connection, path: str, chat: int | None, project: str | None
) -> tuple[Source, str | None] | None:
    found = db.execute(
        f"SELECT s.hash, {_SOURCE} FROM {_FROM} WHERE s.path = ? AND o.chat IS ? AND o.project IS ? AND s.kind = 'file'"
        " ORDER BY s.id DESC",
        (path, chat, project),
    ).fetchone()
    return (_source(found[1:]), found[0]) if found else None


def chunk(db: Connection, source: int, ordinal: int) -> Chunk | None:
    found = db.execute(
        "SELECT first_line, last_line, start, end, title FROM index_chunks WHERE source = ?"
        " ORDER BY start LIMIT 1 OFFSET ?",
        (source, ordinal),
    ).fetchone()
    return Chunk(found[2], found[3], (found[0], found[1]), found[4]) if found else None


def find(db: Connection, match: str, bounds: Bounds, limit: int) -> list[Found]:
    where, values = _where(bounds)
    rows = db.execute(
        "SELECT k.id, k.source, k.first_line, k.last_line, k.start, k.end, k.title,"
        " (SELECT count(*) FROM index_chunks b WHERE b.source = k.source AND b.start < k.start),"
        f" bm25(index_words, 4.0, 1.0), {_SOURCE} FROM index_words w JOIN index_chunks k ON k.id = w.rowid"
        " JOIN index_sources s ON s.id = k.source JOIN index_owners o ON o.id = s.owner"
        " LEFT JOIN chats c ON c.id = o.chat"
        f" WHERE index_words MATCH ? AND {where} ORDER BY w.rank LIMIT ?",
        (match, *values, limit),
    ).fetchall()
    return [
        Found(
            source=_source(row[9:]),
            chunk=Chunk(row[4], row[5], (row[2], row[3]), row[6]),
            ordinal=row[7],
            score=-row[8],
            text=stretch(db, row[1], row[4], row[5]),
        )
        for row in rows
    ]


def page(db: Connection, bounds: Bounds, before: int | None, limit: int) -> list[tuple[int, Source]]:
    where, values = _where(bounds)
    if before is not None:
        where, values = where + " AND s.id < ?", [*values, before]
    rows = db.execute(
        f"SELECT s.id, {_SOURCE} FROM {_FROM} WHERE {where} ORDER BY s.id DESC LIMIT ?", (*values, limit)
    )
    return [(row[0], _source(row[1:])) for row in rows]


def remove(db: Connection, keys: Sequence[str]) -> Removed:
    query = "SELECT id FROM index_sources WHERE key = ?"
    return _remove(db, [id for key in keys for (id,) in db.execute(query, (key,))])


def remove_chat(db: Connection, chat: int) -> Removed:
    return _remove_owners(db, "chat = ?", chat)


def remove_project(db: Connection, project: str) -> Removed:
    return _remove_owners(db, "project = ?", project)


def expire(db: Connection, before: int, max_bytes: int) -> Removed:
    old = [id for (id,) in db.execute("SELECT id FROM index_sources WHERE used_at < ?", (before,))]
    removed = _remove(db, old)
    (total,) = db.execute("SELECT coalesce(sum(bytes), 0) FROM index_sources").fetchone()
    over = []
    for id, size in db.execute("SELECT id, bytes FROM index_sources ORDER BY used_at, id"):
        if total <= max_bytes:
            break
        over.append(id)
        total -= size
    more = _remove(db, over)
    return Removed(removed.sources + more.sources, removed.chunks + more.chunks, removed.bytes + more.bytes)


def touch(db: Connection, keys: Sequence[str]) -> None:
    now = _now()
    db.executemany("UPDATE index_sources SET used_at = ? WHERE key = ?", [(now, key) for key in keys])


def packed(text: str) -> list[bytes]:
    """A text as its rows hold it."""
    return [zlib.compress(text[at : at + PART].encode(), 1) for at in range(0, len(text), PART)]


def unpacked(data: bytes) -> str:
    return zlib.decompress(data).decode()


def _remove_owners(db: Connection, where: str, value: Any) -> Removed:
    owners = [id for (id,) in db.execute(f"SELECT id FROM index_owners WHERE {where}", (value,))]
    query = "SELECT id FROM index_sources WHERE owner = ?"
    removed = _remove(db, [id for owner in owners for (id,) in db.execute(query, (owner,))])
    db.executemany("DELETE FROM index_owners WHERE id = ?", [(owner,) for owner in owners])
    return removed


def _remove(db: Connection, sources: Sequence[int]) -> Removed:
    chunks = size = 0
    for source in sources:
        whole = text(db, source) or ""
        rows = db.execute(
            "SELECT id, title, start, end FROM index_chunks WHERE source = ?", (source,)
        ).fetchall()
        db.executemany(
            "INSERT INTO index_words (index_words, rowid, title, text) VALUES ('delete', ?, ?, ?)",
            [(id, title, whole[start:end]) for id, title, start, end in rows],
        )
        db.execute("DELETE FROM index_chunks WHERE source = ?", (source,))
        db.execute(
            "DELETE FROM index_texts WHERE id BETWEEN ? AND ?",
            (source << PART_BITS, ((source + 1) << PART_BITS) - 1),
        )
        (held,) = db.execute("SELECT bytes FROM index_sources WHERE id = ?", (source,)).fetchone()
        db.execute("DELETE FROM index_sources WHERE id = ?", (source,))
        chunks, size = chunks + len(rows), size + held
    return Removed(len(sources), chunks, size)


def _owner(db: Connection, chat: int | None, project: str | None) -> int:
    found = db.execute(
        "SELECT id FROM index_owners WHERE chat IS ? AND project IS ?", (chat, project)
    ).fetchone()
    if found:
        return int(found[0])
    cursor = db.execute("INSERT INTO index_owners (chat, project) VALUES (?, ?)", (chat, project))
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _new_key(db: Connection) -> str:
    while True:
        key = "out:" + "".join(secrets.choice(_LETTERS) for _ in range(_KEY_LETTERS))
        if db.execute("SELECT 1 FROM index_sources WHERE key = ?", (key,)).fetchone() is None:
            return key


def _where(bounds: Bounds) -> tuple[str, list[Any]]:
    where = ["1"]
    values: list[Any] = []
    for column, value in (
        ("o.chat", bounds.chat),
        ("o.project", bounds.project),
        ("s.tool", bounds.tool),
        ("s.kind", bounds.kind),
    ):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if bounds.source is not None:
        where.append("(s.key = ? OR s.label = ?)")
        values += [bounds.source, bounds.source]
    return " AND ".join(where), values


def _source(row: tuple[Any, ...]) -> Source:
    source = Source(*row)
    return msgspec.structs.replace(source, truncated=bool(source.truncated), stale=bool(source.stale))


def _now() -> int:
    return time.time_ns() // 1_000_000
