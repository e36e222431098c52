"""What a query finds: its syntax, its scope, its tokens; and that no text of a query breaks anything or leaks."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from sidecar.index import Index
from sidecar.index.query import parse_query, plan_query
from sidecar.model.index import NewSource, Query, Results

NAUGHTY: list[str] = json.loads(
    (Path(__file__).parents[2] / "blackbox" / "input" / "corpus" / "naughty.json").read_text()
)

LINES = [
    "12:00:01 INFO  scheduler: job 17 started on worker alpha",
    "12:00:02 WARN  scheduler: job 17 is slow, worker alpha has no disk space",
    "12:00:03 ERROR connection reset by peer while reading block 4711",
    "12:00:04 INFO  scheduler: job 18 started on worker beta",
    "12:00:05 ERROR permission denied: /var/lib/turbine/state.json",
    "12:00:06 INFO  reset of the connection pool is complete",
]
NOISE = [f"11:{n // 60:02}:{n % 60:02} DEBUG heartbeat {n * 7919} of the gateway" for n in range(2000)]


@pytest.fixture
async def log(index: Index, chat: int) -> Index:
    """A long log with a few lines that matter, in the middle."""
    text = "\n".join([*NOISE[:1000], *LINES, *NOISE[1000:]])
    await index.add(NewSource(text, "tail -f app.log", "output", chat=chat, tool="run_command"))
    return index


async def _ask(index: Index, text: str, chat: int, **more: object) -> Results:
    [results] = await index.search([Query(text, chat=chat, **more)])  # type: ignore[arg-type]
    return results


def _shown(results: Results) -> str:
    return "\n".join(hit.text for hit in results.hits)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("permission denied turbine", 4),
        ("jobs starting beta", 3),
        ('"connection reset"', 2),
        ("reset AND block", 2),
        ("conn* AND reset AND peer", 2),
        ("turbine OR zeppelin", 4),
        ("reset NOT peer", 5),
        ("reset -peer", 5),
        ("state.json", 4),
        ("4711", 2),
    ],
)
async def test_the_line_that_is_meant_comes_first(log: Index, chat: int, query: str, line: int) -> None:
    results = await _ask(log, query, chat)
    first = results.hits[0]
    assert LINES[line] in first.text
    assert first.lines[0] <= 1001 + line <= first.lines[1]


async def test_a_phrase_is_not_its_words(log: Index, chat: int) -> None:
    assert not (await _ask(log, '"reset connection"', chat)).hits


async def test_an_excluded_line_does_not_count(log: Index, chat: int) -> None:
    [first, *_] = (await _ask(log, "started -alpha", chat, max_tokens=40)).hits
    assert "beta" in first.text


async def test_a_part_of_a_word_finds_it(log: Index, chat: int) -> None:
    results = await _ask(log, "urbin", chat)
    assert "turbine" in _shown(results)
    assert results.corrected is None


async def test_a_misspelt_word_is_corrected_and_told(log: Index, chat: int) -> None:
    results = await _ask(log, "permision turbnie", chat)
    assert "permission denied" in _shown(results)
    assert results.corrected == "permission turbine"


async def test_words_without_blanks_are_found(index: Index, chat: int) -> None:
    await index.add(NewSource("第一行\n数据库连接失败了\n最后一行", "log", "output", chat=chat))
    await index.add(NewSource("서버가 연결을 거부했습니다", "log", "output", chat=chat))
    assert "数据库" in _shown(await _ask(index, "连接失败", chat))
    assert "거부" in _shown(await _ask(index, "연결", chat))


async def test_accents_and_case_do_not_matter(index: Index, chat: int) -> None:
    await index.add(NewSource("Der Ärger über die Straße", "brief", "text", chat=chat))
    assert (await _ask(index, "arger STRAßE uber", chat)).hits


@pytest.mark.parametrize("budget", [1, 7, 40, 300, 1200])
@pytest.mark.parametrize("query", ["heartbeat gateway", "worker", "permission denied turbine"])
async def test_no_answer_has_more_tokens_than_it_may(log: Index, chat: int, budget: int, query: str) -> None:
    results = await _ask(log, query, chat, max_tokens=budget)
    assert results.tokens == sum(log.count(hit.text) for hit in results.hits) <= budget


async def test_a_filter_takes_whole_names_only(log: Index, chat: int) -> None:
    await log.add(NewSource("the turbine of another text", "tail", "text", chat=chat))
    found = [
        {hit.source.label for hit in (await _ask(log, "turbine", chat, **{name: value})).hits}
        for name, value in (
            ("source", "tail"),
            ("source", "tail%"),
            ("source", "tail -f app.log"),
            ("source", "TAIL"),
            ("tool", "run_command"),
            ("kind", "text"),
            ("kind", "page"),
        )
    ]
    assert found == [{"tail"}, set(), {"tail -f app.log"}, set(), {"tail -f app.log"}, {"tail"}, set()]


async def test_the_newest_comes_first_when_asked_so(index: Index, chat: int) -> None:
    for n in range(4):
        await index.add(NewSource(f"turbine report {n}", f"report {n}", "text", chat=chat))
    results = await _ask(index, "turbine", chat, sort="recent", limit=2)
    assert [hit.source.label for hit in results.hits] == ["report 3", "report 2"]


async def test_no_naughty_query_fails_or_leaves_its_scope(index: Index, chat: int, other: int) -> None:
    secret = "the secret turbine of another chat: " + " ".join(NAUGHTY)[:20_000]
    await index.add(NewSource(secret, "secret", "output", chat=other, project="/other"))
    await index.add(NewSource("nothing to see here", "mine", "output", chat=chat))
    tricks = [
        'turbine" OR "a',
        "text : turbine",
        "{title text} : turbine",
        "^turbine",
        "turbine NEAR/2 secret",
        "* OR *",
        "rowid:1 OR turbine",
        "turbine) OR (1",
        "AND OR NOT",
        '"""',
        "-",
        "NOT",
        "secret*",
        "\0turbine\0",
        "\ud83d turbine",
        "%",
        "_",
        "out:*",
    ]
    for query in [*NAUGHTY, *tricks]:
        scoped = await index.search(
            [Query(query, chat=chat), Query(query, scope="project", chat=chat, project="/project")]
        )
        filtered = await index.search([Query("turbine", chat=chat, source=query, tool=None)])
        found = {hit.source.label for results in (*scoped, *filtered) for hit in results.hits}
        assert found <= {"mine"}, query
        assert all("turbine" not in (results.corrected or "") for results in scoped) or "turbine" in query


def test_only_quoted_tokens_reach_the_index() -> None:
    """Whatever a query says, what is asked of the index consists of operators of ours and quoted letters and digits."""
    draw = random.Random(3)
    signs = [
        '"',
        "*",
        "(",
        ")",
        ":",
        "^",
        "-",
        "+",
        "AND",
        "OR",
        "NOT",
        "NEAR",
        "a",
        "b1",
        "{",
        "}",
        "'",
        ";",
        "é",
        "字",
    ]
    for length in range(1, 9):
        for _ in range(200):
            query = " ".join(draw.choices(signs, k=length))
            asked = plan_query(parse_query(query))
            for match in (*(term.match for term in asked.terms), asked.needed, asked.barred):
                quoted = match.split('"')
                assert all(token.isalnum() for token in quoted[1::2]), (query, match)
                assert set(" ".join(quoted[::2]).replace("AND", "").replace("OR", "")) <= set(" ()*"), (
                    query,
                    match,
                )


async def test_a_damaged_index_answers_nothing_and_goes_on(log: Index, chat: int) -> None:
    def damage(db: object) -> None:
        db.execute("DELETE FROM index_chunks")  # type: ignore[attr-defined]

    await log._store._db.write(damage)
    assert not (await _ask(log, "turbine", chat)).hits


async def test_a_long_line_shows_what_was_found_in_it(index: Index, chat: int) -> None:
    minified = ",".join(f"function f{n}(a){{return a+{n}}}" for n in range(9000)).replace(
        "f4500(a)", "turbine(a)"
    )
    await index.add(NewSource(minified, "app.min.js", "output", chat=chat))
    results = await _ask(index, "turbine", chat, max_tokens=300)
    assert "turbine" in _shown(results)
    assert results.tokens <= 300


async def test_hits_of_several_queries_come_in_their_order(log: Index, chat: int) -> None:
    found = await log.search([Query(query, chat=chat) for query in ("turbine", "nothingatall", "peer")])
    shown = list(itertools.chain(_shown(results) for results in found))
    assert ("turbine" in shown[0], shown[1], "peer" in shown[2]) == (True, "", True)
