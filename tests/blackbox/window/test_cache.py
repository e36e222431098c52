"""Prompt caching: what was sent is sent again as it was, so that a provider need not read it twice."""

from __future__ import annotations

import itertools
import json

import pytest

from sidecar.fake_provider import Recorded
from tests.blackbox.window.room import Json, Room, messages, say_tool, tell

TURNS = 20


def _prompt(number: int) -> str:
    match number % 5:
        case 0:
            return f"Explain src/part{number % 4}.py, step {number} [[say=It has values {number}]]"
        case 1:
            return say_tool("write_file", path=f"src/part{number % 4}.py", content=f"VALUE = {number}\n" * 20)
        case 2:
            return f"What did you change? {number} [[say=A file]]"
        case 3:
            return f"What did I say earlier about step {number - 3}? [[say=That it explains]]"
        case _:
            return f"Run it {say_tool('run_command', command=f'seq 1 {number * 5}')}"


def _turns(room: Room) -> list[list[Recorded]]:
    """The requests of each turn."""
    turns: list[list[Recorded]] = []
    for request in room.asked:
        if messages(request)[-1]["role"] == "user":
            turns.append([])
        turns[-1].append(request)
    return turns


def _spelled(found: list[Json]) -> bytes:
    return json.dumps(found).encode()


def _shared(before: bytes, after: bytes) -> int:
    same = min(len(before), len(after))
    return next((at for at in range(same) if before[at] != after[at]), same)


@pytest.fixture
def talked(large: Room) -> list[list[Recorded]]:
    for name in range(4):
        large.show(f"src/part{name}.py", f"PART = {name}\n" * 40)
    for number in range(TURNS):
        large.ask(_prompt(number))
        if number % 6 == 5:
            large.write("src/part1.py", f"OUTSIDE = {number}\n" * 30)
    assert not large.compactions("started")
    return _turns(large)


def test_all_but_the_last_turn_is_sent_again_as_it_was(talked: list[list[Recorded]]) -> None:
    assert len(talked) == TURNS
    shares = []
    for earlier, later in itertools.pairwise(talked):
        first = messages(earlier[0])
        kept = first[:-1]
        assert messages(later[0])[: len(kept)] == kept
        assert earlier[0].json["tools"] == later[0].json["tools"]
        before, after = _spelled(messages(earlier[-1])), _spelled(messages(later[0]))
        shares.append(_shared(before, after) / len(before))
    tell(f"share of the bytes before that begin the next request: mean {sum(shares) / len(shares):.3f}")
    tell(" ".join(f"{share:.2f}" for share in shares))
    late = shares[len(shares) // 2 :]
    assert sum(late) / len(late) > 0.75


def test_within_a_turn_nothing_that_was_sent_changes(talked: list[list[Recorded]]) -> None:
    steps = [turn for turn in talked if len(turn) > 1]
    assert len(steps) >= 5
    for turn in steps:
        for earlier, later in itertools.pairwise(turn):
            assert messages(later)[: len(messages(earlier))] == messages(earlier)


def test_the_same_state_makes_the_same_bytes_after_a_restart(large: Room) -> None:
    large.show("src/alpha.py", "ALPHA = 1\n" * 20)
    large.ask("Explain src/alpha.py [[say=It sets ALPHA]]")
    large.ask("Explain src/alpha.py again [[say=It sets ALPHA]]")
    kept = messages(large.asked[-1])
    large.restart()
    large.ask("And once more [[say=It sets ALPHA]]")
    assert messages(large.asked[-1])[: len(kept)] == kept
