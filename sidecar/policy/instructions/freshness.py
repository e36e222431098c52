"""How often a rule was sent, when last, and when it changed: pure statistics, as JSON for a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...model.figures import RuleUse
from .rule import Instruction

MAX_KEPT = 1000
"""Rules with statistics: five times what a project and its user can have, for those that come and go."""


Freshness = dict[str, RuleUse]
"""By the rule's path."""


def record_use(
    freshness: Mapping[str, RuleUse],
    instructions: Iterable[Instruction],
    now: int,
    count: Callable[[str], int],
) -> Freshness:
    """Return the statistics after these rules were sent. A new rule counts as changed now; the longest unseen are
    dropped.
    """
    figures = dict(freshness)
    for one in instructions:
        known = figures.pop(one.path, None)
        same = known is not None and known["hash"] == one.hash
        figures[one.path] = RuleUse(
            loadCount=known["loadCount"] + 1 if known else 1,
            lastSeen=now,
            lastChanged=known["lastChanged"] if known and same else now,
            tokens=known["tokens"] if known and same else count(one.text),
            hash=one.hash,
        )
    return dict(list(figures.items())[-MAX_KEPT:])
