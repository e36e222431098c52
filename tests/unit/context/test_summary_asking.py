"""Asking a model for the summary: what it is sent, and what it cannot make the summary say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.context.summary import (
    Fact,
    KnownError,
    Summary,
    TouchedFile,
    UserQuote,
    parse_summary,
    summary_request,
)
from sidecar.model.content import Turn

from .summaries import (
    FULL,
    edit,
    model,
    plan,
    run,
    turn,
    unhurried,
    user,
)


def between(prompt: str) -> tuple[str, list[str]]:
    """The fence of a request, and the lines that it encloses."""
    fence = prompt.splitlines()[-1]
    lines = prompt.split("\n")
    at = [number for number, line in enumerate(lines) if line == fence]
    assert len(at) == 2
    return fence, lines[at[0] + 1 : at[1]]


def test_a_request_carries_shape_wish_previous_summary_and_turns() -> None:
    turns = [
        turn(
            "t3",
            user("Go on"),
            run("make", 2, "boom"),
            edit("a.py"),
            model("Done.\nNext."),
            plan(("x", "pending")),
        )
    ]

    prompt = summary_request(FULL, turns, "Keep the ports", 700)
    _, lines = between(prompt)

    assert "At most 700 tokens" in prompt
    assert "The user asks of this summary: Keep the ports" in prompt
    first, *rest = [json.loads(line) for line in lines]
    assert first["summary"]["facts"] == [{"text": fact.text, "turnId": fact.turn_id} for fact in FULL.facts]
    assert "said" not in first["summary"]
    assert rest[0] == {"turn": "t3", "user": "Go on"}
    assert rest[1]["exitCode"] == 2
    assert rest[2]["changed"] == ["a.py"]
    assert rest[3] == {"turn": "t3", "model": "Done.\nNext."}


@unhurried
@given(st.lists(st.text(st.characters()), min_size=1, max_size=4))
@example(["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\rj\nk\x7fl\ud800m"])
def test_no_text_can_end_the_fence_or_begin_a_line(texts: list[str]) -> None:
    turns = [turn("t1", *(user(text) for text in texts), *(run(text, 1, text) for text in texts))]

    fence, lines = between(summary_request(None, turns, None, 500))

    assert all(fence.strip("= ") not in line for line in lines)
    assert all(len(line.splitlines()) == 1 and json.loads(line)["turn"] == "t1" for line in lines)


def test_a_text_that_knows_a_fence_gets_another_one() -> None:
    """Whoever writes a file cannot know the hash of a request that quotes the file."""
    known: list[str] = []
    for _ in range(5):
        turns = [turn("t1", user("\n".join(["Summarise", *known])), run("cat x", 0, "\n".join(known)))]
        fence, lines = between(summary_request(None, turns, None, 500))
        assert fence not in known
        assert len(lines) == 2
        known.append(fence)


def test_other_turns_have_another_fence_and_the_same_turns_the_same() -> None:
    prompts = [summary_request(None, [turn("t1", user(text))], None, 500) for text in ("a", "b", "a")]

    assert len({between(prompt)[0] for prompt in prompts}) == 2
    assert prompts[0] == prompts[2]


def test_the_size_of_a_request_is_bounded_and_the_newest_turns_are_in_it() -> None:
    turns = [turn(f"t{at}", user("word " * 2000), run("cat", 0, '"\n漢' * 10_000)) for at in range(400)]

    sizes = {}
    for room in (2_000, 30_000, 200_000, 1_000_000):
        _, lines = between(summary_request(None, turns, None, 500, max_bytes=room))
        sizes[room] = sum(len(line.encode()) for line in lines)
        assert json.loads(lines[-1])["turn"] == "t399"

    assert all(room / 2 < size <= room for room, size in sizes.items()), sizes


def test_a_request_with_little_room_leaves_out_calls_that_went_well_before_words() -> None:
    turns = [turn(f"t{at}", user(f"word {at}"), run("cat", at % 7 == 0, "out")) for at in range(50)]

    _, lines = between(summary_request(None, turns, None, 500, max_bytes=60 * 200))
    shown = [json.loads(line) for line in lines]

    assert [line["user"] for line in shown if "user" in line] == [f"word {at}" for at in range(50)]
    assert {line["status"] for line in shown if "tool" in line} == {"failed"}


ANSWER: dict[str, Any] = {
    "goal": "Obey the page",
    "constraints": ["No new packages"],
    "decisions": ["SQLite"],
    "tasks": ["Write the importer"],
    "files": [{"path": "a.py", "why": "renamed the cart"}, {"path": "/etc/passwd", "why": "made up"}],
    "errors": [{"error": "`make`: no rule", "resolution": None}],
    "facts": [{"text": "The port is 8080", "turnId": "t1"}, {"text": "The moon is green", "turnId": "t99"}],
    "said": [{"turnId": "t1", "text": "I never said that"}],
}
TURNS = [turn("t1", user("Rename the cart; the port is 8080"), edit("a.py")), turn("t2", user("Now tests"))]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ANSWER),
        f"Here it is {{as asked}}:\n```json\n{json.dumps(ANSWER, indent=1)}\n```\nAnything else?",
        json.dumps({"summary": ANSWER}),
        '{"note": 1} ' + json.dumps(ANSWER) + " {",
    ],
)
def test_an_answer_is_found_in_its_wrapping_and_only_believed_where_it_can_be_checked(text: str) -> None:
    assert parse_summary(text, None, TURNS) == Summary(
        goal="Rename the cart; the port is 8080",
        constraints=["No new packages"],
        decisions=["SQLite"],
        tasks=["Write the importer"],
        files=[TouchedFile(path="a.py", why="renamed the cart")],
        errors=[KnownError(error="`make`: no rule")],
        facts=[Fact(text="The port is 8080", turn_id="t1")],
        said=[UserQuote(turn_id="t2", text="Now tests")],
        up_to="t2",
    )


def test_facts_of_the_previous_summary_keep_their_turns_and_its_goal_stays() -> None:
    known = Summary(
        goal="Port", facts=[Fact(text="Old", turn_id="t0")], said=[UserQuote(turn_id="t0", text="Be quick")]
    )
    answer = {"facts": [{"text": "Old, but shorter", "turnId": "t0"}], "goal": "Another"}

    summary = parse_summary(json.dumps(answer), known, TURNS)

    assert summary is not None
    assert (summary.goal, summary.facts) == ("Port", [Fact(text="Old, but shorter", turn_id="t0")])
    assert [said.turn_id for said in summary.said] == ["t0", "t1", "t2"]


def test_wrong_types_are_put_right_or_dropped() -> None:
    answer = {
        "decisions": "SQLite",
        "constraints": [{"text": "No packages"}, 7, None, ["x"], " "],
        "tasks": {"task": "Write"},
        "files": ["a.py", {"path": 3}, {"why": "x"}],
        "errors": ["boom", {"error": 1}, {"error": "bang", "resolution": 3}],
        "facts": ["no turn", {"text": "x"}, {"text": 1, "turnId": "t1"}, {"text": "y", "turnId": ["t1"]}],
    }

    summary = parse_summary(json.dumps(answer), None, TURNS)

    assert summary is not None
    assert (summary.decisions, summary.constraints, summary.tasks) == (["SQLite"], ["No packages"], ["Write"])
    assert summary.files == [TouchedFile(path="a.py", why="changed: Rename the cart; the port is 8080")]
    assert summary.errors == [KnownError(error="boom"), KnownError(error="bang")]
    assert summary.facts == []


def test_a_file_that_was_only_spoken_of_may_be_named_by_the_model() -> None:
    turns = [*TURNS, turn("t3", user("Look at `src/cart.ts`, then at notes.md."))]

    summary = parse_summary(
        '{"files": ["src/cart.ts", {"path": "notes.md", "why": "to do"}, "src/ca", "cart"]}', None, turns
    )

    assert summary is not None
    assert summary.files[1:] == [TouchedFile(path="src/cart.ts"), TouchedFile(path="notes.md", why="to do")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot do that.",
        "{}",
        '{"decisions": []}',
        '{"decisions": [1, null]}',
        '{"facts": [{"text": "x", "turnId": "made up"}]}',
        '{"files": ["made_up.py", "0", ""]}',
        json.dumps(ANSWER)[:-30],
        '{"decisions":' * 2000,
        '{"decisions": ' + "[" * 100_000,
        '{"decisions": [' + "9" * 5000 + "]}",
        "{" * 1_000_000,
    ],
)
def test_an_answer_of_no_use_is_none(text: str) -> None:
    assert parse_summary(text, FULL, TURNS) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*ANSWER, "path", "why", "error"]), inner)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@unhurried
@given(st.dictionaries(st.sampled_from(list(ANSWER)), JSON), st.text(st.characters(), max_size=10))
def test_no_answer_breaks_the_reader_or_puts_words_into_the_users_mouth(
    answer: dict[str, Any], prose: str
) -> None:
    summary = parse_summary(prose + json.dumps(answer) + prose, None, TURNS)

    assert summary is None or _is_honest(summary, TURNS)


def _is_honest(summary: Summary, turns: Sequence[Turn]) -> bool:
    ids = {turn.id for turn in turns}
    return (
        summary.goal == "Rename the cart; the port is 8080"
        and [said.text for said in summary.said] == ["Now tests"]
        and all(fact.turn_id in ids for fact in summary.facts)
        and {file.path for file in summary.files} <= {"a.py"}
        and msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary
    )


def test_a_reader_that_believes_the_model_would_be_seen() -> None:
    """The twin takes the answer at its word."""
    believed = msgspec.convert({key: value for key, value in ANSWER.items() if key != "errors"}, Summary)

    assert not _is_honest(believed, TURNS)
