"""Reads what can still be read of a damaged database: by SQLite as far as it gets, then out of the raw pages.

Which tables there are is asked of the file. Rows that carry their own proof (events by checksum, blobs by hash, chats
by their session id) are believed wherever they turn up; what contradicts its proof is left behind and counted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ..model.events import decode
from . import checksums, raw_pages
from .sqlite import FAULTS, Connection, connect

Row = tuple[Any, ...]

SESSION_ID = re.compile(r"sc-[a-z0-9-]*-?[0-9a-f]{16}")
_EVENT_TYPE = re.compile(r"[a-z]+(\.[a-zA-Z]+)?")
_EVENT = ("chat", "seq", "first", "ts", "turn", "type", "data", "pieces", "sum")
_BLOB = ("id", "data", "size", "mime_type", "name", "created_at")


class Table(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[str, ...]


class Source:
    """A damaged database, as a copy that nobody else uses and that may be changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable: dict[str, int] = {}
        """Tables of which SQLite could not read all, and how many rows contradicted their proof."""
        self._raw: list[raw_pages.Record] | None = None
        wal = Path(f"{path}-wal")
        self._wal = wal.read_bytes() if wal.exists() else b""  # before SQLite merges it, if it can
        self._db = self._opened()

    def close(self) -> None:
        if self._db:
            self._db.close()

    def tables(self) -> list[Table]:
        """The ordinary tables, without those that belong to a full-text index."""
        names: list[tuple[str, str]] = []
        with suppress(*FAULTS):
            query = "SELECT name, coalesce(sql, '') FROM sqlite_master WHERE type = 'table'"
            names = self._db.execute(query).fetchall() if self._db else []
        indexes = [name for name, sql in names if sql.upper().startswith("CREATE VIRTUAL")]
        shadows = tuple(f"{name}_" for name in indexes)
        found = []
        for name, sql in names:
            if name in indexes or name.startswith(("sqlite_", *shadows)) or not sql:
                continue
            with suppress(*FAULTS):
                assert self._db is not None
                rows = self._db.execute(f"PRAGMA table_info('{name}')").fetchall()
                found.append(Table(name, tuple(row[1] for row in rows)))
        return found

    def rows(self, table: Table) -> Iterator[Row]:
        """The rows from the first on, and when one cannot be read, from the last back to it."""
        assert self._db is not None
        key = self._key(table)
        for order in ("ASC", "DESC"):
            ordered = ", ".join(f"{column} {order}" for column in key)
            try:
                yield from self._db.execute(f"SELECT * FROM {table.name} NOT INDEXED ORDER BY {ordered}")
                return
            except FAULTS:
                self.unreadable.setdefault(table.name, 0)

    def events(self, table: Table | None) -> Iterator[Row]:
        yield from self._proven(table, _EVENT, is_event)

    def raw_events(self) -> Iterator[Row]:
        for record in self._records():
            if record.rowid is None and is_event(row := _padded(record.values, len(_EVENT))):
                yield row

    def blobs(self, table: Table | None) -> Iterator[Row]:
        yield from self._proven(table, _BLOB, is_blob)
        if table is None or table.name in self.unreadable:
            rows = (record.values[: len(_BLOB)] for record in self._records() if record.rowid is not None)
            yield from (row for row in rows if is_blob(row))

    def raw_chats(self, columns: int) -> Iterator[Row]:
        """Rows of chats, as many columns as the newest shape has."""
        for record in self._records():
            row = record.values
            named = len(row) > 20 and isinstance(row[1], str) and SESSION_ID.fullmatch(row[1])
            if record.rowid is not None and named:
                yield _padded((record.rowid, *row[1:]), columns)

    def session_ids(self) -> dict[int, str]:
        """Session ids by chat, out of the index that finds chats by them."""
        found: dict[int, str] = {}
        with suppress(*FAULTS):
            query = "SELECT id, session_id FROM chats INDEXED BY sqlite_autoindex_chats_1 ORDER BY session_id"
            for id, session in self._db.execute(query) if self._db else ():
                if isinstance(session, str) and SESSION_ID.fullmatch(session):
                    found[id] = session
        return found

    def _proven(
        self, table: Table | None, columns: tuple[str, ...], holds: Callable[[Row], bool]
    ) -> Iterator[Row]:
        if table is None:
            return
        places = [table.columns.index(name) if name in table.columns else None for name in columns]
        for row in self.rows(table):
            picked = tuple(None if place is None else row[place] for place in places)
            if holds(picked):
                yield picked
            else:
                self.unreadable[table.name] = self.unreadable.get(table.name, 0) + 1

    def _records(self) -> list[raw_pages.Record]:
        if self._raw is None:
            self._raw = list(raw_pages.records(raw_pages.image_of(self.path.read_bytes(), self._wal)))
        return self._raw

    def _key(self, table: Table) -> list[str]:
        assert self._db is not None
        info = self._db.execute(f"PRAGMA table_info('{table.name}')").fetchall()
        keys = [name for place, name in sorted((row[5], row[1]) for row in info if row[5])]
        sql = self._db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table.name,)).fetchone()[0]
        return keys if keys and "WITHOUT ROWID" in sql.upper() else ["rowid"]

    def _opened(self) -> Connection | None:
        try:
            db = connect(str(self.path), isolation_level=None, check_same_thread=False)
        except FAULTS:
            return None
        try:
            # A text that is no UTF-8 is one row's loss, not its table's.
            db.text_factory = lambda data: data.decode(errors="replace")
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except FAULTS:
            db.close()
            return None
        return db


def is_event(row: Row) -> bool:
    """Whether it is an event as it was written. One from before checksums must at least look like one."""
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
        return bool(sum == checksums.of_event(*row[:-1]))
    return _EVENT_TYPE.fullmatch(type) is not None and _is_json(data)


def is_blob(row: Row) -> bool:
    if len(row) != len(_BLOB) or not isinstance(row[0], str) or not isinstance(row[1], bytes):
        return False
    return hashlib.sha256(row[1]).hexdigest() == row[0]


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(decode(data), dict)
    except ValueError:
        return False


def _padded(row: Row, length: int) -> Row:
    return (*row, *[None] * (length - len(row)))[:length]
