"""One of several processes that index and search the same database.

`python -m tests.unit.index.worker FOLDER NUMBER TEXTS`

Prints what it found, or dies of the first error that reaches it.
"""

from __future__ import annotations

import os
import sys

import anyio

from sidecar.index import Index
from sidecar.model.chats import ProcessIdentity
from sidecar.model.index import NewSource, Query
from sidecar.store import Store


async def main(folder: str, number: int, texts: int) -> None:
    async with anyio.create_task_group() as tasks:
        me = ProcessIdentity(f"worker {number}", "", "", os.getpid(), 0)
        store = Store(folder, 30.0, me, lambda _: True)
        await store.open(tasks, lambda _: None)
        try:
            found, removed = await index_and_search(Index(store.index, tasks), number, texts)
        finally:
            await store.close()  # a store that stays open keeps its threads, and so the process
        sys.stdout.write(f"{found} {removed}\n")


async def index_and_search(index: Index, number: int, texts: int) -> tuple[int, int]:
    """Return how many of the texts were found at once, and how many sources were removed."""
    index.start()
    found = 0
    for n in range(texts):
        text = f"worker{number} says turbine{n}\n" + f"noise {n} of {number}\n" * 500
        keep = index.add if n % 2 else index.keep
        await keep(NewSource(text, f"text {n}", "output", chat=number + 1, project="/shared"))
        await index.settle()
        mine, all_ = await index.search(
            [Query(f"turbine{n}", chat=number + 1), Query("turbine*", scope="project", project="/shared")]
        )
        found += len(mine.hits) == 1 and len(all_.hits) > 0
    removed = await index.remove([(await index.sources(chat=number + 1, limit=1)).sources[0].id])
    await index.settle()
    return found, removed.sources


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
