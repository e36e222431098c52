"""What is kept has bounds, whatever is in it: size, age, odd characters, broken files; and what is removed is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from sidecar.index import Index
from sidecar.model.chats import ProcessIdentity
from sidecar.model.failures import StorageFailed
from sidecar.model.index import NewSource, Query, Source
from sidecar.settings.values import IndexSettings
from sidecar.store import Store
from sidecar.store.engine.sqlite import Connection
from sidecar.store.search.index_removal import mark_chat
from sidecar.system.clock import DAY_MS


@pytest.fixture
async def small(store: Store) -> AsyncIterator[Index]:
    """An index that keeps little: a megabyte of a text, three of all, ten days."""
    settings = IndexSettings.of(max_output_size=1024 * 1024, max_bytes=3 * 1024 * 1024, retention_days=10)
    async with anyio.create_task_group() as tasks:
        yield Index(store.index, tasks, lambda: settings)


def _text(text: str, chat: int, label: str = "a text") -> NewSource:
    return NewSource(text, label, "output", chat=chat)


async def _age(store: Store, source: Source, days: int) -> None:
    query = "UPDATE index_sources SET used_at = used_at - ? WHERE key = ?"
    await store._db.write(lambda db: db.execute(query, (days * DAY_MS, source.id)) and None)


async def test_what_is_too_long_is_cut_with_a_mark(small: Index, chat: int) -> None:
    source = await small.add(_text("é" * 1024 * 1024, chat))
    whole = await small.get(source.id)
    assert whole is not None
    assert (source.truncated, whole.text[:3]) == (True, "ééé")
    assert whole.text.endswith(
        "… the rest of 1048576 bytes was cut off here: more than `index.max_output_size` is not kept …\n"
    )
    assert source.bytes == len(whole.text.encode()) < 1024 * 1024 + 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "\n\n\n",
        "turbine",
        "no newline " * 5000 + "turbine",
        "\0\1\2turbine\0" + "".join(map(chr, range(1, 300))),
        "turbine \ud83d and \ude42 halves",
        "turbine \ud83d\ude42 joined",
        "turbine\r\nof\rall\u2028ends\x0c",
        "🙂" * 5000 + " turbine",
        "{" * 5000 + "turbine",
        "[" * 300 + '"turbine' + "\\" * 99,
        "<" + "=" * 9000 + " turbine " + "=" * 9000,
    ],
)
async def test_any_text_is_kept_whole_and_found(index: Index, chat: int, text: str) -> None:
    source = await index.add(_text(text, chat))
    whole = await index.get(source.id)
    assert whole is not None
    assert whole.text == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    [results] = await index.search([Query("turbine", chat=chat)])
    assert bool(results.hits) == ("turbine" in text)
    assert source.lines == max(1, text.count("\n") + (not text.endswith("\n")))


async def test_what_nobody_used_for_long_is_removed(small: Index, store: Store, chat: int) -> None:
    old = await small.add(_text("old turbine", chat))
    used = await small.add(_text("used turbine", chat))
    await _age(store, old, 11)
    await _age(store, used, 9)
    removed = await small.sweep()
    [results] = await small.search([Query("turbine", chat=chat)])
    assert (removed.sources, [hit.source.id for hit in results.hits]) == (1, [used.id])


async def test_of_too_much_the_least_recently_used_is_removed(small: Index, store: Store, chat: int) -> None:
    sources = [await small.add(_text(f"number {n} " * 100_000, chat, f"text {n}")) for n in range(4)]
    for days, source in zip((1, 3, 2, 0), sources, strict=True):
        await _age(store, source, days)
    removed = await small.sweep()
    left = {source.label for source in (await small.sources(chat=chat)).sources}
    assert (removed.sources, left) == (1, {"text 0", "text 2", "text 3"})


def _file_words(store: Store, *words: bytes) -> list[bool]:
    """Which of the words stand in the database's file or its log."""
    held = b"".join(file.read_bytes() for file in Path(store.data_dir).iterdir())
    return [word in held for word in words]


def _checkpoint(db: Connection) -> None:
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def test_removed_words_leave_the_file_too(index: Index, store: Store, chat: int, other: int) -> None:
    mine = "".join(f"qzvword{n:04} and more\n" for n in range(300))
    await index.add(_text(mine, chat, "xkqlabel"))
    await index.add(_text(mine.replace("qzv", "kept"), other))
    words = (b"qzvword0", b"xkqlabel", b"keptword0")
    await store._db.write(lambda db: mark_chat(db, chat))
    await store.index.remove_marked()
    await store._db.run_on_writer(_checkpoint)
    assert _file_words(store, *words)[0], "without scrubbing they stay: else this test would prove nothing"
    await store.index.scrub(None)
    await store._db.run_on_writer(_checkpoint)
    assert _file_words(store, *words) == [False, False, True]
    [results] = await index.search([Query("keptword0042", chat=other)])
    assert results.hits


async def test_the_last_text_leaves_no_word(index: Index, store: Store, chat: int) -> None:
    source = await index.add(_text("qzvword alone\n" * 200, chat))
    await index.remove([source.id])
    await store._db.run_on_writer(_checkpoint)
    assert _file_words(store, b"qzvword") == [False]


async def test_a_file_that_changes_while_it_is_indexed_leaves_one_text(index: Index, chat: int) -> None:
    for n in range(3):
        new = NewSource(f"turbine {n}\n" * 20_000, "a.py", "file", chat=chat, path="a.py", hash=str(n))
        await index.keep(new)
    await index.settle()
    page = await index.sources(chat=chat)
    [results] = await index.search([Query("turbine", chat=chat)])
    assert (len(page.sources), {hit.source.id for hit in results.hits}) == (1, {page.sources[0].id})


async def test_a_small_text_does_not_wait_for_a_large_one(
    index: Index, store: Store, chat: int, other: int
) -> None:
    await index.keep(_text("a line of noise 4711\n" * 200_000, other, "large"))
    small = await index.add(_text("the turbine", chat, "small"))
    assert small.chunks == 1
    waiting = await store.index.pending()
    assert [one.label for one in waiting] == ["large"]
    await index.settle()


async def test_a_disk_that_is_full_is_told_and_what_was_kept_is_taken_up_later(
    index: Index, store: Store, chat: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> bool:
        raise StorageFailed("full", "The database reports: database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store.index, "enter", full)
        with pytest.raises(StorageFailed):
            await index.add(_text("the turbine", chat))
        assert (await index.search([Query("turbine", chat=chat)]))[0].hits == ()
    await index.settle()
    [results] = await index.search([Query("turbine", chat=chat)])
    assert results.hits


async def test_a_text_that_cannot_be_divided_is_kept_and_harms_no_other(
    index: Index, chat: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    with monkeypatch.context() as patch:
        patch.setattr("sidecar.index.dividing.chunks", broken)
        bad = await index.add(_text("the turbine", chat))
    good = await index.add(_text("the propeller", chat))
    whole = await index.get(bad.id)
    assert whole is not None
    assert (whole.text, bad.chunks, good.chunks) == ("the turbine", 0, 1)


async def test_two_processes_share_the_work_that_is_left(tmp_path: Path) -> None:
    """The same text is taken up by both: each slice is entered once."""
    async with anyio.create_task_group() as tasks:
        stores = []
        for n in range(2):
            store = Store(
                str(tmp_path / "data"), 10.0, ProcessIdentity(f"i{n}", "b", "n", n, 0), lambda _: True
            )
            await store.open(tasks, lambda _: None)
            stores.append(store)
        indexes = [Index(store.index, tasks) for store in stores]
        await indexes[0].keep(
            NewSource("a line of noise 4711\n" * 100_000 + "turbine", "log", "output", chat=1)
        )
        indexes[1].start()
        for index in indexes:
            await index.settle()
        [results] = await indexes[1].search([Query("turbine", chat=1)])
        page = await indexes[0].sources(chat=1)
        rows = await stores[0]._db.read(
            lambda db: db.execute("SELECT count(*) FROM index_chunks").fetchone()[0]
        )
        assert (len(results.hits), page.sources[0].chunks) == (1, rows)
        for store in stores:
            await store.close()
