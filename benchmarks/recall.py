"""`python -m benchmarks.recall`: how much of what a question needs comes back from a long chat's past; no pipe.

Imports labelled chats into a database of its own, searches for each question, packs what was found into a budget, and
counts the evidence turns whose whole text is there. Beside it, in the same run and by the same count: the last turns,
plain BM25 over all messages, and the newest messages of the user. Shares are means over questions.

The weights of the ranking were fitted on the chats in `FITTED`; figures of the others are those that count. The
labelled chats are not part of the project: `SIDECAR_EVALS`, else `../shared/evals`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any

from sidecar.chat.actions.history_import import ImportSurvey, TurnEvents, TurnGrouper
from sidecar.chat.actions.import_lines import decode
from sidecar.context.retrieval import pack_snippets, rank_messages, render_snippets, terms_of
from sidecar.context.standing import collect_standing_instructions
from sidecar.context.tokens.counting import TokenCounter
from sidecar.context.tokens.families import family_of
from sidecar.model.chats import Chat as StoredChat
from sidecar.model.chats import ChatKey
from sidecar.model.events import NewEvent
from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.search import message_search
from sidecar.store.tables import chats, journal
from sidecar.store.tables.migrations import known_migrations, migrate
from sidecar.store.tables.projections import Projection

BUDGETS = (2000, 4000, 8000)
FITTED = frozenset(("locomo-0", "locomo-2", "beam-1", "beam-5", "beam-9", "beam-13", "beam-17"))

RULES_SHARE = 0.12
MAX_RULES = 600
"""Tokens of standing instructions and preferences: this share of the budget, and never more than that."""

RECENT_SHARE = 0.15
"""Of the budget, for the last two turns, the newest whole or cut; what they do not take is left to retrieval."""

Json = dict[str, Any]
Count = Callable[[str], int]
Method = Callable[["Chat", str, int], str]


def main() -> int:
    arguments = _arguments()
    folder = Path(os.environ.get("SIDECAR_EVALS") or Path(__file__).parents[2] / "shared" / "evals")
    files = sorted((folder / "history").glob("*.json.gz")) if folder.is_dir() else []
    if not files:
        print(
            f"Nothing is measured: there are no labelled chats in {folder} (SIDECAR_EVALS names another folder)."
        )
        return 0
    count = _count_of(arguments.counter)
    scores: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    times: list[float] = []
    for file in files:
        data = json.loads(gzip.decompress(file.read_bytes()))
        if re.search(arguments.only, data["name"]):
            _measure(Chat(data, count, arguments.speakers), data, scores, times)
            print(f"{data['name']}: done", file=sys.stderr, flush=True)
    print(_table(scores, arguments.kinds))
    worst = quantiles(times, n=20)[-1] * 1000
    print(f"\nsearch and ranking: median {median(times) * 1000:.1f} ms, p95 {worst:.1f} ms")
    return 0


class Chat:
    """A labelled chat in a database of its own, and what it is asked for."""

    def __init__(self, data: Json, count: Count, speakers: str) -> None:
        self.count = count
        self.db: Connection = connect(":memory:", isolation_level=None)
        migrate(self.db, known_migrations(), lambda _: None)
        lines = list(_lines(data["turns"], speakers))
        self.id = _imported(self.db, lines)
        self.said = [f"{line['role']}: {line['text']}" for line in lines]
        self.by_user = [line["role"] != "assistant" for line in lines]
        self.user_texts = [line["text"] for line in lines if line["role"] != "assistant"]
        self.messages = [id for (id,) in self.db.execute("SELECT id FROM messages ORDER BY id")]
        self.turn_of = dict(self.db.execute("SELECT id, turn FROM messages"))

    def whole(self, order: Iterable[int], budget: int) -> str:
        """As many whole messages, by their numbers, as fit."""
        taken: list[str] = []
        for at in order:
            tokens = self.count(self.said[at] + "\n")
            if tokens <= budget:
                budget -= tokens
                taken.append(self.said[at])
        return "\n".join(taken)


def last_turns(chat: Chat, question: str, budget: int) -> str:
    return chat.whole(range(len(chat.said) - 1, -1, -1), budget)


def newest_of_user(chat: Chat, question: str, budget: int) -> str:
    numbers = range(len(chat.said) - 1, -1, -1)
    return chat.whole((at for at in numbers if chat.by_user[at]), budget)


def bm25(chat: Chat, question: str, budget: int) -> str:
    words = dict.fromkeys(re.findall(r"[^\W_]+", question.lower()))
    query = " OR ".join(f'"{word}"' for word in words)
    rows = chat.db.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank", (query,))
    numbers = {id: at for at, id in enumerate(chat.messages)}
    return chat.whole([numbers[id] for (id,) in rows], budget)


def retrieval(chat: Chat, question: str, budget: int) -> str:
    """Search alone, with all of the budget."""
    return render_snippets(pack_snippets(_ranked(chat, question), chat.count, budget))


def window(chat: Chat, question: str, budget: int) -> str:
    """As a window is assembled: standing instructions, the last two turns within their share, and what search finds."""
    rules = "\n".join(
        collect_standing_instructions(chat.user_texts, chat.count, min(MAX_RULES, int(budget * RULES_SHARE)))
    )
    budget -= chat.count(rules)
    recent, sent = _recent(chat, int(budget * RECENT_SHARE))
    budget -= chat.count(recent)
    found = render_snippets(pack_snippets(_ranked(chat, question, sent), chat.count, budget))
    return "\n".join((rules, recent, found))


METHODS: dict[str, Method] = {
    "last turns": last_turns,
    "newest user messages": newest_of_user,
    "plain BM25": bm25,
    "retrieval alone": retrieval,
    "ours: rules, last turns, retrieval": window,
}


def _ranked(chat: Chat, question: str, without: frozenset[str] = frozenset()) -> list[Any]:
    return rank_messages(question, message_search.search(chat.db, chat.id, terms_of(question)), without)


def _recent(chat: Chat, room: int) -> tuple[str, frozenset[str]]:
    turns = list(dict.fromkeys(chat.turn_of[id] for id in chat.messages))[-2:]
    taken: list[str] = []
    sent: set[str] = set()
    for turn in reversed(turns):
        text = "\n".join(
            said for id, said in zip(chat.messages, chat.said, strict=True) if chat.turn_of[id] == turn
        )
        if chat.count(text + "\n") > room:
            taken.insert(0, _cut(text, chat.count, room))
            break
        taken.insert(0, text)
        sent.add(turn)
        room -= chat.count(text + "\n")
    return "\n".join(taken), frozenset(sent)


def _cut(text: str, count: Count, room: int) -> str:
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= room else (low, middle - 1)
    return text[:low]


def _measure(
    chat: Chat, data: Json, scores: dict[tuple[str, ...], dict[int, list[float]]], times: list[float]
) -> None:
    texts = {turn["id"]: turn["text"] for turn in data["turns"]}
    family = data["name"].partition("-")[0]
    part = "fitted on" if data["name"] in FITTED else "others"
    for question in data["questions"]:
        evidence = [texts[id] for id in question["evidence"] if id in texts]
        if not evidence:
            continue
        began = time.perf_counter()
        _ranked(chat, question["question"])
        times.append(time.perf_counter() - began)
        for name, method in METHODS.items():
            for budget in BUDGETS:
                text = method(chat, question["question"], budget)
                share = mean(one in text for one in evidence)
                scores[name, family, part][budget].append(share)
                scores[name, family, "all"][budget].append(share)
                scores[name, family, "kind " + question["kind"]][budget].append(share)


def _table(scores: dict[tuple[str, ...], dict[int, list[float]]], kinds: bool) -> str:
    families = sorted({key[1] for key in scores}, reverse=True)
    parts = ["others", "fitted on", "all"]
    if kinds:
        parts += sorted({key[2] for key in scores if key[2].startswith("kind ")})
    lines = []
    for part in parts:
        shown = [family for family in families if any(key[1:] == (family, part) for key in scores)]
        columns = [f"{family} {budget // 1000}k" for family in shown for budget in BUDGETS]
        lines += [f"\n{part:36}" + "".join(f"{column:>11}" for column in columns)]
        for name in METHODS:
            cells = [mean(scores[name, family, part][budget]) for family in shown for budget in BUDGETS]
            lines.append(f"{name:36}" + "".join(f"{cell:11.3f}" for cell in cells))
    return "\n".join(lines)


def _lines(turns: Sequence[Json], speakers: str) -> Iterable[Json]:
    """Plain turns as `chat/import` takes them. With `roles`, the second speaker of a dialogue is the assistant."""
    ts: str | None = None
    for turn in turns:
        ts = _moment(turn.get("date") or "") or ts
        role = turn["role"]
        if speakers == "roles" and role not in ("user", "assistant"):
            role = "user" if role == turns[0]["role"] else "assistant"
        yield {"role": role, "text": turn["text"], **({"ts": ts} if ts and speakers != "undated" else {})}


def _moment(written: str) -> str | None:
    for shape in ("%I:%M %p on %d %B, %Y", "%B-%d-%Y"):
        try:
            return datetime.strptime(written, shape).replace(tzinfo=UTC).isoformat()
        except ValueError:
            continue
    return None


def _events(source: str, chat: StoredChat) -> list[NewEvent]:
    """What an import of these lines appends."""
    survey, turns = ImportSurvey(), TurnGrouper()
    ended = []
    for line in source.encode().splitlines():
        entry = decode(line)
        survey.take(entry)
        ended.append(turns.take(entry))
    ended.append(turns.last())
    events = TurnEvents(chat, renumber=False)
    return [
        *(event for turn in ended if turn for event in events.of(turn)),
        *events.end(survey.imported, chat),
    ]


def _imported(db: Connection, lines: Iterable[Json]) -> int:
    chat = chats.create(db, ChatKey("bench", "chat", "c", "s"), None, {}, 0)
    source = "\n".join(json.dumps(line) for line in lines)
    events = journal.number(_events(source, chat), 0, 0)
    db.execute("BEGIN")
    journal.insert(db, chat.id, events)
    projection = Projection(db, chat.id)
    for event in events:
        projection.take(event)
    projection.finish()
    db.execute("COMMIT")
    return chat.id


def _count_of(name: str) -> Count:
    if name == "bytes":
        return lambda text: len(text.encode(errors="replace")) // 4 + 1
    counter, family = TokenCounter(), family_of("gpt-4o")
    return lambda text: counter.count(text, family)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__)
    parser.add_argument("--only", default="", help="chats whose name holds this pattern")
    parser.add_argument("--kinds", action="store_true", help="each kind of question by itself too")
    parser.add_argument(
        "--counter", choices=("o200k", "bytes"), default="o200k", help="bytes: a quarter of them"
    )
    parser.add_argument(
        "--speakers",
        choices=("names", "roles", "undated"),
        default="names",
        help="how a dialogue is imported: with its names, as user and assistant, or without its dates",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
