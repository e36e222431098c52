"""Rules, protected names and modes in their order: what stops outweighs what gives leave."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.policy.decide import (
    HOST_ASKED,
    PolicyDecision,
    Subject,
    decide,
    safe_decide,
)
from sidecar.policy.rules import PermissionKind, Rule, checked_rule, parse_rule_text
from sidecar.policy.suggestions import Suggestion, suggestions

MODES = ("ask", "accept-edits", "read-only", "auto")


def rule(effect: str, text: str, **more: Any) -> Rule:
    kind, pattern = parse_rule_text(text)
    return checked_rule(
        **{"id": text, "scope": "user", "effect": effect, "kind": kind, "pattern": pattern, **more}
    )


def effects(subject: Subject, *rules: Rule) -> str:
    """The effect in each mode, by its first letter: allow is +, ask is ?, deny is -."""
    signs = {"allow": "+", "ask": "?", "deny": "-"}
    return "".join(signs[decide(subject, mode, rules).effect] for mode in MODES)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (Subject("read", "src/a.py"), "++++"),
        (Subject("read", ".git/config"), "++++"),
        (Subject("read", ".env"), "???+"),
        (Subject("edit", "src/a.py"), "?+-+"),
        (Subject("edit", "/elsewhere/a.py"), "??-+"),
        (Subject("edit", "../a.py"), "??-+"),
        (Subject("edit", "x", ("a", "b")), "?+-+"),
        (Subject("edit", ".git/config"), "??-?"),
        (Subject("edit", "x", ("a", "AGENTS.md")), "??-?"),
        (Subject("run", "ls"), "??-+"),
        (Subject("run", "echo $(date)"), "??-+"),
        (Subject("run", "bash -c x"), "??-+"),
        (Subject("run", "ls > a"), "??-+"),
        (Subject("run", "ls > .git/config"), "??-?"),
        (Subject("run", "ls > config", folder=".git"), "??-?"),
        (Subject("run", "cd .git && ls > config"), "??-?"),
        (Subject("run", "cp a .git/hooks/b"), "??-?"),
        (Subject("run", "cat .git/config"), "??-+"),
        (Subject("run", "echo $x > .git/config"), "??-?"),
        (Subject("run", "echo $x > config", folder="sub/.git"), "??-?"),
        (Subject("run", "bash -c 'echo x >.git/config'"), "??-?"),
        (Subject("run", "ls " + "a" * 20_000), "??-?"),
        (Subject("fetch", "https://example.com"), "??-+"),
        (Subject("mcp", "a/b"), "???+"),
        (Subject("mcp", "a/b", reads_only=True), "???+"),
        (Subject("app-tool", "a/b"), "???+"),
        (Subject("app-tool", "a/b", reads_only=True), "++++"),
    ],
)
def test_without_rules_the_mode_decides(subject: Subject, expected: str) -> None:
    assert effects(subject) == expected


@pytest.mark.parametrize(
    ("subject", "allowing", "expected"),
    [
        (Subject("edit", "src/a.py"), "edit(src/**)", "++-+"),
        (Subject("edit", "x", ("src/a.py", "b.py")), "edit(src/**)", "?+-+"),
        (Subject("edit", ".git/config"), "edit(.git/config)", "??-?"),
        (Subject("edit", ".git/config"), "edit(=.git/config)", "??-?"),
        (Subject("edit", "AGENTS.md"), "*", "??-?"),
        (Subject("read", ".env"), "read(**)", "???+"),
        (Subject("read", ".env"), "read(=.env)", "++++"),
        (Subject("run", "git log -3"), "run(git log *)", "++-+"),
        (Subject("run", "git log > a"), "run(git log *)", "??-+"),
        (Subject("run", "git log > a"), "run(=git log > a)", "++-+"),
        (Subject("run", "git log > .git/a"), "run(=git log > .git/a)", "??-?"),
        (Subject("run", "bash a.sh"), "run(bash *)", "??-+"),
        (Subject("run", "bash a.sh"), "run(bash a.sh)", "++-+"),
        (Subject("run", "cat x | bash a.sh"), "run(bash a.sh)", "??-+"),
        (Subject("run", "cat .env"), "run(cat *)", "??-+"),
        (Subject("run", "cat .env"), "run(cat .env)", "++-+"),
        (Subject("run", "ls"), "*", "++-+"),
        (Subject("fetch", "https://example.com/a"), "fetch(example.com)", "++-+"),
        (Subject("mcp", "a/b"), "mcp(a/*)", "++?+"),
        (Subject("mcp", "a/b", reads_only=True), "mcp(a/*)", "++++"),
        (Subject("app-tool", "a/b"), "app-tool(a/b)", "++?+"),
        (Subject("app-tool", "a/b"), "mcp(a/b)", "???+"),
    ],
)
def test_a_rule_allows_what_it_speaks_of(subject: Subject, allowing: str, expected: str) -> None:
    assert effects(subject, rule("allow", allowing)) == expected


@pytest.mark.parametrize("scope", ["chat", "project", "user"])
@pytest.mark.parametrize(
    ("subject", "text"),
    [
        (Subject("read", "docs/a"), "read(docs)"),
        (Subject("edit", "x", ("a", "Docs/a")), "edit(docs/)"),
        (Subject("run", "ls; git push"), "run(git push *)"),
        (Subject("run", "$(git push)"), "run(git push *)"),
        (Subject("run", "ls  > docs/a"), "edit(docs/**)"),
        (Subject("run", "cat <docs/a"), "read(docs/**)"),
        (Subject("run", "a  $b"), "run(=a $b)"),
        (Subject("fetch", "https://example.com:81/"), "fetch(example.com)"),
        (Subject("mcp", "a/B"), "mcp(A/*)"),
        (Subject("edit", "a"), "*"),
    ],
)
def test_a_rule_that_stops_outweighs_all_that_allow(scope: str, subject: Subject, text: str) -> None:
    allowing = [rule("allow", "*"), rule("allow", f"{subject.kind}(={subject.text})")]
    assert effects(subject, *allowing, rule("deny", text, scope=scope), rule("ask", "*")) == "----"
    read_only = "-" if subject.kind in ("edit", "run", "fetch") else "?"
    assert effects(subject, *allowing, rule("ask", text, scope=scope)) == f"??{read_only}?"


@pytest.mark.parametrize(
    ("after", "address", "found"),
    [
        ("http://a.test/x", "http://a.test/y", "++-+"),
        ("http://a.test/x", "https://a.test/y", "++-+"),
        ("http://a.test:81/x", "https://a.test:81/y", "??-+"),
        ("https://a.test/x", "http://a.test/y", "??-+"),
        ("http://a.test/x", "http://a.test:81/y", "??-+"),
        ("http://a.test/x", "http://b.a.test/y", "??-+"),
        ("http://a.test/x", "http://a.test@b.test/", "??-+"),
    ],
)
def test_leave_for_a_host_holds_for_where_it_redirects_within_itself(
    after: str, address: str, found: str
) -> None:
    redirected = Subject("fetch", address, after=after)
    assert effects(redirected) == found
    assert effects(redirected, rule("deny", "fetch(a.test)"), rule("deny", "fetch(*.a.test)")) == "----"
    assert effects(redirected, rule("ask", "fetch(*)")) == "??-?"


@pytest.mark.parametrize(
    ("subject", "effect"),
    [
        (Subject("fetch", "https://a.test/x"), "allow"),
        (Subject("fetch", "https://a.test/y", after="https://a.test/x"), "allow"),
        (Subject("fetch", "https://b.test/", after="https://a.test/x"), "ask"),
        (Subject("run", "ls"), "allow"),
        (Subject("edit", ".git/config"), "ask"),
    ],
)
def test_what_the_host_of_an_agent_has_not_shown_its_user_asks(subject: Subject, effect: str) -> None:
    assert decide(subject, HOST_ASKED, []).effect == effect


def test_leave_for_an_exact_command_holds_in_its_folder_only() -> None:
    bound = rule("allow", "run(=x $y)", folder="sub")
    top = rule("allow", "run(=x $y)")
    assert effects(Subject("run", "x $y", folder="sub/."), bound) == "++-+"
    assert effects(Subject("run", "x $y", folder="other"), bound) == "??-+"
    assert effects(Subject("run", "x $y"), bound) == "??-+"
    assert effects(Subject("run", "x $y"), top) == effects(Subject("run", "x $y", folder="."), top) == "++-+"
    assert effects(Subject("run", "x $y", folder="sub"), top) == "??-+"


@pytest.mark.parametrize("line", ["x  $y", "x $y ", " x $y", "x $y\n", "x $y;", "X $y"])
def test_leave_for_an_exact_command_holds_for_no_other_bytes(line: str) -> None:
    assert effects(Subject("run", line), rule("allow", "run(=x $y)")) == "??-+"


def test_a_path_that_a_rule_keeps_from_reading_is_not_read_by_a_command_either() -> None:
    rules = [rule("allow", "run(cat *)"), rule("deny", "read(private/)")]
    assert effects(Subject("run", "cat a"), *rules) == "++-+"
    assert effects(Subject("run", "cat a private/b"), *rules) == "??-?"
    assert effects(Subject("run", "cat b", folder="private"), *rules) == "??-?"


def test_edits_are_accepted_in_the_further_folders_too() -> None:
    subject = Subject("edit", "/shared/lib/a.py")
    assert decide(subject, "accept-edits", [], ["/shared/lib/"]).effect == "allow"
    assert decide(subject, "accept-edits", [], ["/shared/li"]).effect == "ask"
    assert decide(Subject("edit", "/shared/lib/../a"), "accept-edits", [], ["/shared/lib"]).effect == "ask"


def test_a_decision_says_by_what_and_why() -> None:
    allowing = rule("allow", "run(ls *)")
    assert decide(Subject("run", "ls"), "ask", [allowing]) == PolicyDecision(
        "allow", "rule", allowing, "a rule allows run(ls *)"
    )
    assert decide(Subject("run", "ls `x`"), "ask", [allowing]) == PolicyDecision(
        "ask",
        "policy",
        None,
        "the command is not understood: it has a command substitution",
        "not_understood",
    )


def test_a_fault_in_the_policy_asks_and_says_so() -> None:
    broken: Any = [object()]
    assert safe_decide(Subject("run", "ls"), "auto", broken) == PolicyDecision(
        "ask",
        "policy",
        None,
        "the permission policy failed (AttributeError: 'object' object has no attribute 'effect')",
        "policy_failed",
    )


@pytest.mark.parametrize(
    ("subject", "mode", "code"),
    [
        (Subject("edit", "a.py"), "ask", "no_rule"),
        (Subject("edit", ".git/hooks/pre-commit"), "auto", "protected"),
        (Subject("read", ".env"), "ask", "protected"),
        (Subject("run", "ls `x`"), "ask", "not_understood"),
        (Subject("edit", "/elsewhere/a"), "accept-edits", "outside_project"),
        (Subject("mcp", "mcp__docs__write"), "read-only", "read_only"),
    ],
)
def test_what_asks_has_a_code(subject: Subject, mode: str, code: str) -> None:
    decision = decide(subject, mode, [])
    assert (decision.effect, decision.code) == ("ask", code)
    assert safe_decide(Subject("run", "ls"), "auto", []).effect == "allow"


@pytest.mark.parametrize(
    ("subject", "text", "folder"),
    [
        (Subject("edit", "src/[id].tsx"), "edit(=src/[id].tsx)", None),
        (Subject("edit", "x", ("a", "b")), "edit(=a), edit(=b)", None),
        (Subject("read", ".env"), "read(=.env)", None),
        (Subject("run", "a $b\nc"), "run(=a $b\nc)", "."),
        (Subject("run", "a", folder="sub/"), "run(=a)", "sub"),
        (Subject("fetch", "https://Example.com/a"), "fetch(example.com)", None),
        (Subject("fetch", "http://localhost:3000/"), "fetch(localhost:3000)", None),
        (Subject("mcp", "github/search"), "mcp(github/search)", None),
        (Subject("app-tool", "a/b*"), "app-tool(=a/b*)", None),
    ],
)
def test_a_standing_answer_is_just_what_was_asked(subject: Subject, text: str, folder: str | None) -> None:
    found = suggestions(subject)
    assert [(each.decision, each.scope, each.text, each.folder) for each in found] == [
        ("allow_chat", "chat", text, folder),
        ("allow_always", "project", text, folder),
        ("deny_always", "project", text, None),
    ]
    assert effects(subject, *_recorded(found[1]))[0] == "+"
    assert effects(subject, *_recorded(found[2])) == "----"


@pytest.mark.parametrize(
    ("kind", "text", "decisions"),
    [
        ("edit", ".git/config", ["deny_always"]),
        ("run", "ls > .git/config", ["deny_always"]),
        ("fetch", "https://a@b/", []),
        ("run", "a" * 20_000, []),
        ("run", "a\0", []),
        ("run", " ", []),
    ],
)
def test_no_standing_leave_is_offered_where_it_would_not_hold(
    kind: PermissionKind, text: str, decisions: list[str]
) -> None:
    assert [each.decision for each in suggestions(Subject(kind, text))] == decisions


def _recorded(suggestion: Suggestion) -> list[Rule]:
    return [
        checked_rule(
            id=pattern,
            scope=suggestion.scope,
            effect=suggestion.effect,
            kind=suggestion.kind,
            pattern=pattern,
            folder=suggestion.folder,
            source="answer",
        )
        for pattern in suggestion.patterns
    ]
