"""Opens a SQLite database of another program to read it: without a lock, a journal or any other trace beside it.

The only place outside of `store` with SQL, as these tables are not ours.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from ..store.engine import sqlite
from .records import READ_BYTES, Unreadable, opened

MAX_DATABASE_BYTES = 8 * 1024 * 1024 * 1024
QUERY_S = 60.0
"""How long one query may take: a database may define a view that never ends."""

COPIES = 3
"""Tries to copy a database while its program writes to it."""

_STEPS = 10_000


class ForeignDatabase:
    """A database as it was when it was opened. Its copy, if it has one, is removed with the object."""

    def __init__(self, path: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="sidecar-")
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        copied = os.path.join(self._folder, "copy.db")
        _copy(path, copied)
        try:
            address = f"file:{quote(copied)}?mode=rw"
            self._db = sqlite.connect(address, uri=True, check_same_thread=False)
            self._db.execute("PRAGMA trusted_schema = OFF")
            self._db.execute("PRAGMA query_only = ON")
        except (sqlite.Error, OSError) as error:
            raise Unreadable(f"it is no database that can be read: {error}") from error
        self._until = 0.0
        self._db.set_progress_handler(lambda: time.monotonic() > self._until, _STEPS)

    def rows(self, query: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query; Unreadable where the database is damaged."""
        self._until = time.monotonic() + QUERY_S
        try:
            yield from self._db.execute(query, values)
        except (sqlite.Error, OverflowError, UnicodeDecodeError) as error:
            raise Unreadable(f"the database cannot be read: {error}") from error

    def columns(self, table: str) -> set[str]:
        return {name for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", (table,))}


def _copy(path: str, target: str) -> None:
    """Copy the database with what its log holds; again when the program has written meanwhile."""
    for _ in range(COPIES):
        before = _state(path)
        _copy_file(path, target)
        if os.path.exists(f"{path}-wal"):
            _copy_file(f"{path}-wal", f"{target}-wal")
        if _state(path) == before:
            return
    raise Unreadable("its program writes to it without a pause; end it and try again")


def _copy_file(path: str, target: str) -> None:
    with opened(path) as source, open(target, "wb") as copy:
        if os.fstat(source.fileno()).st_size > MAX_DATABASE_BYTES:
            raise Unreadable(f"it has more than {MAX_DATABASE_BYTES} bytes")
        shutil.copyfileobj(source, copy, READ_BYTES)


def _state(path: str) -> list[tuple[int, int]]:
    states: list[tuple[int, int]] = []
    for file in (path, f"{path}-wal"):
        try:
            found = os.stat(file)
        except OSError:
            continue
        states.append((found.st_size, found.st_mtime_ns))
    return states
