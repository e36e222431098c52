"""What counts as the same conversation: a placeholder stands for one value, and nothing else is forgiven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .transcripts import TIME, Play, coalesced, placeholder

ONE, TWO = placeholder("t", 1), placeholder("t", 2)
REAL, OTHER = "t-0123456789ab", "t-ba9876543210"


@pytest.fixture
def play() -> Play:
    return Play(Path("/elsewhere"))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"turnId": ONE, "head": ONE}, {"turnId": REAL, "head": REAL}),
        ({"turnId": ONE, "head": TWO}, {"turnId": REAL, "head": OTHER}),
        ({"text": f"no turn {ONE!r}"}, {"text": f"no turn {REAL!r}"}),
        ({"epoch": placeholder("e", 1)}, {"epoch": "00aa11bb22cc"}),
        ({"ts": TIME}, {"ts": 1799999999999}),
        ({"path": "/home/ada/x"}, {"path": "/elsewhere/x"}),
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


def test_a_request_is_sent_with_the_values_of_the_play(play: Play) -> None:
    play.difference({"turnId": ONE}, {"turnId": REAL})

    assert (
        play.real(f'{{"turnId":"{ONE}","path":"/home/ada/x"}}')
        == f'{{"turnId":"{REAL}","path":"/elsewhere/x"}}'
    )


def test_deltas_of_one_item_are_joined_and_others_kept_apart() -> None:
    def delta(first: int, last: int, item: str, text: str) -> dict[str, Any]:
        return {"type": "message.delta", "from": first, "seq": last, "data": {"itemId": item, "text": text}}

    assert coalesced([delta(3, 3, "a", "x"), delta(4, 6, "a", "y"), delta(7, 7, "b", "z")]) == [
        delta(3, 6, "a", "xy"),
        delta(7, 7, "b", "z"),
    ]
