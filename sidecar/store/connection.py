"""A connection to the database that lives in a thread of its own, and how each kind is set up. Knows no table."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from .sqlite import FAULTS, Connection, connect, storage_failure  # isort: skip  (before aiosqlite)

import aiosqlite

from ..model.failures import StorageFailed, no_memory

logger = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[Connection], T]

WAL_LIMIT_BYTES = 64 * 1024 * 1024
"""What the WAL file is cut back to after a checkpoint; a stuck reader must not leave a huge one behind."""

LOG_PAGES = 4000
"""A log of 16 MiB is begun anew by the commit that meets it; most of it has been moved by then, beside the commits."""

CACHE_KIB = 2048
"""Per connection. The working set of a turn is a few pages; a large cache would only cost memory."""


class Worker(aiosqlite.Connection):
    """A connection whose thread runs whole jobs: one hop a transaction instead of one a statement."""

    @classmethod
    async def open(
        cls, path: str, busy_timeout: float, *, query_only: bool = False, frozen: bool = False
    ) -> Worker:
        connect_to = (
            partial(_connect_frozen, path) if frozen else partial(_connect, path, busy_timeout, query_only)
        )
        worker = cls(connect_to, 64)
        # A worker that hangs in the file system must not keep the process from leaving.
        worker._thread.daemon = True
        try:
            await worker
        except FAULTS as error:
            raise storage_failure(error, path) from error
        except RuntimeError as error:  # no memory for one more thread
            raise no_memory() from error
        return worker

    async def call(self, job: Job[T]) -> T:
        if self._connection is None:
            raise StorageFailed("io", "The database is closed")
        result: T = await self._execute(job, self._connection)  # type: ignore[no-untyped-call]
        return result


def _connect(path: str, busy_timeout: float, query_only: bool) -> Connection:
    db = connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    db.execute(f"PRAGMA busy_timeout = {int(busy_timeout * 1000)}")
    if db.execute("PRAGMA page_count").fetchone() == (0,):
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only a blank database can be told
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    db.execute("PRAGMA secure_delete = ON")  # a deleted chat's words do not stay behind in free pages
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    if query_only:
        db.execute("PRAGMA query_only = ON")
    if logger.isEnabledFor(5):
        db.set_trace_callback(_Trace())
    return db


def _connect_frozen(path: str) -> Connection:
    """For a disk that nobody can write: SQLite needs no file beside the database then. What a log holds that was not
    yet moved into the database cannot be had from there, so such a database is refused."""
    if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
        raise StorageFailed(
            "readonly",
            "The disk is read-only, and the database was not closed on it: its log must be read first",
            action="check_permissions",
        )
    from urllib.parse import quote

    return connect(f"file:{quote(path)}?immutable=1", uri=True, isolation_level=None, check_same_thread=False)


class _Trace:
    """Logs each statement's text at trace level, with the time since the last one; never a value."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def __call__(self, statement: str) -> None:
        now = time.perf_counter()
        logger.log(
            5,
            "sql",
            extra={"sql": statement.partition("'")[0][:200], "ms": round((now - self._last) * 1000, 3)},
        )
        self._last = now
