"""A chat without an end, against a provider that refuses what is too large or not valid: nothing is refused or lost."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

import pytest

from sidecar.fake_provider import FakeProvider, in_thread
from sidecar.fake_provider.values import Model
from tests.blackbox.window.room import Room, say_tool, sent_text, tell
from tests.blackbox.work.workbench import Workbench
from tests.support.spawner import Spawner

TURNS = int(os.environ.get("SIDECAR_ENDLESS_TURNS", "80"))
KILLED_TURNS = int(os.environ.get("SIDECAR_KILLED_TURNS", "40"))
KILLED_EVERY = 20
SETTLED = 50
"""Turns after which caches and tables are loaded."""

GOAL = "Build a parser for the Zebrawood file format, in Python."
DECISION = "We decided to use the recursive descent method, because tables are slow."
FILE = "src/zebrawood.py"
FIRST = f"{GOAL} {DECISION} The work goes on in {FILE}. [[say=Understood]]"


def _windowed(bench: Workbench, fake: FakeProvider, window: int) -> Room:
    return Room(bench, fake, "openai:fake-tight", window)


def _prompt(number: int) -> str:
    """The turns of a working day: talk, outputs of commands, edits, questions about files."""
    words = " ".join(
        f"w{number * 7919 + place * 104729 & 0xFFFF:x}" for place in range(60 + number * 37 % 200)
    )
    match number % 7:
        case 0:
            return f"Run it {say_tool('run_command', command=f'seq {number} {number + 400}')}"
        case 1:
            return say_tool("write_file", path=f"src/part{number % 9}.py", content=f"VALUE = {number}\n" * 30)
        case 2:
            return f"What does src/part{(number - 1) % 9}.py do? {words} [[say=It sets a value]]"
        case 3:
            return f"Thoughts: {words} [[n={40 + number % 300}]]"
        case _:
            return f"Step {number}: {words} [[say=Noted {number}: {words[:300]}]]"


def _resident(pid: int) -> int:
    """Kilobytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def _by_quarter(times: list[float]) -> str:
    quarter = len(times) // 4
    parts = [times[start : start + quarter] for start in range(0, 4 * quarter, quarter)]
    return ", ".join(f"{median(part) * 1000:.0f} ms" for part in parts)


def _sent_for(room: Room, question: str) -> str:
    """The first request of the turn: what comes back of the past holds markers that the fake obeys in later ones."""
    before = len(room.asked)
    room.ask(question)
    return sent_text(room.asked[before])


def _check_end(room: Room) -> None:
    """What was said in the first turn is in what is sent when it is asked for."""
    assert room.refused == []
    assert "recursive descent" in _sent_for(
        room, "What did we decide at first about the method of the parser?"
    )
    assert FILE in _sent_for(room, "In which file did I say at the beginning that the work goes on?")
    assert GOAL in _sent_for(room, "What is the goal?")
    assert room.refused == []
    told = room.sidecar.events(room.session, "context.assembled")
    assert all(event["data"]["used"] <= event["data"]["budget"] for event in told)


@pytest.fixture(params=[8192, 16_384], ids=["8k", "16k"])
def window(request: pytest.FixtureRequest) -> int:
    size: int = request.param
    return size


@pytest.mark.slow
def test_a_chat_of_many_turns_is_never_refused_and_forgets_nothing_that_matters(
    spawn: Spawner, window: int
) -> None:
    with in_thread(models=[Model("fake-tight", window=window, output=2048)]) as fake:
        room = _windowed(Workbench(spawn), fake, window)
        room.ask(FIRST)
        settled = 0
        times: list[float] = []
        for number in range(1, TURNS):
            began = time.monotonic()
            room.ask(_prompt(number))
            times.append(time.monotonic() - began)
            if number == SETTLED:
                settled = _resident(room.sidecar.pid)
            if number % (TURNS // 4) == 0:
                tell(f"turn {number}: {_resident(room.sidecar.pid)} KB")
        grown = _resident(room.sidecar.pid)
        tell(f"{settled} KB after {SETTLED} turns, {grown} KB after {TURNS}")
        tell(f"median of a turn, by quarter: {_by_quarter(times)}")
        tell(f"{len(room.compactions())} compactions")
        _check_end(room)
    assert grown <= 1.5 * settled


@pytest.mark.slow
def test_the_same_with_a_kill_every_twenty_turns(spawn: Spawner) -> None:
    with in_thread(models=[Model("fake-tight", window=8192, output=2048)]) as fake:
        room = _windowed(Workbench(spawn), fake, 8192)
        room.ask(FIRST)
        for number in range(1, KILLED_TURNS):
            room.ask(_prompt(number))
            if number % KILLED_EVERY == 0:
                room.restart()
        _check_end(room)


@pytest.mark.slow
def test_a_day_of_forty_turns_is_never_refused(spawn: Spawner) -> None:
    with in_thread(models=[Model("fake-tight", window=8192, output=2048)]) as fake:
        room = _windowed(Workbench(spawn), fake, 8192)
        room.ask(FIRST)
        for number in range(1, 40):
            room.ask(_prompt(number))
        _check_end(room)
        assert room.compactions()
