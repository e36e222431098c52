"""Cuts a summary to a number of tokens: what matters least is dropped first. Knows no turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from .shape import READ, Summary, line, rendered

Count = Callable[[str], int]

FLOORS = {
    "facts": 0.2,
    "errors": 0.08,
    "said": 0.25,
    "files": 0.1,
    "tasks": 0.1,
    "decisions": 0.15,
}
"""The least important section first, and the share of the tokens below which it is not cut while another one has more
than its own. Without it a thousand short messages of the user would leave no room for any fact."""

Place = tuple[str, int]
"""A section and the number of an entry in it."""


def fitted(summary: Summary, count: Count, max_tokens: int) -> Summary:
    """The summary without its least important entries, so that it counts at most `max_tokens` when drawn.

    Constraints go last, one by one, and only then is the goal cut. Never raises, whatever the room.
    """
    if count(rendered(summary)) <= max_tokens:
        return summary
    order = _order(summary, count, max_tokens)
    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        if count(rendered(_without(summary, order[:middle]))) <= max_tokens:
            high = middle
        else:
            low = middle + 1
    left = _without(summary, order[:high])
    return left if count(rendered(left)) <= max_tokens else _short_goal(left, count, max_tokens)


def _order(summary: Summary, count: Count, max_tokens: int) -> list[Place]:
    """All entries in the order in which they are dropped."""
    above: list[Place] = []
    below: list[Place] = []
    for name, share in FLOORS.items():
        entries: Sequence[Any] = getattr(summary, name)
        costs = [count(line(entry)) for entry in entries]
        left = sum(costs)
        for at in _least_first(name, entries):
            (above if left > share * max_tokens else below).append((name, at))
            left -= costs[at]
    return above + below + [("constraints", at) for at in _middle_first(len(summary.constraints))]


def _least_first(name: str, entries: Sequence[Any]) -> list[int]:
    numbers = range(len(entries))
    if name == "errors":
        return sorted(numbers, key=lambda at: entries[at].resolution is None)
    if name == "files":
        return sorted(numbers, key=lambda at: not entries[at].why.startswith(READ))
    return _middle_first(len(entries)) if name == "decisions" else list(numbers)


def _middle_first(length: int) -> list[int]:
    """The first ones are what all else stands on and the last ones are what is at hand, so those between go first."""
    left = list(range(length))
    return [left.pop(len(left) // 2) for _ in range(length)]


def _without(summary: Summary, dropped: Sequence[Place]) -> Summary:
    gone: dict[str, set[int]] = {}
    for name, at in dropped:
        gone.setdefault(name, set()).add(at)
    kept = {
        name: [entry for at, entry in enumerate(getattr(summary, name)) if at not in numbers]
        for name, numbers in gone.items()
    }
    return msgspec.structs.replace(summary, **kept)


def _short_goal(summary: Summary, count: Count, max_tokens: int) -> Summary:
    def cut(length: int) -> Summary:
        goal = summary.goal[:length].rstrip() + "…" if length else ""
        return msgspec.structs.replace(summary, goal=goal)

    low, high = 0, len(summary.goal)
    while low < high:
        middle = (low + high + 1) // 2
        if count(rendered(cut(middle))) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return cut(low)
