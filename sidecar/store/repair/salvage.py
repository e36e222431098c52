"""Reads what is readable of a damaged database: with SQLite as far as possible, then from the raw pages.

The file says which tables exist. Rows that can be verified (events by checksum, blobs by hash, chats by their
session id) are accepted wherever they are found; rows that fail verification are dropped and counted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ...model.events import decode
from ..engine.sqlite import STORAGE_ERRORS, Connection, connect
from ..tables import chats, checksums
from . import raw_pages

RawRow = tuple[Any, ...]

SESSION_ID = re.compile(r"sc-[a-z0-9-]*-?[0-9a-f]{16}")
_EVENT_TYPE = re.compile(r"[a-z]+(\.[a-zA-Z]+)?")
_EVENT = ("chat", "seq", "first", "ts", "turn", "type", "data", "pieces", "sum")
_KEY = ("chat", "session_id", "namespace", "kind", "key")
_BLOB = ("id", "data", "size", "mime_type", "name", "created_at")


class SalvageTable(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[str, ...]


class DamagedDatabase:
    """A damaged database, as a private copy that may be changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable: dict[str, int] = {}
        """Tables that SQLite could not read completely, and how many rows failed verification."""
        self._raw: list[raw_pages.RawRecord] | None = None
        wal = Path(f"{path}-wal")
        self._wal = wal.read_bytes() if wal.exists() else b""  # before SQLite merges it, if it can
        self._db = self._try_connect()

    def close(self) -> None:
        if self._db:
            self._db.close()

    def tables(self) -> list[SalvageTable]:
        """Return the ordinary tables, without those that belong to a full-text index."""
        names: list[tuple[str, str]] = []
        with suppress(*STORAGE_ERRORS):
            query = "SELECT name, coalesce(sql, '') FROM sqlite_master WHERE type = 'table'"
            names = self._db.execute(query).fetchall() if self._db else []
        indexes = [name for name, sql in names if sql.upper().startswith("CREATE VIRTUAL")]
        shadows = tuple(f"{name}_" for name in indexes)
        found = []
        for name, sql in names:
            if name in indexes or name.startswith(("sqlite_", *shadows)) or not sql:
                continue
            with suppress(*STORAGE_ERRORS):
                assert self._db is not None
                rows = self._db.execute(f"PRAGMA table_info('{name}')").fetchall()
                found.append(SalvageTable(name, tuple(row[1] for row in rows)))
        return found

    def rows(self, table: SalvageTable) -> Iterator[RawRow]:
        """Return the rows from the first one on and, when one cannot be read, from the last one back to it."""
        assert self._db is not None
        key = self._key(table)
        # A damaged page ends a scan. From the other end, everything behind it is still reached, up to the
        # same page.
        for order in ("ASC", "DESC"):
            ordered = ", ".join(f"{column} {order}" for column in key)
            try:
                yield from self._db.execute(f"SELECT * FROM {table.name} NOT INDEXED ORDER BY {ordered}")
                return
            except STORAGE_ERRORS:
                self.unreadable.setdefault(table.name, 0)

    def events(self, table: SalvageTable | None) -> Iterator[RawRow]:
        yield from self._verified_rows(table, _EVENT, is_event)

    def raw_events(self) -> Iterator[RawRow]:
        for record in self._records():
            if record.rowid is None and is_event(row := _pad_row(record.values, len(_EVENT))):
                yield row

    def blobs(self, table: SalvageTable | None) -> Iterator[RawRow]:
        yield from self._verified_rows(table, _BLOB, is_blob)
        if table is None or table.name in self.unreadable:
            rows = (record.values[: len(_BLOB)] for record in self._records() if record.rowid is not None)
            yield from (row for row in rows if is_blob(row))

    def raw_chats(self, columns: int) -> Iterator[RawRow]:
        """Return rows of chats with as many columns as the newest schema, the newest version of each first."""
        for record in reversed(self._records()):
            row = record.values
            named = len(row) > 20 and isinstance(row[1], str) and SESSION_ID.fullmatch(row[1])
            if record.rowid is not None and named:
                yield _pad_row((record.rowid, *row[1:]), columns)

    def keys(self, table: SalvageTable | None) -> Iterator[RawRow]:
        """Return chat, session id, namespace, kind and key from the table that stores them a second time."""
        if table is not None:
            yield from (row for row in self.rows(table) if is_key(row))
        if table is None or table.name in self.unreadable or "chats" in self.unreadable:
            rows = ((record.rowid, *record.values[1:]) for record in reversed(self._records()))
            yield from (row for row in rows if is_key(row))

    def session_ids(self) -> dict[int, str]:
        """Return session ids by chat, from the index on that column."""
        found: dict[int, str] = {}
        with suppress(*STORAGE_ERRORS):
            query = "SELECT id, session_id FROM chats INDEXED BY sqlite_autoindex_chats_1 ORDER BY session_id"
            for id, session in self._db.execute(query) if self._db else ():
                if isinstance(session, str) and SESSION_ID.fullmatch(session):
                    found[id] = session
        return found

    def _verified_rows(
        self, table: SalvageTable | None, columns: tuple[str, ...], holds: Callable[[RawRow], bool]
    ) -> Iterator[RawRow]:
        if table is None:
            return
        places = [table.columns.index(name) if name in table.columns else None for name in columns]
        for row in self.rows(table):
            picked = tuple(None if place is None else row[place] for place in places)
            if holds(picked):
                yield picked
            else:
                self.unreadable[table.name] = self.unreadable.get(table.name, 0) + 1

    def _records(self) -> list[raw_pages.RawRecord]:
        if self._raw is None:
            self._raw = list(raw_pages.records(raw_pages.image_of(self.path.read_bytes(), self._wal)))
        return self._raw

    def _key(self, table: SalvageTable) -> list[str]:
        assert self._db is not None
        info = self._db.execute(f"PRAGMA table_info('{table.name}')").fetchall()
        keys = [name for place, name in sorted((row[5], row[1]) for row in info if row[5])]
        sql = self._db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table.name,)).fetchone()[0]
        return keys if keys and "WITHOUT ROWID" in sql.upper() else ["rowid"]

    def _try_connect(self) -> Connection | None:
        try:
            db = connect(str(self.path), isolation_level=None, check_same_thread=False)
        except STORAGE_ERRORS:
            return None
        try:
            # Text that is not UTF-8 costs one row, not the whole table.
            db.text_factory = lambda data: data.decode(errors="replace")
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except STORAGE_ERRORS:
            db.close()
            return None
        return db


def is_event(row: RawRow) -> bool:
    """Return whether a row is an event as it was written. One without a checksum must at least have the form
    of one."""
    chat, seq, first, ts, turn, type, data, pieces, sum = row
    shaped = (
        all(isinstance(value, int) for value in (chat, seq, first, ts))
        and isinstance(turn, str | None)
        and isinstance(type, str)
        and isinstance(data, bytes)
        and isinstance(pieces, bytes | None)
        and 0 < first <= seq
    )
    if not shaped:
        return False
    if sum is not None:
        return bool(sum == checksums.event_checksum(*row[:-1]))
    return _EVENT_TYPE.fullmatch(type) is not None and _is_json(data)


def is_blob(row: RawRow) -> bool:
    if len(row) != len(_BLOB) or not isinstance(row[0], str) or not isinstance(row[1], bytes):
        return False
    return hashlib.sha256(row[1]).hexdigest() == row[0]


def is_key(row: RawRow) -> bool:
    """Return whether a row is the key of a chat: the session id is derived from the rest."""
    if len(row) != len(_KEY) or not isinstance(row[0], int):
        return False
    return all(isinstance(value, str) for value in row[1:]) and chats.names_session(*row[1:])


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(decode(data), dict)
    except ValueError:
        return False


def _pad_row(row: RawRow, length: int) -> RawRow:
    return (*row, *[None] * (length - len(row)))[:length]
