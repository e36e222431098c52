"""A part of a purge is bounded in what it reads and removes, whatever the chat contains."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

from sidecar.model.chats import Chat, ChatKey, ProcessIdentity
from sidecar.model.events import NewEvent
from sidecar.store import Store, purge
from sidecar.store.engine.sqlite import Connection
from sidecar.store.repair import integrity
from sidecar.store.search import index_removal, message_removal

KEY = ChatKey("test", "chat", "c", "s-c")
OTHER = ChatKey("test", "chat", "o", "s-o")
LONG = " ".join(f"jacquard{n} thread" for n in range(20_000))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with anyio.create_task_group() as tasks:
        me = ProcessIdentity("i", "b", "n", os.getpid(), 0)
        made = Store(str(tmp_path / "data"), 10.0, me, lambda _: True)
        await made.open(tasks, lambda _: None)
        yield made
        await made.close()


async def make(store: Store, key: ChatKey, *texts: str) -> Chat:
    chat, _ = await store.chats.create(key, None, {})
    for turn, text in enumerate(texts):
        id, prompt = f"t{turn}", f"p{turn}"
        item = {"id": f"i{turn}", "turnId": id, "type": "message", "status": "completed", "text": text}
        events = [
            NewEvent("prompt.accepted", {"promptId": prompt, "turnId": id, "delivery": "queue"}, id),
            NewEvent("turn.started", {"promptId": prompt, "model": "m", "engine": "e"}, id),
            NewEvent("message.completed", {"item": item}, id),
            NewEvent("turn.ended", {"reason": "end_turn"}, id),
        ]
        await store.journal.append(chat.id, 4 * turn, None, events)
    return await store.chats.get(chat.id)


def count(query: str) -> Callable[[Connection], int]:
    return lambda db: int(db.execute(query).fetchone()[0])


def part(chat: Chat, rows: int) -> Callable[[Connection], None]:
    return lambda db: purge.remove_rows(db, chat.id, purge.PurgeBudget(rows))


async def test_a_part_removes_no_more_of_a_long_message_than_a_piece(store: Store) -> None:
    chat = await make(store, KEY, LONG)
    await store.retention.mark_chats([chat.id])
    left = [len(LONG)]
    while left[-1] > message_removal.LONG_CHARACTERS:
        await store._db.write(part(chat, 2000))
        left.append(await store._db.read(count("SELECT length(text) FROM messages")))
        assert 0 < left[-2] - left[-1] <= message_removal.PIECE_CHARACTERS
    assert len(left) > 2


async def test_a_message_that_was_removed_in_pieces_leaves_no_word(store: Store) -> None:
    kept = await make(store, OTHER, "a thread that stays")
    chat = await make(store, KEY, LONG, LONG.replace("jacquard", "jacquardLoom"))
    marked = (await store.retention.mark_chats([chat.id])).marked
    await store.retention.remove_marked(marked)
    await store.index.scrub(None)

    def words(db: Connection) -> int:
        db.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'words', 'row')")
        (jacquards,) = db.execute("SELECT count(*) FROM terms WHERE term LIKE 'jacquard%'").fetchone()
        return int(jacquards)

    assert await store._db.write(words) == 0
    assert await store._db.write(lambda db: list(integrity.index_problems(db))) == []
    assert await store._db.read(count("SELECT count(*) FROM words WHERE words MATCH 'thread'")) == 1
    assert (await store.chats.get(kept.id)).turns == 1


async def test_the_database_is_sound_between_two_pieces(store: Store) -> None:
    await make(store, OTHER, "a thread that stays")
    chat = await make(store, KEY, LONG)
    await store.retention.mark_chats([chat.id])
    await store._db.write(part(chat, 2000))
    assert await store._db.write(lambda db: list(integrity.index_problems(db))) == []
    assert await store.retention.resume_removal() == 1
    assert await store._db.read(count("SELECT count(*) FROM messages")) == 1


async def test_a_text_without_a_place_to_cut_is_removed_at_once(store: Store) -> None:
    chat = await make(store, KEY, "x" * (3 * message_removal.PIECE_CHARACTERS))
    marked = (await store.retention.mark_chats([chat.id])).marked
    assert (await store.retention.remove_marked(marked)).messages == 1


async def test_a_part_removes_few_messages_of_middle_size(store: Store) -> None:
    chat = await make(store, KEY, *[LONG[:40_000]] * 6)
    await store._db.write(part(chat, 2000))
    assert await store._db.read(count("SELECT count(*) FROM messages")) == 5


async def test_a_part_merges_a_bounded_piece_of_one_full_text_table(store: Store) -> None:
    """Fourteen segments of 25 pages each; SQLite merges them all at once when it counts sixteen."""
    await store._db.write(
        lambda db: db.execute("INSERT INTO stems (stems, rank) VALUES ('automerge', 0)") and None
    )
    for n in range(14):
        await make(store, ChatKey("test", "chat", f"c{n}", f"s-{n}"), LONG.replace("jacquard", f"loom{n}x"))

    def merge(db: Connection) -> int:
        before = db.total_changes
        index_removal.merge_some(db, "stems")
        return db.total_changes - before

    pages = int(await store._db.read(count("SELECT count(*) FROM stems_data")))
    assert 2 <= await store._db.write(merge) <= 4 * index_removal.MERGED_BETWEEN < pages


@pytest.mark.parametrize("used", ["blob_uses", "sent_uses"])
async def test_a_part_reads_no_more_the_more_a_chat_shares_with_others(store: Store, used: str) -> None:
    chat, other = await make(store, KEY, "hi"), await make(store, OTHER, "hi")

    def fill(db: Connection) -> None:
        for n in range(3000):
            if used == "blob_uses":
                db.execute("INSERT INTO blobs VALUES (?, ?, 1, 'text/plain', NULL, 0)", (f"b{n}", b"x"))
            else:
                db.execute("INSERT INTO sent_texts VALUES (?, ?, 0, ?)", (n + 1, f"h{n}".encode(), b"y"))
            name = f"b{n}" if used == "blob_uses" else n + 1
            values = (name,) if used == "blob_uses" else (name, 0)
            marks = ", ?" * len(values)
            for owner in (chat, other):
                db.execute(f"INSERT INTO {used} VALUES (?{marks})", (owner.id, *values))

    def steps(db: Connection) -> int:
        seen = 0

        def step() -> int:
            nonlocal seen
            seen += 1
            return 0

        db.set_progress_handler(step, 100)
        part(chat, 8)(db)
        db.set_progress_handler(None, 0)
        return seen

    await store._db.write(fill)
    assert await store._db.write(steps) < 50  # 5,000 steps for eight rows; all rows take over 30,000
    assert await store._db.read(count(f"SELECT count(*) FROM {used}")) == 2 * 3000 - 8
    table = "blobs" if used == "blob_uses" else "sent_texts"
    await store.retention.remove_marked((await store.retention.mark_chats([chat.id])).marked)
    assert await store._db.read(count(f"SELECT count(*) FROM {table}")) == 3000
