"""How the rules are shown to people."""

from __future__ import annotations

import msgspec
import pytest

from sidecar.chat.actions.rules import RuleFigures
from sidecar.chat.actions.rules_view import rules_view, used_when
from sidecar.system.clock import DAY_MS

NOW = 1_794_784_325_173


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (0, "today"),
        (DAY_MS, "1d ago"),
        (2 * DAY_MS, "2d ago"),
        (400 * DAY_MS, "400d ago"),
        (-DAY_MS, "today"),
    ],
)
def test_a_use_is_shown_in_days(age: int, shown: str) -> None:
    assert used_when(NOW - age, NOW) == shown


def test_a_rule_that_was_never_used_says_so() -> None:
    assert used_when(None, NOW) == "never"


def test_broken_and_stale_rules_are_marked() -> None:
    rule = RuleFigures("a.md", "a", "project", "always", 0, 0, None, None, 1, None, {})
    assert "broken: no text" in rules_view([msgspec.structs.replace(rule, problem="no text")], NOW)
    assert "unused for 30 days" in rules_view([msgspec.structs.replace(rule, stale="unused")], NOW)
    assert "match no file" in rules_view([msgspec.structs.replace(rule, stale="no_match")], NOW)
