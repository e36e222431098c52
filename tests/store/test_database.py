"""The one writer: whole transactions, shared by those who wait, and never left open."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from sidecar.model.failures import Refused, StorageFailed
from sidecar.store.database import Database
from sidecar.store.sqlite import Connection
from tests.support.processes import poll_until


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with anyio.create_task_group() as tasks:
        made = Database(str(tmp_path / "test.db"), 1.0)
        await made.open(tasks)
        await made.write(lambda db: db.execute("CREATE TABLE kept (n)") and None)
        yield made
        await made.close()


def _keep(n: int) -> Callable[[Connection], object]:
    return lambda db: db.execute("INSERT INTO kept VALUES (?)", (n,)) and None


async def _kept(database: Database) -> list[int]:
    return await database.read(lambda db: [n for (n,) in db.execute("SELECT n FROM kept ORDER BY n")])


async def test_jobs_that_wait_share_a_transaction(database: Database) -> None:
    statements: list[str] = []
    await database.exclusively(lambda db: db.set_trace_callback(statements.append))
    async with anyio.create_task_group() as tasks:
        for n in range(20):
            tasks.start_soon(database.write, _keep(n))
    assert await _kept(database) == list(range(20))
    assert statements.count("COMMIT") <= 2


async def test_a_job_that_fails_is_undone_alone(database: Database) -> None:
    def bad(db: Connection) -> None:
        db.execute("INSERT INTO kept VALUES (99)")
        raise Refused("not_found", "no")

    async def attempt() -> None:
        with pytest.raises(Refused):
            await database.write(bad)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(database.write, _keep(1))
        tasks.start_soon(attempt)
        tasks.start_soon(database.write, _keep(2))
    assert await _kept(database) == [1, 2]


async def test_a_cancelled_caller_leaves_no_transaction_open(database: Database) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(database.write, _keep(1))
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    await database.write(lambda db: db.execute("INSERT INTO kept VALUES (2)") and None)
    assert 2 in await _kept(database)


async def test_an_error_of_sqlite_is_a_storage_failure(database: Database) -> None:
    with pytest.raises(StorageFailed) as failed:
        await database.write(lambda db: db.execute("INSERT INTO nowhere VALUES (1)") and None)
    assert (failed.value.name, failed.value.reason) == ("storage", "io")


async def test_the_reader_cannot_write(database: Database) -> None:
    with pytest.raises(StorageFailed):
        await database.read(lambda db: db.execute("INSERT INTO kept VALUES (1)") and None)
    assert await _kept(database) == []


async def test_without_memory_nothing_is_half_written_and_the_next_job_is_whole(database: Database) -> None:
    def hungry(db: Connection) -> None:
        db.execute("INSERT INTO kept VALUES (99)")
        raise MemoryError  # as SQLite's own, which Python passes on under this name

    with pytest.raises(StorageFailed, match="memory") as failed:
        await database.write(hungry)
    assert failed.value.reason == "io"
    await database.write(_keep(1))
    assert await _kept(database) == [1]


async def test_on_a_full_disk_only_what_ends_something_is_written(database: Database, tmp_path: Path) -> None:
    told: list[str] = []
    database.tell = told.append
    reserve = tmp_path / "test.db-reserve"
    assert reserve.stat().st_size <= 256 * 1024
    reserve.unlink()
    reserve.mkdir()  # stands in its way
    (reserve / "full").touch()
    await _fill(database, pages=8)
    with pytest.raises(StorageFailed, match="full"):
        await database.write(_blob(40_000))
    assert (told, database.state) == (["full"], "full")
    await _fill(database, pages=1 << 30)
    await database.write(_keep(7))
    assert (await _kept(database), told) == ([7], ["full", "ready"])


def _blob(size: int) -> Callable[[Connection], object]:
    return lambda db: db.execute("INSERT INTO kept VALUES (zeroblob(?))", (size,)) and None


async def _fill(database: Database, pages: int) -> None:
    """Let SQLite say that the disk is full beyond so many pages."""
    await database.exclusively(lambda db: db.execute(f"PRAGMA max_page_count = {pages}") and None)


async def test_the_log_is_emptied_when_nobody_writes(database: Database) -> None:
    before = os.stat(database.path).st_mtime_ns
    await database.write(_keep(1))

    def is_emptied() -> bool:
        return os.stat(database.path).st_mtime_ns != before

    assert await anyio.to_thread.run_sync(poll_until, is_emptied, 10.0)
    _, pages, moved = await database.exclusively(
        lambda db: db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    )
    assert pages == moved
    assert await _kept(database) == [1]
