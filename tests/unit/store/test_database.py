"""The one writer: whole transactions, shared by those who wait, and never left open."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from sidecar.model.failures import Refused, StorageFailed
from sidecar.store.engine.database import Database
from sidecar.store.engine.file_watch import DatabaseFiles, Loss, Rescued
from sidecar.store.engine.sqlite import Connection, connect
from tests.support.patience import PATIENCE_S
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
    await database.run_on_writer(lambda db: db.set_trace_callback(statements.append))
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
        await database.write(lambda db: db.execute("INSERT INTO kept (no) VALUES (1)") and None)
    assert (failed.value.name, failed.value.reason) == ("storage", "io")


async def test_a_table_that_is_missing_is_damage(database: Database) -> None:
    with pytest.raises(StorageFailed) as failed:
        await database.write(lambda db: db.execute("INSERT INTO nowhere VALUES (1)") and None)
    assert (failed.value.reason, failed.value.action) == ("corrupt", "run_doctor")


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
    database.on_state = told.append
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
    await database.run_on_writer(lambda db: db.execute(f"PRAGMA max_page_count = {pages}") and None)


async def test_the_log_is_emptied_when_nobody_writes(database: Database) -> None:
    before = os.stat(database.path).st_mtime_ns
    await database.write(_keep(1))

    def is_emptied() -> bool:
        return os.stat(database.path).st_mtime_ns != before

    assert await anyio.to_thread.run_sync(poll_until, is_emptied, 10.0)
    _, pages, moved = await database.run_on_writer(
        lambda db: db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    )
    assert pages == moved
    assert await _kept(database) == [1]


class SmallDisk:
    """A reserve on a disk that has no room while `full`, for the jobs and for the reserve."""

    def __init__(self) -> None:
        self.full = False
        self.held = True
        self.database = None

    def ensure(self) -> bool:
        self.held = self.held or not self.full
        return self.held

    def release(self) -> bool:
        given, self.held = self.held, False
        return given


@pytest.fixture
def disk(database: Database) -> SmallDisk:
    database._reserve = made = SmallDisk()  # type: ignore[assignment]
    return made


async def test_an_end_that_went_into_the_reserve_does_not_make_the_disk_ready(
    database: Database, disk: SmallDisk
) -> None:
    told: list[str] = []
    database.on_state = told.append
    disk.full, disk.held = True, False
    for n in range(3):
        await database.write(_keep(n), last=True)
        with pytest.raises(StorageFailed, match="full"):
            await database.check_space()
        with pytest.raises(StorageFailed, match="full"):
            await database.write(_keep(99))
    assert (await _kept(database), told) == ([0, 1, 2], ["full"])
    disk.full = False
    await database.write(_keep(3))
    await database.check_space()
    assert told == ["full", "ready"]


async def test_closing_while_the_connections_are_exchanged_ends(tmp_path: Path) -> None:
    async with anyio.create_task_group() as tasks:
        database = Database(str(tmp_path / "test.db"), 1.0)
        await database.open(tasks)
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as both:
                both.start_soon(database.run_disconnected, lambda: None)
                await anyio.lowlevel.checkpoint()
                both.start_soon(database.close)
        with pytest.raises(StorageFailed):
            await database.write(_keep(1))


async def test_a_file_renamed_over_the_database_leaves_the_log_to_the_open_one(
    database: Database, tmp_path: Path
) -> None:
    """The first checkpoint opens a connection of its own, which must not read the new file with our log."""
    await database.write(_keep(1))
    log = tmp_path / "test.db-wal"
    written = log.read_bytes()
    other = tmp_path / "other.db"
    connection = connect(other)
    connection.execute("CREATE TABLE other (n)")
    connection.close()
    new = other.read_bytes()
    os.replace(other, tmp_path / "test.db")
    await database.checkpoints.checkpoint_and_shrink()
    assert log.read_bytes()[: len(written)] == written
    assert (tmp_path / "test.db").read_bytes() == new


async def test_lost_files_that_could_not_be_copied_are_copied_at_the_end(tmp_path: Path) -> None:
    """A disk that was full when the file was removed has space again when the process ends."""
    path = tmp_path / "lost.db"
    attempts: list[Loss] = []
    attempted = threading.Event()

    def rescue(name: str, loss: Loss, files: DatabaseFiles, db: Connection) -> Rescued:
        attempts.append(loss)
        attempted.set()
        if len(attempts) == 1:
            raise StorageFailed("full", "The disk is full")
        with closing(connect(name)) as copy:
            db.backup(copy)
        return Rescued(name, is_back=True)

    async with anyio.create_task_group() as tasks:
        made = Database(str(path), 1.0)
        made.rescue = rescue
        await made.open(tasks)
        await made.write(lambda db: db.execute("CREATE TABLE kept (n)") and None)
        await made.write(_keep(7))
        path.unlink()
        assert await anyio.to_thread.run_sync(attempted.wait, PATIENCE_S)
        await made.close()
    assert [loss.kind for loss in attempts] == ["removed", "removed"]
    with closing(connect(str(path))) as saved:
        assert saved.execute("SELECT n FROM kept").fetchall() == [(7,)]
