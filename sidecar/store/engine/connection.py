"""A connection to the database with a thread of its own, and the settings of each kind of connection. Knows
no table."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from .sqlite import STORAGE_ERRORS, Connection, connect, storage_failure  # isort: skip  (before aiosqlite)

import aiosqlite

from ...model.failures import StorageFailed, out_of_memory
from .file_watch import DatabaseFiles, files_lost

logger = logging.getLogger(__name__)

T = TypeVar("T")
DatabaseJob = Callable[[Connection], T]

WAL_LIMIT_BYTES = 64 * 1024 * 1024
"""The size that the WAL file is truncated to after a checkpoint, so that a stuck reader leaves no huge file."""

LOG_PAGES = 4000
"""The commit that finds a log of 16 MiB restarts it. Most of it was checkpointed by then, concurrently to
commits."""

CACHE_KIB = 2048
"""Per connection. The working set of a turn is a few pages; a large cache would only cost memory."""


class DatabaseThread(aiosqlite.Connection):
    """A connection whose thread runs whole jobs: one thread switch per transaction instead of one per
    statement."""

    @classmethod
    async def open(
        cls,
        path: str,
        busy_timeout: float,
        *,
        query_only: bool = False,
        frozen: bool = False,
        beside: DatabaseFiles | None = None,
    ) -> DatabaseThread:
        """Connect; `beside` are the files of connections that this process already has."""
        connect_to = (
            partial(_connect_frozen, path)
            if frozen
            else partial(_connect, path, busy_timeout, query_only, beside)
        )
        worker = cls(connect_to, 64)
        # A thread that hangs in the file system must not prevent the process from exiting.
        worker._thread.daemon = True
        try:
            await worker
        except STORAGE_ERRORS as error:
            raise storage_failure(error, path) from error
        except RuntimeError as error:  # no memory for another thread
            raise out_of_memory() from error
        return worker

    async def call(self, job: DatabaseJob[T]) -> T:
        # aiosqlite would queue the call for a thread that has ended, and the caller would wait forever.
        if self._connection is None:
            raise StorageFailed("io", "The database is closed")
        result: T = await self._execute(job, self._connection)  # type: ignore[no-untyped-call]
        return result


def _connect(path: str, busy_timeout: float, query_only: bool, beside: DatabaseFiles | None) -> Connection:
    # A removed file must not be created again: the first opening of a database has created it.
    name = path if path == ":memory:" else f"{Path(path).absolute().as_uri()}?mode=rw"
    db = connect(
        name, uri=path != ":memory:", isolation_level=None, check_same_thread=False, cached_statements=256
    )
    # Before anything is read: another database at the path would use our log and its index, and SQLite empties
    # an index that only this process has locked, which ends the process by SIGBUS.
    if beside and (loss := beside.loss()):
        db.close()
        raise files_lost(loss)
    # The first statement: each of the following may meet a lock of another process.
    db.execute(f"PRAGMA busy_timeout = {int(busy_timeout * 1000)}")
    if db.execute("PRAGMA page_count").fetchone() == (0,):
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only an empty database accepts it
    # WAL: readers do not block the writer, in this process and in others. FULL: with NORMAL, power loss
    # takes acknowledged commits.
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    db.execute("PRAGMA secure_delete = ON")  # deleted text does not stay in free pages
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    # Not `mode=ro`: the connection that checkpoints is one of these, and it writes to the file.
    if query_only:
        db.execute("PRAGMA query_only = ON")
    if logger.isEnabledFor(5):
        db.set_trace_callback(_Trace())
    return db


def _connect_frozen(path: str) -> Connection:
    """Connect on a read-only disk, where SQLite needs no file beside the database. A database with a log that
    was not checkpointed is refused, because the log cannot be read there."""
    if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
        raise StorageFailed(
            "readonly",
            "The disk is read-only and the database was not closed: its log must be read first",
            action="check_permissions",
        )

    return connect(f"file:{quote(path)}?immutable=1", uri=True, isolation_level=None, check_same_thread=False)


class _Trace:
    """Logs the text of each statement at trace level, with the time since the previous one; never a value."""

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
