"""The instruction rules as a table for people: the most used first, each with what is wrong with it. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from ...text.plural import counted
from .command_views import markdown_table
from .rules import STALE_DAYS, RuleFigures


def rules_view(found: Sequence[RuleFigures], at: int) -> str:
    """The rules as Markdown; `at` is the time of the question."""
    if not found:
        return "No instruction rules."
    ordered = _by_use(found)
    rows = [
        {"rule": rule.rule_path, "applies": rule.applies, "tokens": rule.tokens, "loads": rule.load_count}
        | {"used": used_when(rule.last_seen, at), "state": _state(rule)}
        for rule in ordered
    ]
    most = ordered[0]
    head = f"Most loaded: {most.name}, {counted(most.load_count, 'times')}.\n\n" if most.load_count else ""
    return f"{head}{markdown_table(rows)}"


def used_when(last_seen: int | None, at: int) -> str:
    """How long ago a rule was used, in days of this machine's clock: `today`, `1d ago`."""
    if last_seen is None:
        return "never"
    days = (_local_day(at) - _local_day(last_seen)) if at > last_seen else 0
    return f"{days}d ago" if days else "today"


def _by_use(rules: Iterable[RuleFigures]) -> list[RuleFigures]:
    """The rules, the most used first."""
    return sorted(rules, key=lambda rule: (-rule.load_count, -(rule.last_seen or 0), rule.rule_path))


def _state(rule: RuleFigures) -> str:
    """What is wrong with a rule, for people; "" when nothing is."""
    if rule.problem is not None:
        return f"broken: {rule.problem}"
    if rule.stale == "no_match":
        return "stale: its globs match no file"
    return f"stale: unused for {STALE_DAYS} days" if rule.stale else ""


def _local_day(ms: int) -> int:
    local = time.localtime(ms / 1000)
    return (ms // 1000 + local.tm_gmtoff) // (24 * 3600)
