"""What can be measured: a program that is spawned, opens chats, answers prompts and resumes.

The shapes are those of the peers' drivers, so that theirs and ours stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


class Turn(Protocol):
    """One prompt and its answer, with times of the monotonic clock at which bytes were read."""

    t_sent: float
    t_first: float
    t_end: float
    deltas: int
    chars: int

    def wait(self, timeout: float = ...) -> Any: ...


class Pipe(Protocol):
    t_spawn: float


class Driver(Protocol):
    """One running process. `start` returns the seconds from spawn to the answer of `initialize`."""

    @property
    def io(self) -> Pipe: ...
    def start(self) -> float: ...
    def new_session(self) -> str: ...
    def resume(self, sid: str) -> Any: ...
    def prompt(self, sid: str, text: str, tag: str) -> Turn: ...
    def stop(self) -> None: ...
    def pids(self) -> list[int]: ...


@dataclass(frozen=True)
class Contestant:
    """How to make a driver, how to ask for `n` deltas, and how to make a chat of `n` turns to resume."""

    name: str
    make: Callable[[Path], Driver]
    prompt: Callable[[int, str], str]
    seed: Callable[[Path, int], str] | None
    max_turns: int
    """The longest chat that it is asked to resume; seeding a longer one would take too long."""
    version: str
    stays: bool = True
    """Whether its process goes on while others are measured, as it must for rows of a running process."""


class Miscounted(Exception):
    """A turn that did not deliver what was asked for; its times mean nothing."""


class Asker:
    """Sends prompts with ids of their own and checks that the answers are whole."""

    def __init__(self, contestant: Contestant) -> None:
        self.contestant = contestant
        self._count = 0

    def ask(self, driver: Driver, sid: str, deltas: int) -> Turn:
        self._count += 1
        tag = f"b{self._count}"
        return driver.prompt(sid, self.contestant.prompt(deltas, tag), tag)

    def answered(self, driver: Driver, sid: str, deltas: int) -> Turn:
        """Ask, and wait for the end."""
        return self.finish(self.ask(driver, sid, deltas), deltas)

    def finish(self, turn: Turn, deltas: int) -> Turn:
        turn.wait(180)
        if turn.deltas != deltas and turn.chars != deltas * 6:
            raise Miscounted(f"{self.contestant.name}: {turn.deltas} deltas, {turn.chars} characters")
        return turn
