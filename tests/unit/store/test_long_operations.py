"""Long operations change the database in short transactions: others write in between, and an interruption is finished
later."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import anyio
import anyio.to_thread
import pytest

from sidecar.model.chats import Chat, ChatKey, ProcessIdentity
from sidecar.model.events import NewEvent
from sidecar.model.figures import PurgeCounts
from sidecar.store import Store, purge
from sidecar.store.engine import slices, transactions
from sidecar.store.engine.slices import write_slices
from sidecar.store.engine.sqlite import VERSION_INFO, Connection, connect
from sidecar.store.search import index_removal
from tests.support.patience import PATIENCE_S

T = TypeVar("T")
KEY = ChatKey("test", "chat", "c", "s-c")
TURNS = 30


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with anyio.create_task_group() as tasks:
        me = ProcessIdentity("i", "b", "n", os.getpid(), 0)
        made = Store(str(tmp_path / "data"), 10.0, me, lambda _: True)
        await made.open(tasks, lambda _: None)
        yield made
        await made.close()


def events(turn: int) -> list[NewEvent]:
    id, prompt, item = f"t{turn}", f"p{turn}", f"i{turn}"
    said = {"id": item, "turnId": id, "type": "message", "status": "completed", "text": f"jacquard {turn}"}
    return [
        NewEvent("prompt.accepted", {"promptId": prompt, "turnId": id, "delivery": "queue"}, id),
        NewEvent("turn.started", {"promptId": prompt, "model": "m", "engine": "e"}, id),
        NewEvent("message.completed", {"item": said}, id),
        NewEvent("turn.ended", {"reason": "end_turn"}, id),
    ]


async def make(store: Store, key: ChatKey = KEY, turns: int = TURNS) -> Chat:
    chat, _ = await store.chats.create(key, None, {})
    for turn in range(turns):
        await store.journal.append(chat.id, 4 * turn, None, events(turn))
    return await store.chats.get(chat.id)


async def mark(store: Store, chat: int) -> purge.Marked:
    (marked,) = (await store.retention.mark_chats([chat])).marked
    return marked


async def rows(store: Store, chat: int) -> int:
    def count(db: Connection) -> int:
        tables = purge.SLICED_TABLES
        query = "SELECT count(*) FROM {} WHERE chat = ?"
        return sum(db.execute(query.format(table), (chat,)).fetchone()[0] for table in tables)

    return await store._db.read(count)


async def test_another_connection_writes_between_two_slices(store: Store) -> None:
    await store._db.write(lambda db: db.execute("CREATE TABLE seen (n)") and None)
    begun = threading.Event()

    def change(db: Connection, most: int) -> int | None:
        """Go on until a row of the other connection is there."""
        begun.set()
        return None if db.execute("SELECT 1 FROM seen").fetchone() else most

    def write_elsewhere() -> None:
        with closing(connect(store._db.path, isolation_level=None)) as other:
            other.execute("PRAGMA busy_timeout = 10000")
            begun.wait(PATIENCE_S)
            other.execute("INSERT INTO seen VALUES (1)")

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, write_elsewhere)
            assert await write_slices(store._db, change)


async def test_the_jobs_of_others_go_before_a_slice(store: Store) -> None:
    order: list[str] = []
    release = threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store._db.write, lambda db: release.wait(10))
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(lambda: store._db.write(lambda db: order.append("slice"), yields=True))
        await anyio.wait_all_tasks_blocked()
        for name in ("one", "two"):
            tasks.start_soon(store._db.write, lambda db, name=name: order.append(name))
        await anyio.wait_all_tasks_blocked()
        release.set()
    assert order == ["one", "two", "slice"]


async def test_a_slice_that_waited_long_is_not_put_off_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "YIELD_MAX_S", 0.0)
    order: list[str] = []
    release = threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store._db.write, lambda db: release.wait(10))
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(store._db.write, lambda db: order.append("other"))
        tasks.start_soon(lambda: store._db.write(lambda db: order.append("slice"), yields=True))
        await anyio.wait_all_tasks_blocked()
        release.set()
    assert order == ["slice", "other"]


async def test_a_slice_ends_after_the_part_in_which_its_time_is_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(slices, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    parts = 0

    def change(db: Connection, most: int) -> int | None:
        nonlocal parts
        parts += 1
        clock[0] += slices.SLICE_S * (2 if parts == 1 else 0.4)
        return None if parts == 8 else most

    seen: list[int] = []
    write = store._db.write

    async def counted(job: Callable[[Connection], T], **more: bool) -> T:
        seen.append(parts)
        return await write(job, **more)

    monkeypatch.setattr(store._db, "write", counted)
    await write_slices(store._db, change)
    assert seen == [0, 1, 4, 7]  # one long part; then three short ones per transaction


async def test_a_writer_checks_all_the_time_whether_the_database_is_free(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself would wait for up to 100 ms between two checks."""
    waits: list[float] = []
    many = threading.Event()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 20:
            many.set()
        time.sleep(seconds)

    monkeypatch.setattr(transactions, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))

    def hold() -> None:
        with closing(connect(store._db.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            begun.set()
            assert many.wait(10)
            other.execute("ROLLBACK")

    begun = threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, hold)
        await anyio.to_thread.run_sync(begun.wait)
        await store._db.write(lambda db: None)
    assert set(waits) == {transactions.BEGIN_RETRY_S}
    timeout = await store._db.run_on_writer(lambda db: db.execute("PRAGMA busy_timeout").fetchone()[0])
    assert timeout == 10_000


async def test_a_long_read_delays_no_other_read(store: Store) -> None:
    done = threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: store._db.read(lambda db: done.wait(2 * PATIENCE_S), long=True))
        with anyio.fail_after(PATIENCE_S):
            assert await store.chats.find("nobody") is None
        done.set()


@pytest.mark.parametrize("table", [*purge.SLICED_TABLES, "compactions", "requests", "mcp_secrets"])
async def test_no_row_of_a_purged_chat_stays_in(store: Store, table: str) -> None:
    chat = await make(store)
    removed = await store.retention.remove_marked([await mark(store, chat.id)])
    count = f"SELECT count(*) FROM {table} WHERE chat = {chat.id}"
    assert await store._db.read(lambda db: db.execute(count).fetchone()[0]) == 0
    assert (removed.turns, removed.messages, removed.prompts, removed.events) == (30, 30, 30, 120)


async def test_a_marked_chat_is_deleted_before_its_rows_are_removed(store: Store) -> None:
    chat = await make(store)
    await mark(store, chat.id)
    assert await rows(store, chat.id) > 0
    found = await store.chats.find(KEY.session_id)
    assert found is not None
    assert (found.deleted, found.title, found.preview, found.turns) == (True, None, None, 0)


@pytest.mark.parametrize("done", [0, 1, 7, 60, 119])
async def test_an_interrupted_purge_is_finished_later(store: Store, done: int) -> None:
    chat, kept = await make(store), await make(store, ChatKey("test", "chat", "k", "s-k"), 3)
    await mark(store, chat.id)
    if done:
        await store._db.write(lambda db: purge.remove_rows(db, chat.id, purge.PurgeBudget(done)))
    before = await rows(store, kept.id)
    assert await store.retention.resume_removal() == 1
    assert (await rows(store, chat.id), await rows(store, kept.id)) == (0, before)
    assert await store.retention.resume_removal() == 0


async def test_a_chat_that_is_created_again_gets_no_row_of_the_deleted_one(store: Store) -> None:
    old = await make(store)
    await mark(store, old.id)
    new, created = await store.chats.create(KEY, None, {})
    assert (created, await rows(store, new.id)) == (True, 0)
    await store.journal.append(new.id, 0, None, events(0))
    assert (await store.chats.get(new.id)).turns == 1


async def test_the_removal_of_a_deleted_chat_spares_one_that_got_its_id(store: Store) -> None:
    old = await make(store)
    marked = await mark(store, old.id)
    await store.chats.create(KEY, None, {})
    new = await store.chats.find(KEY.session_id)
    assert new is not None
    assert (new.id, new.epoch == old.epoch) == (old.id, False)
    await store.journal.append(new.id, 0, None, events(0))
    assert await purge.finish(store._db, [(marked.chat, marked.epoch)]) == PurgeCounts()
    assert await rows(store, new.id) > 0


async def test_an_import_that_is_undone_twice_spares_a_chat_that_got_its_id(store: Store) -> None:
    old = await make(store, turns=2)
    await store.imports.remove(old.id)
    new = await make(store, turns=1)
    assert new.id == old.id
    await store._db.write(lambda db: _remove_import(db, old))
    assert (await store.chats.get(new.id)).turns == 1


def _remove_import(db: Connection, old: Chat) -> None:
    from sidecar.store import imports

    assert imports._remove_slice(db, old.id, old.epoch, 100) is None
    imports._remove_row(db, old.id, old.epoch)


@pytest.mark.parametrize(("count", "size", "chosen"), [(10, 10, 5), (10, 400_000, 2), (3, 3 << 20, 1)])
async def test_a_slice_is_bounded_in_rows_and_bytes(store: Store, count: int, size: int, chosen: int) -> None:
    def job(db: Connection) -> int:
        for n in range(count):
            row = (1, n, n, 0, "notice", b"x" * size)
            db.execute("INSERT INTO events (chat, seq, first, ts, type, data) VALUES (?, ?, ?, ?, ?, ?)", row)
        purge.remove_rows(db, 1, purge.PurgeBudget(5))
        (left,) = db.execute("SELECT count(*) FROM events").fetchone()
        return count - int(left)

    assert await store._db.write(job) == chosen


@pytest.mark.skipif(VERSION_INFO < (3, 42), reason="the option came with SQLite 3.42")
async def test_a_table_that_removes_words_at_once_is_set_to_merge_them(store: Store) -> None:
    chat = await make(store)
    setting = "INSERT INTO grams (grams, rank) VALUES ('secure-delete', 1)"
    await store._db.write(lambda db: db.execute(setting) and None)
    await mark(store, chat.id)
    query = "SELECT v FROM grams_config WHERE k = 'secure-delete'"
    assert await store._db.read(lambda db: db.execute(query).fetchone()) == (0,)
    assert await store._db.read(index_removal.has_residue)
    await store.index.scrub(None)
    assert not await store._db.read(index_removal.has_residue)
