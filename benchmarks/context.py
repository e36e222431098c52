"""`python -m benchmarks.context`: what of a long chat is in the window when it is asked about, through the pipe.

Imports labelled chats, asks for the context of each question at a budget, and counts the evidence turns whose text is
in it. Beside it, in the same run and by the same count: the last turns, plain BM25 over all turns, and the newest
messages of the user. Shares and weights were chosen by the chats in `recall.FITTED`; "held out" are the others. The
labelled chats are not part of the project: `SIDECAR_EVALS`, else `../shared/evals`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from sidecar.context.tokens.counting import TokenCounter as Tokens
from sidecar.context.tokens.families import family_of

from .pipe import Pipe
from .recall import FITTED

BUDGETS = (2000, 4000, 8000)
MODEL = "openai:gpt-4o"
Json = dict[str, Any]
_tokens = Tokens()
_family = family_of("gpt-4o")


def main() -> int:
    arguments = _arguments()
    folder = Path(os.environ.get("SIDECAR_EVALS") or Path(__file__).parents[2] / "shared" / "evals")
    files = sorted((folder / "history").glob("*.json.gz")) if folder.is_dir() else []
    if not files:
        print(
            f"Nothing is measured: there are no labelled chats in {folder} (SIDECAR_EVALS names another folder)."
        )
        return 0
    chosen = [file for file in files if re.search(arguments.only, file.name)]
    scores: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    times: list[float] = []
    fills: list[float] = []
    for file in chosen:
        _measure(json.loads(gzip.decompress(file.read_bytes())), scores, times, fills, arguments.questions)
        print(f"{file.name}: done", file=sys.stderr, flush=True)
    print(_table(scores))
    slow = quantiles(times, n=20)[-1] * 1000
    print(f"\nchat/context: median {median(times) * 1000:.1f} ms, p95 {slow:.1f} ms; {len(times)} calls")
    print(f"the budget used: at least {min(fills):.3f}, median {median(fills):.3f}; {len(chosen)} chats")
    return 0


def _measure(
    chat: Json,
    scores: dict[tuple[str, str, int], list[float]],
    times: list[float],
    fills: list[float],
    most: int,
) -> None:
    turns = chat["turns"]
    kind = chat["name"].partition("-")[0]
    texts = {turn["id"]: _folded(turn["text"]) for turn in turns}
    bm25 = _Bm25([turn["text"] for turn in turns])
    with tempfile.TemporaryDirectory() as data, Pipe(data, MODEL) as pipe:
        lines = "\n".join(json.dumps(_line(turn)) for turn in turns)
        pipe.call("chat/import", chatId="c", data=lines)
        for question in chat["questions"][:most]:
            evidence = [id for id in question["evidence"] if id in texts]
            if not evidence:
                continue
            for budget in BUDGETS:
                began = time.perf_counter()
                told = pipe.call(
                    "chat/context", chatId="c", text=question["question"], budget=budget, includeText=True
                )
                times.append(time.perf_counter() - began)
                sent = [b for b in told["blocks"] if b["included"] != "dropped" and b["kind"] != "prompt"]
                window = _folded("\n".join(block.get("text") or "" for block in sent))
                found = sum(texts[id] in window for id in evidence) / len(evidence)
                fills.append(told["used"] / told["budget"])
                scores[kind, "ours", budget].append(found)
                if chat["name"] not in FITTED:
                    scores[f"{kind} held out", "ours", budget].append(found)
                if question.get("kind"):
                    scores[f"{kind} {question['kind']}", "ours", budget].append(found)
                for name, order in _baselines(turns, question["question"], bm25).items():
                    kept = _fill(turns, order, budget)
                    scores[kind, name, budget].append(sum(id in kept for id in evidence) / len(evidence))


def _baselines(turns: Sequence[Json], question: str, bm25: _Bm25) -> dict[str, Iterable[int]]:
    newest = range(len(turns) - 1, -1, -1)
    return {
        "last turns": newest,
        "BM25": bm25.order(question),
        "newest user messages": [at for at in newest if turns[at]["role"] != "assistant"],
    }


def _fill(turns: Sequence[Json], order: Iterable[int], budget: int) -> set[str]:
    left, kept = budget, set()
    for at in order:
        left -= _tokens.count(turns[at]["text"], _family) + 4
        if left < 0:
            break
        kept.add(turns[at]["id"])
    return kept


class _Bm25:
    def __init__(self, texts: Sequence[str]) -> None:
        self._words = [_words(text) for text in texts]
        self._mean = sum(map(len, self._words)) / max(1, len(texts))
        self._holders = Counter(word for words in self._words for word in set(words))

    def order(self, question: str) -> list[int]:
        asked = set(_words(question))
        scored = [(self._score(asked, words), at) for at, words in enumerate(self._words)]
        return [at for score, at in sorted(scored, reverse=True) if score > 0]

    def _score(self, asked: set[str], words: list[str]) -> float:
        counts = Counter(words)
        total = 0.0
        for word in asked:
            if counts[word]:
                held = self._holders[word]
                rarity = math.log(1 + (len(self._words) - held + 0.5) / (held + 0.5))
                often = counts[word]
                total += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(words) / self._mean))
        return total


def _line(turn: Json) -> Json:
    line = {"role": turn["role"], "text": turn["text"]}
    return {**line, "ts": turn["date"]} if turn.get("date") else line


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _table(scores: dict[tuple[str, str, int], list[float]]) -> str:
    kinds = sorted({kind for kind, _, _ in scores})
    names: Callable[[str], list[str]] = lambda kind: sorted({name for k, name, _ in scores if k == kind})  # noqa: E731
    lines = [
        "| chats | by | " + " | ".join(f"{budget}" for budget in BUDGETS) + " | questions |",
        "|---|---|" + "---:|" * 4,
    ]
    for kind in kinds:
        for name in names(kind):
            cells = [scores[kind, name, budget] for budget in BUDGETS]
            row = " | ".join(f"{sum(cell) / len(cell):.3f}" for cell in cells)
            lines.append(f"| {kind} | {name} | {row} | {len(cells[0])} |")
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.context", description=__doc__)
    parser.add_argument("--only", default="", help="a regular expression for the names of the chats")
    parser.add_argument("--questions", type=int, default=10_000, help="at most so many of each chat")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
