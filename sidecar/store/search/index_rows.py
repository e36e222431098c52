"""Rows of the index: stored texts, their chunks and the words in them. Knows nothing of chunk borders,
queries or ranks.

The full-text tables are contentless, so a row is removed by passing exactly the text that was inserted: what
`full_text_rows` makes of a chunk must never change for existing rows.
"""

from __future__ import annotations

import re
import secrets
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ...model.events import encode
from ...model.index import IndexChunk, NewSource, Source, SourceKind
from ...system import clock
from ..engine.sqlite import Connection
from .index_search import OWNER_BITS, SearchBounds, conditions, of_owners

PART_CHARACTERS = 4 * 1024
"""Code points of a text per row: a chunk is decompressed in 30 microseconds."""

PART_BITS = 16
"""A text has at most 2 ** 16 parts, and so 256 MiB."""

MAX_LINE_CHARACTERS = 1000
"""Code points of a line in one entry; a longer line becomes several, so that all of it can be found."""

MAX_LINES = 400_000
"""Lines of a text that are indexed one by one; no log of 64 MiB has more. After them, only chunks are
indexed."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_KEY_LETTERS = 8

_WITHOUT_BLANKS = (
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007"
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese: each character counts as a word. The expression is compiled,
which takes two milliseconds, for the first such text."""

_SOURCE = (
    "s.key, s.label, s.kind, o.chat, c.session_id, o.project, s.tool, s.path, s.ts, s.bytes, s.lines, s.tokens,"
    " s.chunks, s.truncated"
)
_FROM = "index_sources s JOIN index_owners o ON o.id = s.owner LEFT JOIN chats c ON c.id = o.chat"


class TextFigures(msgspec.Struct, frozen=True):
    """Measurements of a text; `size` is in code points."""

    size: int
    bytes: int
    lines: int
    tokens: int
    truncated: bool


class PendingSource(msgspec.Struct, frozen=True):
    """A text that is not completely indexed, and how many of its code points are."""

    id: int
    kind: SourceKind
    label: str
    path: str | None
    size: int
    done: int


class IndexSlice(msgspec.Struct, frozen=True):
    """What one commit indexes: chunks with their texts, the words that occur here first, and how far it goes."""

    chunks: Sequence[tuple[IndexChunk, str]]
    spelled: str
    until: int
    last: bool = False
    tokens: int | None = None
    """Of the whole text, if they were counted."""


def compressed_parts(text: str) -> list[bytes]:
    """Compress a text into the parts of its rows."""
    return [
        # Cut by code points, not bytes: a part decodes by itself, and a position leads to its part by
        # division.
        zlib.compress(text[at : at + PART_CHARACTERS].encode(), 1)
        for at in range(0, len(text), PART_CHARACTERS)
    ]


def read_ranges(db: Connection, wanted: Sequence[tuple[int, int, int]]) -> list[str]:
    """Return ranges of texts, each given as source, start and end in code points."""
    ranges = [
        (
            (source << PART_BITS) + start // PART_CHARACTERS,
            (source << PART_BITS) + max(start, end - 1) // PART_CHARACTERS,
        )
        for source, start, end in wanted
    ]
    ids = {id for first, last in ranges for id in range(first, last + 1)}
    # CROSS JOIN fixes the order: the planner could otherwise scan all texts for a few ids.
    query = "SELECT t.id, t.data FROM json_each(?) j CROSS JOIN index_texts t ON t.id = j.value"
    parts = {id: _decompress([data]) for id, data in db.execute(query, (encode(sorted(ids)).decode(),))}
    found = []
    for (_, start, end), (first, last) in zip(wanted, ranges, strict=True):
        whole = "".join(parts.get(id, "") for id in range(first, last + 1))
        found.append(whole[start % PART_CHARACTERS : start % PART_CHARACTERS + end - start])
    return found


def put(db: Connection, new: NewSource, figures: TextFigures, parts: Sequence[bytes]) -> Source:
    owner, base = _allocate_places(db, new.chat, new.project, figures.size)
    now = clock.now()
    values = (new.label, new.kind, new.tool, new.path, new.hash, now, now)
    cursor = db.execute(
        "INSERT INTO index_sources (key, owner, base, label, kind, tool, path, hash, ts, used_at, size, bytes, lines,"
        " tokens, truncated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (_new_key(db), owner, base, *values, *msgspec.structs.astuple(figures)),
    )
    id = cursor.lastrowid
    assert id is not None
    db.executemany(
        "INSERT INTO index_texts (id, data) VALUES (?, ?)",
        [((id << PART_BITS) + at, data) for at, data in enumerate(parts)],
    )
    return by_id(db, id)


def _allocate_places(db: Connection, chat: int | None, project: str | None, size: int) -> tuple[int, int]:
    """Return the owner, and the first of `size` positions that are never used again for this owner."""
    found = db.execute(
        "SELECT id, used FROM index_owners"
        " WHERE ifnull(chat, -1) = ifnull(?, -1) AND ifnull(project, '') = ifnull(?, '')",
        (chat, project),
    ).fetchone()
    if not found:
        cursor = db.execute("INSERT INTO index_owners (chat, project) VALUES (?, ?)", (chat, project))
        found = (cursor.lastrowid, 0)
    owner, used = found
    # One more than the text needs: an empty text has a position of its own too.
    db.execute("UPDATE index_owners SET used = used + ? WHERE id = ?", (size + 1, owner))
    return owner, (owner << OWNER_BITS) + used


def is_waiting(db: Connection, chat: int | None, project: str | None) -> bool:
    owned, values = of_owners(chat, project)
    query = (
        f"SELECT 1 FROM index_sources s JOIN index_owners o ON o.id = s.owner WHERE s.pending = 1 AND {owned}"
    )
    return db.execute(query, values).fetchone() is not None


def has_any(db: Connection, chat: int, project: str | None) -> bool:
    owned, values = of_owners(chat, project)
    query = f"SELECT 1 FROM index_owners o JOIN index_sources s ON s.owner = o.id WHERE {owned} LIMIT 1"
    return db.execute(query, values).fetchone() is not None


def text(db: Connection, source: int) -> str | None:
    if db.execute("SELECT 1 FROM index_sources WHERE id = ?", (source,)).fetchone() is None:
        return None
    rows = db.execute("SELECT data FROM index_texts WHERE id BETWEEN ? AND ? ORDER BY id", parts(source))
    return _decompress(data for (data,) in rows)


def enter(db: Connection, source: int, done: int, slice: IndexSlice) -> bool:
    found = db.execute("SELECT base, done, pending FROM index_sources WHERE id = ?", (source,)).fetchone()
    # Another process has indexed this slice already, or the text was removed: entering it again would
    # double its hits.
    if found is None or found[1:] != (done, 1):
        return False
    base = found[0]
    db.executemany(
        "INSERT INTO index_chunks (id, source, size, first_line, last_line, title) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (base + chunk.start, source, chunk.end - chunk.start, *chunk.lines, chunk.title)
            for chunk, _ in slice.chunks
        ],
    )
    words, lines = full_text_rows(
        (base + chunk.start, chunk.lines[0], chunk.title, text) for chunk, text in slice.chunks
    )
    db.executemany("INSERT INTO index_words (rowid, text) VALUES (?, ?)", words)
    db.executemany("INSERT INTO index_lines (rowid, text) VALUES (?, ?)", lines)
    if slice.spelled:
        db.execute("INSERT INTO index_spelled (id, words) VALUES (?, ?)", (base + done, slice.spelled))
        db.execute("INSERT INTO index_letters (rowid, words) VALUES (?, ?)", (base + done, slice.spelled))
    db.execute(
        "UPDATE index_sources SET chunks = chunks + ?, done = ?, pending = ?, tokens = coalesce(?, tokens)"
        " WHERE id = ?",
        (len(slice.chunks), slice.until, not slice.last, slice.tokens, source),
    )
    return True


def full_text_rows(
    chunks: Iterable[tuple[int, int, str, str]],
) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return the rows of both full-text tables for chunks given as position, first line, title and text."""
    words: list[tuple[int, str]] = []
    lines: list[tuple[int, str]] = []
    for place, first, title, text in chunks:
        spaced = _space_scripts(text)
        words.append((place, f"{_space_scripts(title)}\n{spaced}" if title else spaced))
        if first <= MAX_LINES:
            lines += _line_rows(place, text, plain=spaced is text)
    return words, lines


def _line_rows(place: int, text: str, *, plain: bool) -> list[tuple[int, str]]:
    rows = []
    for line in text.split("\n"):
        if len(line) > MAX_LINE_CHARACTERS:
            for at in range(0, len(line), MAX_LINE_CHARACTERS):
                rows.append((place + at, line[at : at + MAX_LINE_CHARACTERS]))
        elif len(line) > 2:
            rows.append((place, line))
        place += len(line) + 1
    return rows if plain else [(at, _space_scripts(line)) for at, line in rows]


def _space_scripts(text: str) -> str:
    """Return the text as the index reads it; the same object when there is nothing to separate."""
    return text if text.isascii() else re.sub(_WITHOUT_BLANKS, r" \1 ", text)


def row(db: Connection, key: str) -> tuple[int, Source] | None:
    found = db.execute("SELECT id FROM index_sources WHERE key = ? AND owner > 0", (key,)).fetchone()
    return (found[0], by_id(db, found[0])) if found else None


def by_id(db: Connection, id: int) -> Source:
    return _source(db.execute(f"SELECT {_SOURCE} FROM {_FROM} WHERE s.id = ?", (id,)).fetchone())


def by_path(
    db: Connection, path: str, chat: int | None, project: str | None
) -> tuple[Source, str | None] | None:
    found = db.execute(
        f"SELECT s.hash, {_SOURCE} FROM {_FROM} WHERE s.path = ? AND o.chat IS ? AND o.project IS ? AND s.kind = 'file'"
        " ORDER BY s.id DESC",
        (path, chat, project),
    ).fetchone()
    return (_source(found[1:]), found[0]) if found else None


def chunk_at(db: Connection, source: int, start: int) -> IndexChunk | None:
    found = db.execute(
        "SELECT k.size, k.first_line, k.last_line, k.title FROM index_sources s JOIN index_chunks k"
        " ON k.id = s.base + ?2 AND k.source = s.id WHERE s.id = ?1",
        (source, start),
    ).fetchone()
    return IndexChunk(start, start + found[0], (found[1], found[2]), found[3]) if found else None


def chunks_from(db: Connection, source: int, start: int, limit: int) -> list[IndexChunk]:
    """Return the chunks that start at a code point of the text or after it, in their order."""
    rows = db.execute(
        "SELECT k.id - s.base, k.size, k.first_line, k.last_line, k.title FROM index_sources s"
        " JOIN index_chunks k ON k.id BETWEEN s.base + ?2 AND s.base + s.size AND k.source = s.id"
        " WHERE s.id = ?1 ORDER BY k.id LIMIT ?3",
        (source, start, limit),
    )
    return [IndexChunk(at, at + size, (first, last), title) for at, size, first, last, title in rows]


def page(db: Connection, bounds: SearchBounds, before: int | None, limit: int) -> list[tuple[int, Source]]:
    where, values = conditions(bounds)
    rows = db.execute(
        f"SELECT s.id, {_SOURCE} FROM {_FROM} WHERE {where} AND s.id < ? ORDER BY s.id DESC LIMIT ?",
        (*values, before if before is not None else 1 << 62, limit),
    )
    return [(row[0], _source(row[1:])) for row in rows]


def _new_key(db: Connection) -> str:
    while True:
        key = "out:" + "".join(secrets.choice(_LETTERS) for _ in range(_KEY_LETTERS))
        if db.execute("SELECT 1 FROM index_sources WHERE key = ?", (key,)).fetchone() is None:
            return key


def parts(source: int) -> tuple[int, int]:
    return source << PART_BITS, ((source + 1) << PART_BITS) - 1


def _decompress(parts: Iterable[bytes]) -> str:
    return "".join(zlib.decompress(data).decode() for data in parts)


def _source(row: tuple[Any, ...]) -> Source:
    source = Source(*row)
    return msgspec.structs.replace(source, truncated=bool(source.truncated))
