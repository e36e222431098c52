"""How often a rule was sent, when last, and when it changed: pure figures, as JSON that a store can keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypedDict

from .rule import Instruction

MAX_KEPT = 1000
"""Rules with figures: five times what a project and its user can have, for those that come and go."""


class Figures(TypedDict):
    """Times are milliseconds since 1970. `hash` is that of the rule when it was last seen."""

    loadCount: int
    lastSeen: int
    lastChanged: int
    tokens: int
    hash: str


Freshness = dict[str, Figures]
"""By the rule's path."""


def seen(
    freshness: Mapping[str, Figures],
    instructions: Iterable[Instruction],
    now: int,
    count: Callable[[str], int],
) -> Freshness:
    """The figures after these rules were sent. A rule that is new has changed now; the longest unseen are let go."""
    figures = dict(freshness)
    for one in instructions:
        known = figures.pop(one.path, None)
        same = known is not None and known["hash"] == one.hash
        figures[one.path] = Figures(
            loadCount=known["loadCount"] + 1 if known else 1,
            lastSeen=now,
            lastChanged=known["lastChanged"] if known and same else now,
            tokens=known["tokens"] if known and same else count(one.text),
            hash=one.hash,
        )
    return dict(list(figures.items())[-MAX_KEPT:])
