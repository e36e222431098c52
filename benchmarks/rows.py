"""The rows of the table and the experiments that fill them, in which the contestants take turns."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .contestant import Asker, Contestant, Driver, Turn
from .machine import rss_mb, wait_until_quiet

CHATS = 20
ANSWER = 200
STREAM = 5_000
SETTLED = 1.5
"""Seconds after which a process has done what it does after `initialize`."""


@dataclass(frozen=True)
class Row:
    """`better` says whether a small or a large figure is the good one."""

    name: str
    title: str
    unit: str
    better: str = "less"


ROWS = [
    Row("init", "spawn to `initialize`", "ms"),
    Row("first", "spawn to first token", "ms"),
    Row("warm-first", "warm prompt to first delta", "ms"),
    Row("warm-end", "200 deltas to the end", "ms"),
    Row("stream", "deltas a second (5,000)", "/s", "more"),
    Row("resume-200", "spawn to resumed, 200 turns", "ms"),
    Row("resume-first-200", "spawn to first token, 200 turns", "ms"),
    Row("resume-memory-200", "memory after it", "MB"),
    Row("resume-20000", "spawn to resumed, 20,000 turns", "ms"),
    Row("resume-first-20000", "spawn to first token, 20,000 turns", "ms"),
    Row("resume-memory-20000", "memory after it", "MB"),
    Row("memory-idle", "memory, idle", "MB"),
    Row("memory-20", "memory, 20 chats", "MB"),
    Row("many", "20 chats at once", "ms"),
]


class Bench:
    """The contestants, where their homes are, how often to measure, and the samples so far."""

    def __init__(self, contestants: list[Contestant], folder: Path, runs: int) -> None:
        self.contestants = contestants
        self.runs = runs
        self.samples: dict[str, dict[str, list[float]]] = {row.name: {} for row in ROWS}
        self._folder = folder
        self._askers = {one.name: Asker(one) for one in contestants}

    def add(self, row: str, contestant: Contestant, value: float) -> None:
        self.samples[row].setdefault(contestant.name, []).append(round(value, 3))

    def home(self, contestant: Contestant, purpose: str) -> Path:
        return self._folder / purpose / contestant.name

    @property
    def staying(self) -> list[Contestant]:
        return [one for one in self.contestants if one.stays]

    def asker(self, contestant: Contestant) -> Asker:
        return self._askers[contestant.name]

    def rounds(self, count: int, among: list[Contestant] | None = None) -> Iterator[tuple[int, Contestant]]:
        """Every contestant once in each round, in an order drawn anew, so that none always follows the same one."""
        chosen = self.contestants if among is None else among
        draw = random.Random(count)
        for number in range(count):
            for contestant in draw.sample(chosen, len(chosen)):
                wait_until_quiet()
                yield number, contestant

    @contextlib.contextmanager
    def running(self, purpose: str) -> Iterator[dict[str, Driver]]:
        """One started process of each contestant."""
        drivers = {one.name: one.make(self.home(one, purpose)) for one in self.staying}
        started: list[Driver] = []
        try:
            for driver in drivers.values():
                driver.start()
                started.append(driver)
            yield drivers
        finally:
            for driver in started:
                driver.stop()


def cold(bench: Bench) -> None:
    """A new process each time, in a home that has been used before: the first round does not count."""
    for number, one in bench.rounds(bench.runs + 1):
        driver = one.make(bench.home(one, "cold"))
        try:
            init = driver.start()
            turn = bench.asker(one).answered(driver, driver.new_session(), ANSWER)
            if number:
                bench.add("init", one, init * 1e3)
                bench.add("first", one, (turn.t_first - driver.io.t_spawn) * 1e3)
        finally:
            driver.stop()


def warm(bench: Bench) -> None:
    """Prompts in one chat of a process that runs already."""
    with bench.running("warm") as drivers:
        chats = {name: driver.new_session() for name, driver in drivers.items()}
        for number, one in bench.rounds(3 + bench.runs * 3, bench.staying):
            turn = bench.asker(one).answered(drivers[one.name], chats[one.name], ANSWER)
            if number >= 3:
                bench.add("warm-first", one, (turn.t_first - turn.t_sent) * 1e3)
                bench.add("warm-end", one, (turn.t_end - turn.t_sent) * 1e3)


def stream(bench: Bench) -> None:
    """As many deltas as a long answer has, as fast as they come, in a chat of its own."""
    with bench.running("stream") as drivers:
        for number, one in bench.rounds(bench.runs + 1, bench.staying):
            driver, asker = drivers[one.name], bench.asker(one)
            chat = driver.new_session()
            asker.answered(driver, chat, 5)
            turn = asker.answered(driver, chat, STREAM)
            if number:
                bench.add("stream", one, STREAM / (turn.t_end - turn.t_sent))


def resume_200(bench: Bench) -> None:
    _resume(bench, 200)


def resume_20000(bench: Bench) -> None:
    _resume(bench, 20_000)


def memory(bench: Bench) -> None:
    """Of the whole process tree: after `initialize`, then with chats that have had a turn each."""
    for _, one in bench.rounds(min(bench.runs, 3)):
        driver = one.make(bench.home(one, "memory"))
        try:
            driver.start()
            time.sleep(SETTLED)
            bench.add("memory-idle", one, rss_mb(driver.pids()))
            for chat in [driver.new_session() for _ in range(CHATS)]:
                bench.asker(one).answered(driver, chat, ANSWER)
            bench.add("memory-20", one, rss_mb(driver.pids()))
        finally:
            driver.stop()


def many(bench: Bench) -> None:
    """A prompt in each of 20 chats at the same moment: from the first one sent to the last one's end."""
    with bench.running("many") as drivers:
        chats = {name: [driver.new_session() for _ in range(CHATS)] for name, driver in drivers.items()}
        for number, one in bench.rounds(bench.runs + 1, bench.staying):
            asker = bench.asker(one)
            asked: list[Turn] = [asker.ask(drivers[one.name], chat, ANSWER) for chat in chats[one.name]]
            turns = [asker.finish(turn, ANSWER) for turn in asked]
            if number:
                took = max(turn.t_end for turn in turns) - min(turn.t_sent for turn in turns)
                bench.add("many", one, took * 1e3)


EXPERIMENTS: dict[Callable[[Bench], None], list[str]] = {
    cold: ["init", "first"],
    warm: ["warm-first", "warm-end"],
    stream: ["stream"],
    resume_200: ["resume-200", "resume-first-200", "resume-memory-200"],
    resume_20000: ["resume-20000", "resume-first-20000", "resume-memory-20000"],
    memory: ["memory-idle", "memory-20"],
    many: ["many"],
}


def _resume(bench: Bench, turns: int) -> None:
    """A new process that opens a long chat: until it could be shown, and until the next prompt's first token."""
    able = [one for one in bench.contestants if one.seed and turns <= one.max_turns]
    purpose = f"resume-{turns}"
    chats = {one.name: one.seed(bench.home(one, purpose), turns) for one in able if one.seed}
    for number, one in bench.rounds(bench.runs + 1, able):
        driver = one.make(bench.home(one, purpose))
        try:
            driver.start()
            driver.resume(chats[one.name])
            took = time.monotonic() - driver.io.t_spawn
            turn = bench.asker(one).answered(driver, chats[one.name], ANSWER)
            if number:
                bench.add(purpose, one, took * 1e3)
                bench.add(f"resume-first-{turns}", one, (turn.t_first - driver.io.t_spawn) * 1e3)
                bench.add(f"resume-memory-{turns}", one, rss_mb(driver.pids()))
        finally:
            driver.stop()
