"""Connections to one file: one writes whole transactions, one reads, one empties the log. Knows no table.

Group commit: jobs that wait while a transaction runs share the next one. The writer is a task of its own, so
cancelling a caller never leaves a transaction open; the job it handed over is still carried out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from ..model.failures import StorageFailed
from .connection import Job, Worker
from .reserve import Reserve
from .sqlite import (
    FAULTS,
    Connection,
    DatabaseError,
    is_of_the_job,
    is_on_readonly_disk,
    storage_failure,
)

T = TypeVar("T")

IDLE_S, BUSY_S = 0.4, 0.5
"""The log is emptied when no commit came for so long, and at least so often while they come: a turn that streams makes
one every few milliseconds."""

FREE_PAGES, GIVEN_BACK = 1024, 64
"""More free pages than these are given back to the disk, 256 KiB at a time, which takes a few milliseconds."""

MEND_S = 1.0
"""How often a disk that took no writes is asked whether it does again."""

REPAIR_S = 5.0
"""How long a request waits for a repair before it is refused."""


class Database:
    """`write` runs a job in a transaction of its own or a shared one; `read` runs one outside of any.

    `tell` hears how the storage is: `full` or `readonly` when nothing can be written, `ready` when it can again.
    `damaged` hears of a file that contradicts itself, and says what to wait for while that is looked into.
    """

    def __init__(self, path: str, busy_timeout: float) -> None:
        self.path = path
        self.tell: Callable[[str], None] = lambda state: None
        self.damaged: Callable[[BaseException], anyio.Event | None] = lambda error: None
        self._repair: anyio.Event | None = None
        self.state = "ready"
        self.shape: int | None = None
        """The schema that this program knows, once it has seen to it."""
        self.last_write = time.monotonic()
        self._busy_timeout = busy_timeout
        self._reserve = Reserve(None if path == ":memory:" else path)
        self._writer: Worker | None = None
        self._reader: Worker | None = None
        self._keeper: Worker | None = None
        self._waiting: list[_Pending[Any]] = []
        self._wake = anyio.Event()
        self._between = anyio.Lock()
        self._log_grew = anyio.Event()
        self._frozen = False
        self._back = anyio.Event()
        self._back.set()
        self._over = anyio.Event()
        self._settled = anyio.Event()
        """Nothing waits to be committed, and nothing will."""
        self._tasks: TaskGroup | None = None

    @property
    def size(self) -> int:
        """Bytes of the database's own file."""
        return os.path.getsize(self.path)

    @property
    def is_closing(self) -> bool:
        return self._over.is_set()

    @property
    def in_memory(self) -> bool:
        return self.path == ":memory:"

    async def open(self, tasks: TaskGroup) -> None:
        await self._connect()
        self._tasks = tasks
        tasks.start_soon(self._commit_forever)
        if not self.in_memory:
            tasks.start_soon(self._keep_log_short)
        if self._frozen:
            self._is("readonly")

    async def _connect(self) -> None:
        self._frozen = not self.in_memory and is_on_readonly_disk(self.path)
        if self._frozen:
            self._writer = self._reader = await Worker.open(self.path, self._busy_timeout, frozen=True)
            return
        writer = await Worker.open(self.path, self._busy_timeout)
        # A database in memory belongs to one connection; every job is whole, so reads may share it.
        reader = writer
        if not self.in_memory:
            try:
                reader = await Worker.open(self.path, self._busy_timeout, query_only=True)
            except StorageFailed:
                await writer.close()
                raise
        self._writer, self._reader = writer, reader

    async def write(self, job: Job[T], *, last: bool = False) -> T:
        """Run `job` in a transaction and return what it returned, once that is on disk.

        `last` is for what ends something: when the disk is full, it may use the reserve.
        """
        await self._present()
        if self.is_closing or self._writer is None:
            raise self._closed()
        pending = _Pending(job, last)
        self._waiting.append(pending)
        self._wake.set()
        return await pending.outcome()

    async def read(self, job: Job[T]) -> T:
        """Run `job` on the reading connection. Its snapshot lasts as long as the job, never across an await."""
        try:
            return await self._read(job)
        except StorageFailed as failure:
            if failure.reason != "corrupt" or self._repair is None:
                raise
        with anyio.move_on_after(REPAIR_S):
            await self._repair.wait()
        return await self._read(job)

    async def _read(self, job: Job[T]) -> T:
        await self._present()
        if self._reader is None:
            raise self._closed()
        try:
            return await self._reader.call(partial(_in_snapshot, job))
        except (*FAULTS, StorageFailed) as error:
            raise self._failed(error) from error

    async def changed_elsewhere(self) -> int:
        """A number that changes when another process commits."""
        return await self.exclusively(lambda db: int(db.execute("PRAGMA data_version").fetchone()[0]))

    async def exclusively(self, job: Job[T]) -> T:
        """Run `job` on the writing connection, outside of a transaction and between two of them."""
        await self._present()
        if self._writer is None:
            raise self._closed()
        try:
            return await self._writer.call(job)
        except FAULTS as error:
            raise self._failed(error) from error

    async def apart(self, work: Callable[[], T]) -> T:
        """Close both connections, do `work` in a thread, and open them again; meanwhile nothing is read or written."""
        async with self._between:
            self._back = anyio.Event()
            await self._disconnect()
            try:
                return await anyio.to_thread.run_sync(work)
            finally:
                with suppress(StorageFailed):  # whoever comes next tries again, and is told
                    await self._connect()
                self._back.set()

    async def _present(self) -> None:
        """Who comes while the database is repaired waits a little: most repairs are short."""
        if not self._back.is_set():
            with anyio.move_on_after(REPAIR_S):
                await self._back.wait()
        if self._writer is None and self._back.is_set() and self._tasks and not self.is_closing:
            async with self._between:
                if self._writer is None:
                    await self._connect()

    async def close(self) -> None:
        """Commit what waits, then close the connections."""
        self._over.set()
        self._wake.set()
        self._log_grew.set()
        if self._tasks:
            await self._settled.wait()
        await self._disconnect()

    async def _disconnect(self) -> None:
        workers = {self._writer, self._reader, self._keeper} - {None}
        self._reader = self._keeper = None
        for worker in workers:
            assert worker is not None
            await worker.close()
        self._writer = None

    def _closed(self) -> StorageFailed:
        if self.is_closing or self._tasks is None:
            return StorageFailed("io", "The database is closed")
        return StorageFailed("corrupt", "The database is being repaired", action="retry", retryable=True)

    async def _commit_forever(self) -> None:
        with anyio.CancelScope(shield=True):
            while not self.is_closing or self._waiting:
                if not self._waiting:
                    self._wake = anyio.Event()
                    await self._wake.wait()
                    continue
                async with self._between:
                    batch, self._waiting = self._waiting, []
                    await self._commit(batch)
            self._settled.set()

    async def _keep_log_short(self) -> None:
        """Move what was written out of the log, on a connection of its own: who commits does not wait for it."""
        while not self.is_closing:
            await self._log_grew.wait()
            await self._lull()
            self._log_grew = anyio.Event()
            with suppress(*FAULTS, StorageFailed):  # it is only put off
                await self._tidy()

    async def _lull(self) -> None:
        """Wait until no commit came for a while, or for as long as may be."""
        end = time.monotonic() + BUSY_S
        while not self.is_closing and (now := time.monotonic()) < end and now < self.last_write + IDLE_S:
            with anyio.move_on_after(self.last_write + IDLE_S - now):
                await self._over.wait()

    async def _tidy(self) -> None:
        async with self._between:
            if self._writer is None or self._frozen or self.is_closing:
                return
            if self._keeper is None:
                self._keeper = await Worker.open(self.path, self._busy_timeout, query_only=True)
        free = await self._keeper.call(_empty_log)
        if free > FREE_PAGES and time.monotonic() > self.last_write + IDLE_S:
            await self.exclusively(_give_back)

    async def _commit(self, batch: list[_Pending[Any]]) -> None:
        outcomes: list[Any]
        if self._writer is None:
            outcomes = [self._closed()] * len(batch)
        else:
            try:
                outcomes = await self._writer.call(partial(_carry_out, batch, self._reserve, self.shape))
                self._went_well(outcomes)
            except StorageFailed as failure:
                outcomes = [failure] * len(batch)
            except (*FAULTS, ValueError) as error:
                outcomes = [self._failed(error)] * len(batch)
        for pending, outcome in zip(batch, outcomes, strict=True):
            pending.settle(outcome)

    def _went_well(self, outcomes: list[Any]) -> None:
        self.last_write = time.monotonic()
        self._log_grew.set()
        full = any(isinstance(outcome, StorageFailed) and outcome.reason == "full" for outcome in outcomes)
        self._is("full" if full else "ready")

    def _failed(self, error: BaseException) -> StorageFailed:
        failure = storage_failure(error, None if self.in_memory else self.path)
        if failure.reason in ("full", "readonly"):
            self._is(failure.reason)
        elif failure.reason == "corrupt":
            self._repair = self.damaged(error)
        return failure

    def _is(self, state: str) -> None:
        if state == self.state:
            return
        mending, self.state = self.state != "ready", state
        self.tell(state)
        if not mending and self._tasks:
            self._tasks.start_soon(self._mend)

    async def _mend(self) -> None:
        """Find out by oneself that the disk takes writes again; nobody may be asking for one."""
        while self.state != "ready" and not self.is_closing:
            await anyio.sleep(MEND_S)
            with suppress(StorageFailed):
                if self._frozen and not is_on_readonly_disk(self.path):
                    await self.apart(lambda: None)
                await self.write(_touch)


class _Pending(Generic[T]):
    def __init__(self, job: Job[T], last: bool) -> None:
        self.job = job
        self.last = last
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


def _in_snapshot(job: Job[T], db: Connection) -> T:
    db.execute("BEGIN")
    try:
        return job(db)
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _carry_out(batch: list[_Pending[Any]], reserve: Reserve, shape: int | None, db: Connection) -> list[Any]:
    """Each job's outcome. On a full disk only what ends something is written, into the room of the reserve."""
    full = StorageFailed("full", "The disk is full", action="free_disk", retryable=True)
    if reserve.hold():
        try:
            return _transact(batch, shape, db)
        except DatabaseError as error:
            last = [pending for pending in batch if pending.last]
            if storage_failure(error).reason != "full" or not last:
                raise
            reserve.give_up()
    last = [pending for pending in batch if pending.last]
    done = dict(zip(map(id, last), _transact(last, shape, db), strict=True)) if last else {}
    return [done.get(id(pending), full) for pending in batch]


def _transact(batch: list[_Pending[Any]], shape: int | None, db: Connection) -> list[Any]:
    """Run the jobs in one transaction; one that fails is undone alone."""
    db.execute("BEGIN IMMEDIATE")
    try:
        _check_shape(db, shape)
        outcomes = [_attempt(pending.job, db) for pending in batch]
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            with suppress(DatabaseError):  # the first error is the one to tell
                db.execute("ROLLBACK")
        raise
    return outcomes


def _check_shape(db: Connection, shape: int | None) -> None:
    """A newer program may have changed the tables while this one runs: it must not write what it does not know."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if shape is not None and found > shape:
        raise StorageFailed(
            "schema_newer",
            f"A newer sidecar has brought the database to schema {found}; this one knows {shape}",
            action="upgrade_app",
        )


def _attempt(job: Job[Any], db: Connection) -> Any:
    db.execute("SAVEPOINT job")
    try:
        result = job(db)
    except Exception as error:  # handed on to the caller whose job it was; the others of the batch go on
        if not db.in_transaction or (isinstance(error, FAULTS) and not is_of_the_job(error)):
            raise  # the disk is at fault, not the job: the whole transaction is undone
        db.execute("ROLLBACK TO job")
        result = storage_failure(error) if isinstance(error, DatabaseError) else error
    db.execute("RELEASE job")
    return result


def _empty_log(db: Connection) -> int:
    """Move the log into the database, as far as nobody reads it; how many pages are free there."""
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return int(db.execute("PRAGMA freelist_count").fetchone()[0])


def _give_back(db: Connection) -> None:
    """Free pages go back to the disk."""
    db.execute(f"PRAGMA incremental_vacuum({GIVEN_BACK})").fetchall()


def _touch(db: Connection) -> None:
    """Write something that changes nothing."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    db.execute(f"PRAGMA user_version = {version}")
