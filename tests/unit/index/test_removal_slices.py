"""A text that is being removed is found no more, and its removal goes on where it was interrupted."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sidecar.index import Index
from sidecar.model.index import NewSource, Query
from sidecar.store import Store
from sidecar.store.engine.sqlite import Connection
from sidecar.store.search import index_removal

TEXT = "".join(f"turbine line {n} with some words\n" for n in range(3000))


async def _marked(index: Index, store: Store, chat: int) -> str:
    source = await index.add(NewSource(TEXT, "log", "output", chat=chat))
    assert source.chunks > 20
    await store._db.write(lambda db: index_removal.mark_keys(db, [source.id]))
    return source.id


def _left(db: Connection) -> int:
    tables = ("index_sources", "index_texts", "index_chunks", "index_spelled")
    return sum(int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in tables)


async def test_a_marked_text_is_in_no_answer(index: Index, store: Store, chat: int) -> None:
    id = await _marked(index, store, chat)
    [mine, all] = await index.search([Query("turbine", chat=chat), Query("turbine", scope="all")])
    assert (mine.hits, all.hits, await index.get(id)) == ((), (), None)
    assert (await index.sources(chat=chat)).sources == ()
    assert await store.index.expired_or_excess(2**60, 0) == []
    assert (await index.remove([id])).sources == 0


@pytest.mark.parametrize("done", [1, 40, 160, 400, 640])
async def test_an_interrupted_removal_goes_on(index: Index, store: Store, chat: int, done: int) -> None:
    await _marked(index, store, chat)
    await store._db.write(lambda db: index_removal.remove_slice(db, done))
    assert await store._db.read(_left) > 0
    await index.sweep()
    assert await store._db.read(_left) == 0


async def test_a_slice_of_many_rows_has_few_chunks(index: Index, store: Store, chat: int) -> None:
    """Also where the rows of one text end and the chunks of the next begin."""
    await _marked(index, store, chat)
    source = await index.add(NewSource(TEXT.replace("turbine", "boiler"), "next", "output", chat=chat))
    await store._db.write(lambda db: index_removal.mark_keys(db, [source.id]))
    most = 4 * index_removal.CHUNK_ROWS

    def chunks(db: Connection) -> int:
        return int(db.execute("SELECT count(*) FROM index_chunks").fetchone()[0])

    left = [await store._db.read(chunks)]
    while await store._db.write(lambda db: index_removal.remove_slice(db, most)):
        left.append(await store._db.read(chunks))
    assert left[-1] == 0
    assert max(before - after for before, after in pairwise(left)) == 4


async def test_texts_beside_it_are_found_at_every_step(index: Index, store: Store, chat: int) -> None:
    kept = await index.add(NewSource(TEXT.replace("turbine", "boiler"), "kept", "output", chat=chat))
    await _marked(index, store, chat)
    while await store._db.write(lambda db: index_removal.remove_slice(db, 7)):
        [found] = await index.search([Query("boiler line 1234", chat=chat)])
        assert {hit.source.id for hit in found.hits} == {kept.id}


async def test_a_replaced_file_is_found_by_its_new_words_only(index: Index, store: Store, chat: int) -> None:
    for words in ("first turbine\n", "second boiler\n"):
        await index.add(NewSource(words * 50, "a.txt", "file", chat=chat, path="a.txt"))
    [old, new] = await index.search([Query("turbine", chat=chat), Query("boiler", chat=chat)])
    assert (old.hits, len(new.hits) > 0) == ((), True)
