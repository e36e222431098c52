"""`python -m benchmarks.index [FOLDER]`: how much of what a question asks for comes back from the index; no pipe.

Texts are kept as tools' outputs, then each question is searched: within its own text's chat (scoped), and in one
store with all of them (pooled). Counted is how often the answer's own words stand in a result of at most so many
tokens, white space and case folded. Beside it, in the same run and by the same count: the head and the tail of the
text, and plain FTS5 over chunks of 20 lines. Then what ten megabytes cost: time to index, bytes on disk, time to
search.

The labelled texts are not part of the project: FOLDER, else `SIDECAR_EVALS`, else `../shared/evals`. Without them,
and beside them, texts of our own are measured (`index_data`).
"""

from __future__ import annotations

import argparse
import os
import random
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles

import anyio

from sidecar.context.tokens.counting import TokenCounter as Tokens
from sidecar.index import Index
from sidecar.index.index import PLAIN_FAMILY
from sidecar.model.chats import ProcessIdentity
from sidecar.model.index import NewSource, Query
from sidecar.store import Store
from sidecar.store.engine.sqlite import Connection, connect

from .index_data import HELD_OUT, Text, labelled, ours, ten_megabytes

BUDGETS = (300, 600, 1200)
SEARCHES = 60
"""Of each kind, on ten megabytes."""

TOKENS = Tokens()
Scores = dict[tuple[str, str, int], list[bool]]


def main() -> None:
    arguments = _arguments()
    folder = Path(
        arguments.folder or os.environ.get("SIDECAR_EVALS") or Path(__file__).parents[2] / "shared" / "evals"
    )
    known = labelled(folder)
    if not known:
        print(
            f"No labelled texts in {folder} (an argument or SIDECAR_EVALS names another folder):"
            " only ours are measured.\n"
        )
    anyio.run(_measure, known, ours())


async def _measure(known: Sequence[Text], own: Sequence[Text]) -> None:
    groups = {
        "labelled": known,
        "held out": [text for text in known if text.name in HELD_OUT],
        "ours": own,
    }
    print("Share of answers found, by tokens of the result:\n")
    print("| texts | questions | | " + " | ".join(map(str, BUDGETS)) + " |")
    print("|---|---|---|" + "---|" * len(BUDGETS))
    for name, texts in groups.items():
        if texts:
            # The held out ones are asked in the store of all labelled ones.
            around = known if name == "held out" else texts
            _print_group(name, texts, await _asked(texts, around))
    print()
    await _measure_size(ten_megabytes([*known, *own]))


def _print_group(name: str, texts: Sequence[Text], scores: Scores) -> None:
    count = sum(len(text.questions) for text in texts)
    for where in ("scoped", "pooled"):
        for method in dict.fromkeys(method for method, at, _ in scores if at == where):
            shares = [_share(scores[method, where, budget]) for budget in BUDGETS]
            print(f"| {name} | {count} | {method}, {where} | " + " | ".join(shares) + " |")


def _share(found: Sequence[bool]) -> str:
    return f"{sum(found) / len(found):.3f}"


async def _asked(texts: Sequence[Text], around: Sequence[Text]) -> Scores:
    scores: Scores = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        return await _asked_in(folder, texts, around, scores)


async def _asked_in(folder: str, texts: Sequence[Text], around: Sequence[Text], scores: Scores) -> Scores:
    async with _index(folder) as index:
        for at, text in enumerate(around):
            await index.add(NewSource(text.text, text.name, text.kind, chat=at + 1, path=text.path))
        plain = _Plain(around)
        for text in texts:
            chat = list(around).index(text) + 1
            for question, answer in text.questions:
                for budget in BUDGETS:
                    for scope in ("scoped", "pooled"):
                        query = Query(
                            question,
                            scope="chat" if scope == "scoped" else "all",
                            chat=chat if scope == "scoped" else None,
                            max_tokens=budget,
                        )
                        [results] = await index.search([query])
                        shown = "\n".join(hit.text for hit in results.hits)
                        scores["ours", scope, budget].append(_holds(shown, answer))
                        among = chat if scope == "scoped" else None
                        scores["FTS5, 20 lines", scope, budget].append(
                            _holds(plain.search(question, among, budget), answer)
                        )
                    scores["head and tail", "scoped", budget].append(_holds(_ends(text.text, budget), answer))
    return scores


def _holds(shown: str, answer: str) -> bool:
    return _folded(answer) in _folded(shown)


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


def _ends(text: str, budget: int) -> str:
    half = budget // 2
    head = TOKENS.cut(text[: 40 * budget], half, PLAIN_FAMILY)
    return head + "\n" + TOKENS.cut(text[-40 * budget :], budget - half, PLAIN_FAMILY, "tail")


class _Plain:
    """What everybody would write first: chunks of 20 lines in one FTS5 table, the words of the question joined by
    OR."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self._db: Connection = connect(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE chunks USING fts5 (text, owner UNINDEXED, tokenize = 'porter')"
        )
        for owner, text in enumerate(texts, 1):
            lines = text.text.split("\n")
            rows = [("\n".join(lines[at : at + 20]), owner) for at in range(0, len(lines), 20)]
            self._db.executemany("INSERT INTO chunks VALUES (?, ?)", rows)

    def search(self, question: str, owner: int | None, budget: int) -> str:
        match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        rows = self._db.execute(
            "SELECT text FROM chunks WHERE chunks MATCH ?1 AND (?2 IS NULL OR owner = ?2) ORDER BY rank LIMIT 5",
            (match, owner),
        )
        return TOKENS.cut("\n".join(text for (text,) in rows), budget, PLAIN_FAMILY)


async def _measure_size(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with _index(folder) as index:
            await index.add(NewSource("another text, which stays", "other", "text", chat=2))
            watch = _Watch()
            source = await index.add(NewSource(text, "ten megabytes", "output", chat=1))
            print(f"10 MB indexed in {watch.told()}: {source.lines} lines, {source.chunks} chunks")
            for name, ask in _asks(text).items():
                await _time(index, name, [ask() for _ in range(SEARCHES)])
        size = _size(folder)
        print(f"on disk: {size / 1e6:.1f} MB, {size / len(text.encode()):.2f} times the text")
        async with _index(folder) as index:
            watch = _Watch()
            await index.remove_chat(1)
            print(f"a chat with these 10 MB removed in {watch.told()}")


def _size(folder: str) -> int:
    return sum(file.stat().st_size for file in Path(folder).iterdir())


async def _time(index: Index, name: str, queries: Sequence[str]) -> None:
    times, busy = [], []
    for query in queries:
        watch = _Watch()
        await index.search([Query(query, chat=1)])
        times.append(watch.passed())
        busy.append(watch.busy())
    (p50, p95), (cpu50, cpu95) = (
        (1000 * quantiles(some, n=20)[9], 1000 * quantiles(some, n=20)[18]) for some in (times, busy)
    )
    print(
        f"search, {name}: p50 {p50:.1f} ms, p95 {p95:.1f} ms (of the processor {cpu50:.1f} and {cpu95:.1f} ms)"
    )


class _Watch:
    """Time that passed, and what of it the process had of the processors: they differ on a busy machine."""

    def __init__(self) -> None:
        self._started, self._busy = time.perf_counter(), time.process_time()

    def passed(self) -> float:
        return time.perf_counter() - self._started

    def busy(self) -> float:
        return time.process_time() - self._busy

    def told(self) -> str:
        return f"{self.passed():.2f} s (of the processor {self.busy():.2f} s)"


def _asks(text: str) -> dict[str, Callable[[], str]]:
    """Kinds of queries, drawn from the words of the text by a fixed seed."""
    draw = random.Random(5)
    often = Counter(word.lower() for word in re.findall(r"[^\W_]{3,}", text))
    common = [word for word, _ in often.most_common(50)]
    rare = [word for word, count in often.items() if count <= 3]
    middling = [word for word, count in often.items() if 20 < count < 2000]
    return {
        "one rare word": lambda: draw.choice(rare),
        "one common word": lambda: draw.choice(common),
        "three common words": lambda: " ".join(draw.sample(common, 3)),
        "three middling words": lambda: " ".join(draw.sample(middling, 3)),
        "a rare, a middling, a common one": lambda: " ".join(
            (draw.choice(rare), draw.choice(middling), draw.choice(common))
        ),
    }


@asynccontextmanager
async def _index(folder: str) -> AsyncIterator[Index]:
    async with anyio.create_task_group() as tasks:
        store = Store(folder, 10.0, ProcessIdentity("benchmark", "", "", os.getpid(), 0), lambda _: True)
        await store.open(tasks, lambda _: None)
        yield Index(store.index, tasks)
        await store.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index", description=__doc__)
    parser.add_argument("folder", nargs="?", help="where the labelled texts are")
    return parser.parse_args()


if __name__ == "__main__":
    main()
