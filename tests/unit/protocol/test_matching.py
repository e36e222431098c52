"""What counts as the same conversation: a placeholder stands for one value, and nothing else is forgiven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .transcripts import IDS, TIME, Json, Play, coalesced, lanes, placeholder

ONE, TWO = placeholder("t", 1), placeholder("t", 2)
REAL, OTHER = "t-0123456789ab", "t-ba9876543210"


@pytest.fixture
def play() -> Play:
    return Play(Path("/else_where"))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"turnId": ONE, "head": ONE}, {"turnId": REAL, "head": REAL}),
        ({"turnId": ONE, "head": TWO}, {"turnId": REAL, "head": OTHER}),
        ({"text": f"no turn {ONE!r}"}, {"text": f"no turn {REAL!r}"}),
        ({"epoch": placeholder("e", 1)}, {"epoch": "00aa11bb22cc"}),
        ({"ts": TIME}, {"ts": 1799999999999}),
        ({"path": "/home/ada/x"}, {"path": "/else_where/x"}),
        ({"markdown": "| /home/ada/x |"}, {"markdown": "| /else\\_where/x |"}),
        ({"uptimeMs": 1}, {"uptimeMs": 99}),
        ({"status": "ok", "checks": []}, {"status": "warn", "checks": [{}]}),
        ({"server": {"version": "0.1.0"}}, {"server": {"version": "0.2.0"}}),
    ],
)
def test_what_may_differ_between_plays_is_the_same(play: Play, expected: Any, actual: Any) -> None:
    assert play.difference(expected, actual) is None


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"turnId": ONE, "head": ONE}, {"turnId": REAL, "head": OTHER}),
        ({"turnId": ONE, "head": TWO}, {"turnId": REAL, "head": REAL}),
        ({"turnId": ONE}, {"turnId": "i-0123456789ab"}),
        ({"ts": TIME}, {"ts": 12}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": True}, {"a": 1}),
        ({"a": None}, {"a": "None"}),
        ({"version": 1}, {"version": 2}),
    ],
)
def test_anything_else_is_a_difference(play: Play, expected: Any, actual: Any) -> None:
    assert play.difference(expected, actual) is not None


@pytest.mark.parametrize("kind", IDS)
def test_every_kind_of_id_has_placeholders_that_stand_for_it_alone(play: Play, kind: str) -> None:
    real, other = f"{kind}-0123456789ab", "x-0123456789ab"

    assert play.difference({"id": placeholder(kind, 1)}, {"id": other}) is not None
    assert play.difference({"id": placeholder(kind, 1)}, {"id": real}) is None
    assert play.real(placeholder(kind, 1)) == real


def test_a_request_is_sent_with_the_values_of_the_play(play: Play) -> None:
    play.difference({"turnId": ONE}, {"turnId": REAL})

    assert (
        play.real(f'{{"turnId":"{ONE}","path":"/home/ada/x"}}')
        == f'{{"turnId":"{REAL}","path":"/else_where/x"}}'
    )


def test_deltas_of_one_item_are_joined_and_others_kept_apart() -> None:
    def delta(first: int, last: int, item: str, text: str) -> dict[str, Any]:
        return {"type": "message.delta", "from": first, "seq": last, "data": {"itemId": item, "text": text}}

    assert coalesced([delta(3, 3, "a", "x"), delta(4, 6, "a", "y"), delta(7, 7, "b", "z")]) == [
        delta(3, 6, "a", "xy"),
        delta(7, 7, "b", "z"),
    ]


REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": {"name": "look"}}
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {"name": "look"}}
CANCEL = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}
STATUS = {"jsonrpc": "2.0", "method": "status", "params": {"type": "models", "data": {}}}


def test_a_request_of_the_sidecar_and_an_answer_of_the_same_id_may_come_in_either_order(play: Play) -> None:
    assert play.difference(lanes([REQUEST, ANSWER]), lanes([STATUS, ANSWER, REQUEST])) is None


@pytest.mark.parametrize(
    "actual",
    [
        [REQUEST, ANSWER],
        [CANCEL, REQUEST, ANSWER],
        [ANSWER, CANCEL],
        [REQUEST, REQUEST, ANSWER, CANCEL],
        [REQUEST, CANCEL],
        [{**REQUEST, "id": 2}, ANSWER, CANCEL],
        [{**REQUEST, "params": {"name": "hear"}}, ANSWER, CANCEL],
    ],
    ids=[
        "no cancel",
        "cancelled before",
        "no request",
        "asked twice",
        "no answer",
        "another id",
        "another tool",
    ],
)
def test_a_request_that_is_missing_doubled_late_or_another_is_a_difference(
    play: Play, actual: list[Json]
) -> None:
    assert play.difference(lanes([REQUEST, ANSWER, CANCEL]), lanes(actual)) is not None
