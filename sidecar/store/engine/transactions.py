"""Runs a batch of jobs in one transaction, in the thread of the connection. Knows no table."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Generic, TypeVar

import anyio
import msgspec

from ...model.failures import StorageFailed
from .connection import DatabaseJob
from .file_watch import DatabaseFiles, Loss
from .reserve import Reserve
from .sqlite import (
    STORAGE_ERRORS,
    Connection,
    DatabaseError,
    disk_full,
    is_busy,
    is_job_error,
    storage_failure,
)

T = TypeVar("T")

BEGIN_RETRY_S = 0.001
"""How often a process checks whether another one has released the database. SQLite itself waits up to 100 ms between
two checks, and misses most gaps between the transactions of a long operation."""

RELEASED_PAGES = 64
"""Free pages returned to the disk at a time: 256 KiB, which takes a few milliseconds."""

YIELD_MAX_S = 0.5
"""How long a transaction of a long operation lets the jobs of others go first: turns that stream commit all the
time."""


class Pending(Generic[T]):
    """A job that waits for its transaction. One that `yields` belongs to a long operation: it runs alone, when no
    other job waits."""

    def __init__(self, job: DatabaseJob[T], last: bool, yields: bool = False) -> None:
        self.job = job
        self.last = last
        self.yields = yields
        self.since = time.monotonic()
        self._done = anyio.Event()
        self._value: T | None = None
        self._error: Exception | None = None

    def set_outcome(self, outcome: T | Exception) -> None:
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


def next_batch(queue: list[Pending[Any]]) -> list[Pending[Any]]:
    """Return the jobs that share the next transaction, and remove them from the queue."""
    first = next((pending for pending in queue if pending.yields), None)
    others = [pending for pending in queue if not pending.yields]
    if first and (not others or time.monotonic() > first.since + YIELD_MAX_S):
        queue.remove(first)
        return [first]
    queue[:] = [pending for pending in queue if pending.yields]
    return others


class Carried(msgspec.Struct, frozen=True):
    """The result of a batch: each job's outcome, or None when none ran; whether the reserve exists for the
    next batch; and what happened to the files."""

    outcomes: list[Any] | None
    has_reserve: bool = True
    loss: Loss | None = None


def carry_out(
    batch: list[Pending[Any]],
    reserve: Reserve,
    shape: int | None,
    files: DatabaseFiles | None,
    refusal: StorageFailed | None,
    db: Connection,
) -> Carried:
    """Run the jobs between two checks of the files: a commit to unreachable files does not count."""
    # Before and after: a commit to unlinked files is gone when the process ends, so it must not be
    # acknowledged.
    if files and (loss := files.loss()):
        return Carried(None, loss=loss)
    allowed = [pending for pending in batch if pending.last or not refusal]
    carried = _with_reserve(allowed, reserve, shape, db) if allowed else Carried([])
    assert carried.outcomes is not None
    done = dict(zip(map(id, allowed), carried.outcomes, strict=True))
    outcomes = [done.get(id(pending), refusal) for pending in batch]
    return Carried(outcomes, carried.has_reserve, files.loss() if files else None)


def _with_reserve(batch: list[Pending[Any]], reserve: Reserve, shape: int | None, db: Connection) -> Carried:
    """Run the jobs. On a full disk only jobs that end something are written, using the space of the reserve."""
    if reserve.ensure():
        try:
            return Carried(_transact(batch, shape, db))
        except DatabaseError as error:
            last = [pending for pending in batch if pending.last]
            if storage_failure(error, reserve.database).reason != "full" or not last:
                raise
            reserve.release()
    last = [pending for pending in batch if pending.last]
    done = dict(zip(map(id, last), _transact(last, shape, db), strict=True)) if last else {}
    return Carried([done.get(id(pending), disk_full()) for pending in batch], has_reserve=False)


def _transact(batch: list[Pending[Any]], shape: int | None, db: Connection) -> list[Any]:
    """Run the jobs in one transaction; a failed job is rolled back alone."""
    _begin(db)
    try:
        _check_shape(db, shape)
        outcomes = [_attempt(pending.job, db) for pending in batch]
        db.execute("COMMIT")
    # BaseException: whatever ends the jobs, no transaction may stay open on a connection that others use.
    except BaseException:
        if db.in_transaction:
            with suppress(DatabaseError):  # keep the first error
                db.execute("ROLLBACK")
        raise
    return outcomes


def _begin(db: Connection) -> None:
    """Begin to write as soon as no other process does, at the latest after the busy timeout of the connection."""
    (patience,) = db.execute("PRAGMA busy_timeout").fetchone()
    end = time.monotonic() + patience / 1000
    db.execute("PRAGMA busy_timeout = 0")
    try:
        while not _try_begin(db, end):
            time.sleep(BEGIN_RETRY_S)
    finally:
        db.execute(f"PRAGMA busy_timeout = {patience}")


def _try_begin(db: Connection, end: float) -> bool:
    try:
        # IMMEDIATE takes the write lock at once: a read transaction that is upgraded later fails with BUSY,
        # and its jobs would have to run again.
        db.execute("BEGIN IMMEDIATE")
    except DatabaseError as error:
        if not is_busy(error) or time.monotonic() > end:
            raise
        return False
    return True


def _check_shape(db: Connection, shape: int | None) -> None:
    """Refuse to write after a newer program changed the schema while this one runs."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if shape is not None and found > shape:
        raise StorageFailed(
            "schema_newer",
            f"A newer sidecar has migrated the database to schema {found}; this one knows {shape}",
            action="upgrade_app",
        )


def _attempt(job: DatabaseJob[Any], db: Connection) -> Any:
    # One savepoint per job: jobs of other chats share this transaction, and must not be lost with the one
    # that fails.
    db.execute("SAVEPOINT job")
    try:
        result = job(db)
    except Exception as error:  # returned to the caller of the job; the other jobs of the batch continue
        # SQLite rolls the whole transaction back by itself on FULL, IOERR and NOMEM; then no savepoint exists.
        if not db.in_transaction or (isinstance(error, STORAGE_ERRORS) and not is_job_error(error)):
            raise  # the disk failed, not the job: the whole transaction is rolled back
        db.execute("ROLLBACK TO job")
        result = storage_failure(error) if isinstance(error, DatabaseError) else error
    db.execute("RELEASE job")
    return result


def in_snapshot(job: DatabaseJob[T], db: Connection) -> T:
    db.execute("BEGIN")
    try:
        return job(db)
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def checkpoint_log(db: Connection) -> int:
    """Checkpoint as much of the log as no reader needs; return the number of free pages."""
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return int(db.execute("PRAGMA freelist_count").fetchone()[0])


def release_free_pages(db: Connection) -> None:
    """Return free pages to the disk."""
    db.execute(f"PRAGMA incremental_vacuum({RELEASED_PAGES})").fetchall()


def write_nothing(db: Connection) -> None:
    """Write without changing anything."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    db.execute(f"PRAGMA user_version = {version}")
