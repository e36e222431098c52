"""No line of the corpus runs unasked, whichever rules it leans on; and the corpus finds a careless twin out."""

from __future__ import annotations

from sidecar.policy.decide import Subject, decide
from sidecar.policy.rules import Rule
from tests.unit.policy.allowed import ALLOWED
from tests.unit.policy.corpus import BYPASSES, bypasses, rules


def verdict(line: str, rules: list[Rule], mode: str = "ask") -> str:
    return decide(Subject("run", line), mode, rules).effect


def test_no_trick_runs_unasked() -> None:
    given = rules()
    assert {line: trick for trick, line in bypasses() if verdict(line, given) == "allow"} == {}
    assert len(bypasses()) >= 200


def test_no_trick_runs_unasked_where_edits_are_accepted() -> None:
    given = rules()
    assert [line for _, line in bypasses() if verdict(line, given, "accept-edits") == "allow"] == []


def test_no_trick_runs_in_a_read_only_chat() -> None:
    given = rules()
    lines = [line for _, line in bypasses()] + list(ALLOWED)
    assert {verdict(line, given, "read-only") for line in lines} == {"deny"}


def test_what_the_rules_mean_runs_unasked() -> None:
    given = rules()
    refused = {
        line: decide(Subject("run", line), "ask", given).reason
        for line in ALLOWED
        if verdict(line, given) != "allow"
    }
    assert refused == {}
    assert len(ALLOWED) >= 60


def test_without_rules_nothing_runs_unasked() -> None:
    assert [line for line in ALLOWED if verdict(line, []) == "allow"] == []


def test_the_corpus_catches_a_twin_that_compares_beginnings() -> None:
    beginnings = [rule.pattern.removesuffix("*") for rule in rules()]

    def careless(line: str) -> bool:
        return any(line.startswith(beginning) for beginning in beginnings)

    caught = {trick for trick, line in bypasses() if careless(line)}
    assert all(careless(line) for line in ("git status", "ls -la src", "npm test"))
    assert len(caught) >= len(BYPASSES) - 1


def test_the_corpus_catches_a_twin_that_splits_at_separators() -> None:
    """It knows the separators, but neither quotes nor what a program does with its options."""
    beginnings = [rule.pattern.removesuffix("*") for rule in rules()]

    def careless(line: str) -> bool:
        parts = [part.strip() for sign in ("&&", "||", "|") for part in line.replace(sign, ";").split(";")]
        return all(any(part.startswith(beginning) for beginning in beginnings) for part in parts)

    assert len({line for _, line in bypasses() if careless(line)}) >= 100
