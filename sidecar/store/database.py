"""Two connections to one file: one that writes whole transactions, one that reads. Knows no table.

Group commit: jobs that wait while a transaction runs share the next one. The writer is a task of its own, so
cancelling a caller never leaves a transaction open; the job it handed over is still carried out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from .sqlite import Connection, DatabaseError, connect, storage_failure  # isort: skip  (before aiosqlite)

import aiosqlite

from ..model.failures import StorageFailed

logger = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[Connection], T]

WAL_LIMIT_BYTES = 64 * 1024 * 1024
"""What the WAL file is cut back to after a checkpoint; a stuck reader must not leave a huge one behind."""

CACHE_KIB = 2048
"""Per connection. The working set of a turn is a few pages; a large cache would only cost memory."""


class Database:
    """`write` runs a job in a transaction of its own or a shared one; `read` runs one outside of any."""

    def __init__(self, path: str, busy_timeout: float) -> None:
        self.path = path
        self._busy_timeout = busy_timeout
        self._writer: _Worker | None = None
        self._reader: _Worker | None = None
        self._waiting: list[_Pending[Any]] = []
        self._wake = anyio.Event()
        self._closing = False

    @property
    def in_memory(self) -> bool:
        return self.path == ":memory:"

    async def open(self, tasks: TaskGroup) -> None:
        self._writer = await _Worker.open(self.path, self._busy_timeout)
        # A database in memory belongs to one connection; every job is whole, so reads may share it.
        self._reader = (
            self._writer
            if self.in_memory
            else await _Worker.open(self.path, self._busy_timeout, query_only=True)
        )
        tasks.start_soon(self._commit_forever)

    async def write(self, job: Job[T]) -> T:
        """Run `job` in a transaction and return what it returned, once that is on disk."""
        if self._closing or self._writer is None:
            raise StorageFailed("io", "The database is closed")
        pending = _Pending(job)
        self._waiting.append(pending)
        self._wake.set()
        return await pending.outcome()

    async def read(self, job: Job[T]) -> T:
        """Run `job` on the reading connection. Its snapshot lasts as long as the job, never across an await."""
        if self._reader is None:
            raise StorageFailed("io", "The database is closed")
        try:
            return await self._reader.call(partial(_in_snapshot, job))
        except DatabaseError as error:
            raise storage_failure(error) from error

    async def changed_elsewhere(self) -> int:
        """A number that changes when another process commits."""
        if self._writer is None:
            raise StorageFailed("io", "The database is closed")
        version: int = await self._writer.call(lambda db: db.execute("PRAGMA data_version").fetchone()[0])
        return version

    async def exclusively(self, job: Job[T]) -> T:
        """Run `job` on the writing connection, outside of a transaction and between two of them."""
        if self._writer is None:
            raise StorageFailed("io", "The database is closed")
        try:
            return await self._writer.call(job)
        except DatabaseError as error:
            raise storage_failure(error) from error

    async def close(self) -> None:
        """Commit what waits, then close both connections."""
        self._closing = True
        self._wake.set()
        workers = {self._writer, self._reader} - {None}
        self._reader = None
        for worker in workers:
            assert worker is not None
            await worker.close()
        self._writer = None

    async def _commit_forever(self) -> None:
        with anyio.CancelScope(shield=True):
            while not self._closing or self._waiting:
                if not self._waiting:
                    self._wake = anyio.Event()
                    await self._wake.wait()
                    continue
                batch, self._waiting = self._waiting, []
                await self._commit(batch)

    async def _commit(self, batch: list[_Pending[Any]]) -> None:
        assert self._writer is not None
        try:
            outcomes = await self._writer.call(partial(_transact, batch))
        except (DatabaseError, ValueError) as error:
            failure = storage_failure(error)
            outcomes = [failure] * len(batch)
        for pending, outcome in zip(batch, outcomes, strict=True):
            pending.settle(outcome)


class _Pending(Generic[T]):
    def __init__(self, job: Job[T]) -> None:
        self.job = job
        self._done = anyio.Event()
        self._value: T | None = None
        self._error: Exception | None = None

    def settle(self, outcome: T | Exception) -> None:
        if isinstance(outcome, Exception):
            self._error = outcome
        else:
            self._value = outcome
        self._done.set()

    async def outcome(self) -> T:
        await self._done.wait()
        if self._error:
            raise self._error
        return self._value  # type: ignore[return-value]


class _Worker(aiosqlite.Connection):
    """A connection whose thread runs whole jobs: one hop a transaction instead of one a statement."""

    @classmethod
    async def open(cls, path: str, busy_timeout: float, *, query_only: bool = False) -> _Worker:
        worker = cls(partial(_connect, path, busy_timeout, query_only), 64)
        # A worker that hangs in the file system must not keep the process from leaving.
        worker._thread.daemon = True
        try:
            await worker
        except DatabaseError as error:
            raise storage_failure(error) from error
        return worker

    async def call(self, job: Job[T]) -> T:
        if self._connection is None:
            raise StorageFailed("io", "The database is closed")
        result: T = await self._execute(job, self._connection)  # type: ignore[no-untyped-call]
        return result


def _connect(path: str, busy_timeout: float, query_only: bool) -> Connection:
    db = connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    db.execute(f"PRAGMA busy_timeout = {int(busy_timeout * 1000)}")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    db.execute("PRAGMA secure_delete = ON")  # a deleted chat's words do not stay behind in free pages
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    if query_only:
        db.execute("PRAGMA query_only = ON")
    if logger.isEnabledFor(5):
        db.set_trace_callback(_Trace())
    return db


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


def _in_snapshot(job: Job[T], db: Connection) -> T:
    db.execute("BEGIN")
    try:
        return job(db)
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _transact(batch: list[_Pending[Any]], db: Connection) -> list[Any]:
    """Run the jobs in one transaction; one that fails is undone alone."""
    db.execute("BEGIN IMMEDIATE")
    try:
        outcomes = [_attempt(pending.job, db) for pending in batch]
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return outcomes


def _attempt(job: Job[Any], db: Connection) -> Any:
    db.execute("SAVEPOINT job")
    try:
        result = job(db)
    except Exception as error:  # handed on to the caller whose job it was; the others of the batch go on
        if not db.in_transaction:
            raise  # a full disk undoes the whole transaction, and every job of it
        db.execute("ROLLBACK TO job")
        result = storage_failure(error) if isinstance(error, DatabaseError) else error
    db.execute("RELEASE job")
    return result
