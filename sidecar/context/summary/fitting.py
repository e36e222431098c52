"""Cuts a summary to a number of tokens: the least important entries are dropped first. Knows no turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...text.token_estimate import CountTokens
from .shape import READ, Summary, entry_line, render_summary

FLOORS = {
    "facts": 0.2,
    "errors": 0.08,
    "said": 0.25,
    "files": 0.1,
    "tasks": 0.1,
    "decisions": 0.15,
}
"""The least important section first, with the share of the tokens below which it is not cut while another one
exceeds its own. Without it, a thousand short messages of the user would displace every fact."""

EntryPosition = tuple[str, int]
"""A section and the index of an entry in it."""


def fit_summary(summary: Summary, count: CountTokens, max_tokens: int) -> Summary:
    """Return the summary without its least important entries, so that it renders to at most `max_tokens`.

    Constraints are dropped last, one by one, and only then is the goal cut. Never raises, whatever the limit.
    """
    if count(render_summary(summary)) <= max_tokens:
        return summary
    order = _order(summary, count, max_tokens)
    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        if count(render_summary(_without(summary, order[:middle]))) <= max_tokens:
            high = middle
        else:
            low = middle + 1
    left = _without(summary, order[:high])
    return left if count(render_summary(left)) <= max_tokens else _short_goal(left, count, max_tokens)


def _order(summary: Summary, count: CountTokens, max_tokens: int) -> list[EntryPosition]:
    """Return all entries in the order in which they are dropped."""
    above: list[EntryPosition] = []
    below: list[EntryPosition] = []
    for name, share in FLOORS.items():
        entries: Sequence[Any] = getattr(summary, name)
        costs = [count(entry_line(entry)) for entry in entries]
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
    """Return indexes from the middle outwards: the first entries are the basis of the rest and the last ones
    are current, so those between are dropped first."""
    left = list(range(length))
    return [left.pop(len(left) // 2) for _ in range(length)]


def _without(summary: Summary, dropped: Sequence[EntryPosition]) -> Summary:
    gone: dict[str, set[int]] = {}
    for name, at in dropped:
        gone.setdefault(name, set()).add(at)
    kept = {
        name: [entry for at, entry in enumerate(getattr(summary, name)) if at not in numbers]
        for name, numbers in gone.items()
    }
    return msgspec.structs.replace(summary, **kept)


def _short_goal(summary: Summary, count: CountTokens, max_tokens: int) -> Summary:
    def cut(length: int) -> Summary:
        goal = summary.goal[:length].rstrip() + "…" if length else ""
        return msgspec.structs.replace(summary, goal=goal)

    low, high = 0, len(summary.goal)
    while low < high:
        middle = (low + high + 1) // 2
        if count(render_summary(cut(middle))) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return cut(low)
