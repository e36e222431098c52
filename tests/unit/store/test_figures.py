"""Figures are what the live events say, however they were committed; what is brought in or purged changes no total."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from sidecar.model.chats import ChatKey
from sidecar.model.events import NewEvent, decode
from sidecar.store import purge
from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.tables import appending, chats
from sidecar.store.tables.figures import FigureTotals
from sidecar.store.tables.migrations import known_migrations, migrate
from sidecar.store.tables.statistics import StatisticsScope, read_statistics
from sidecar.system.clock import DAY_MS

Json = dict[str, Any]

NOW = 20_000 * DAY_MS
TOOLS = ("run_command", "search_context", "fetch_url")
MEASURES = ("captured", "sent", "returned", "searches", "fetches", "fetchHits")
TOKENS = ("inputTokens", "outputTokens", "cachedTokens", "cost")


@pytest.fixture
def db() -> Iterator[Connection]:
    connection = connect(":memory:", isolation_level=None)
    migrate(connection, known_migrations(), lambda _: None)
    yield connection
    connection.close()


def make(db: Connection, name: str, project: str | None = None) -> int:
    return chats.create(db, ChatKey("test", "chat", name, name), project, {}, NOW).id


def commit(db: Connection, chat: int, events: list[NewEvent], now: int = NOW) -> None:
    appending.append(db, chat, chats.get(db, chat).last_seq, events, now)


def turn(rng: random.Random, number: int, ts: int | None = None) -> list[NewEvent]:
    """A turn with some calls and, most of the time, what a provider tells of it."""
    id = f"t-{number}"
    item = {"id": f"i-{number}", "turnId": id, "type": "tool", "status": "completed", "startedAt": 0}
    events = [
        NewEvent("prompt.accepted", {"promptId": f"p-{number}", "turnId": id}, id, ts=ts),
        NewEvent("turn.started", {"promptId": f"p-{number}", "model": "m", "engine": "native"}, id, ts=ts),
    ]
    for _ in range(rng.randrange(3)):
        measured = {name: rng.randrange(1000) for name in MEASURES if rng.random() < 0.5}
        data: Json = {"item": {**item, "name": rng.choice(TOOLS)}}
        events.append(NewEvent("tool.ended", {**data, "measured": measured} if measured else data, id, ts=ts))
    usage = {name: rng.randrange(1000) for name in TOKENS if rng.random() < 0.8}
    events.append(NewEvent("turn.ended", {"reason": "end_turn", "usage": usage}, id, ts=ts))
    return events


def told(db: Connection, chat: int) -> Counter[str]:
    """What the journal of a chat says, added up by somebody who knows nothing of the table."""
    sums: Counter[str] = Counter()
    for type, raw in db.execute("SELECT type, data FROM events WHERE chat = ?", (chat,)):
        data = decode(raw)
        if type == "tool.ended":
            sums.update({"calls": 1, **data.get("measured", {})})
        if type == "turn.ended":
            sums.update(data["usage"])
    return sums


def counted(db: Connection, of: StatisticsScope) -> Counter[str]:
    found = read_statistics(db, of)
    usage, savings = found.usage, found.savings
    pairs = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedTokens": usage.cached_tokens,
        "cost": usage.cost,
        "captured": savings.captured,
        "sent": savings.sent,
        "returned": savings.returned,
        "searches": found.searches,
        "fetches": found.fetches,
        "fetchHits": found.fetch_hits,
        "calls": sum(tool.calls for tool in found.tools),
    }
    return +Counter({name: value for name, value in pairs.items() if value})


@pytest.mark.parametrize("seed", range(12))
def test_totals_are_the_sum_of_what_the_events_say(db: Connection, seed: int) -> None:
    rng = random.Random(seed)
    made = [make(db, f"c{n}", rng.choice([None, "/a", "/b"])) for n in range(4)]
    for number in range(30):
        events, chat = turn(rng, number), rng.choice(made)
        cut = rng.randrange(1, len(events))
        day = NOW + rng.randrange(3) * DAY_MS
        for part in (events[:cut], events[cut:]):
            commit(db, chat, part, day)
    total: Counter[str] = Counter()
    for chat in made:
        assert counted(db, StatisticsScope(chat=chat)) == +told(db, chat)
        total.update(told(db, chat))
    assert counted(db, StatisticsScope()) == +total
    projects = {project: StatisticsScope(paths=(project,)) for project in ("/a", "/b")}
    for project, of in projects.items():
        ours = [chat for chat in made if chats.get(db, chat).project_path == project]
        assert counted(db, of) == +sum((told(db, chat) for chat in ours), Counter[str]())
    days = [day.input_tokens or 0 for day in read_statistics(db, StatisticsScope()).days]
    assert sum(days) == total["inputTokens"]


def test_a_purged_chat_stays_in_the_totals_and_leaves_no_tool(db: Connection) -> None:
    rng = random.Random(1)
    keep, gone = make(db, "keep", "/a"), make(db, "gone", "/a")
    for number in range(10):
        commit(db, rng.choice([keep, gone]), turn(rng, number))
    before = read_statistics(db, StatisticsScope(paths=("/a",)))
    purge.mark(db, gone, NOW)
    after = read_statistics(db, StatisticsScope(paths=("/a",)))
    assert (after.usage, after.savings, after.searches) == (before.usage, before.savings, before.searches)
    assert (after.chats, after.purged_chats, after.turns + after.purged_turns) == (1, 1, before.turns)
    assert after.events + after.purged_events == before.events
    assert db.execute("SELECT DISTINCT chat FROM figures WHERE tool <> ''").fetchall() in ([(keep,)], [])


def test_what_is_brought_in_is_not_measured_again(db: Connection) -> None:
    chat = make(db, "copy")
    commit(db, chat, turn(random.Random(3), 1, ts=NOW))
    found = read_statistics(db, StatisticsScope())
    assert (found.turns, found.usage.input_tokens, found.savings.captured, found.counted_turns) == (
        1,
        None,
        None,
        0,
    )


def test_what_nobody_measured_is_none_and_not_zero(db: Connection) -> None:
    chat = make(db, "c")
    commit(
        db,
        chat,
        [*turn(random.Random(0), 1)[:2], NewEvent("turn.ended", {"reason": "end_turn", "usage": {}}, "t-1")],
    )
    found = read_statistics(db, StatisticsScope(chat=chat))
    assert (found.usage.input_tokens, found.usage.cost, found.savings.tokens_saved, found.fetches) == (
        None,
    ) * 4
    assert (found.turns, found.searches, found.compactions) == (1, 0, 0)


def test_a_compaction_that_is_undone_saved_nothing(db: Connection) -> None:
    chat = make(db, "c")
    item = {"status": "completed", "tokensBefore": 900, "tokensAfter": 300, "turnId": "t", "id": "co-1"}
    started = NewEvent("compaction.started", {"compactionId": "co-1"})
    ended = NewEvent("compaction.ended", {"compactionId": "co-1", "item": item})
    commit(db, chat, [started, ended])
    assert (
        read_statistics(db, StatisticsScope()).compactions,
        read_statistics(db, StatisticsScope()).compaction_tokens,
    ) == (1, 600)
    for _ in range(2):
        commit(db, chat, [NewEvent("compaction.undone", {"compactionId": "co-1"})])
    assert (
        read_statistics(db, StatisticsScope()).compactions,
        read_statistics(db, StatisticsScope()).compaction_tokens,
    ) == (0, 0)


def test_an_older_database_keeps_what_providers_told_and_counts_a_fork_once() -> None:
    db = connect(":memory:", isolation_level=None)
    old = [step for step in known_migrations() if step.version <= 4]
    migrate(db, old, lambda _: None)
    for chat in (1, 2):
        db.execute(
            "INSERT INTO chats (id, session_id, namespace, kind, key, epoch, created_at, last_activity, project_path)"
            " VALUES (?1, ?1, 'n', 'chat', ?1, 'e', 0, 0, '/a')",
            (chat,),
        )
        db.execute(
            "INSERT INTO turns (chat, ordinal, id, prompt, status, usage, model, engine, started_at, first_seq)"
            " VALUES (?, 1, 't-1', 'p', 'completed', '{\"inputTokens\":7,\"outputTokens\":2}', 'm', 'native', ?, 1)",
            (chat, NOW),
        )
    migrate(db, known_migrations(), lambda _: None)
    found = read_statistics(db, StatisticsScope(paths=("/a",)))
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.cached_tokens) == (7, 2, None)
    assert (found.counted_turns, [project.path for project in found.projects]) == (1, ["/a"])
    assert db.execute("SELECT hash FROM projects").fetchall() == [("v0:/a",)]
    db.close()


def test_a_projection_that_counts_twice_is_caught(db: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = FigureTotals.tool_ended

    def twice(self: FigureTotals, event: Any, data: Json) -> None:
        honest(self, event, data)
        honest(self, event, data)

    monkeypatch.setattr(FigureTotals, "tool_ended", twice)
    with pytest.raises(AssertionError):
        test_totals_are_the_sum_of_what_the_events_say(db, 1)
