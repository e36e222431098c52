"""Code that a model writes: allowed by its language alone, stopped by whatever stops a command that does the same."""

from __future__ import annotations

import pytest

from sidecar.model.failures import Refused
from sidecar.policy import code
from sidecar.policy.decide import Subject, decide
from sidecar.policy.rules import parse_rule_text
from sidecar.policy.suggestions import Suggestion, suggestions
from tests.unit.policy.allowed import ALLOWED
from tests.unit.policy.corpus import rules as command_rules
from tests.unit.policy.test_decide import effects, rule

PRINT = "print(1)"


def python(text: str = PRINT) -> Subject:
    return Subject("run", code.code_subject("python", text), folder=".", language="python")


def shell(text: str) -> Subject:
    return Subject("run", code.code_subject("shell", text), folder=".", language="shell")


def test_without_rules_the_mode_decides() -> None:
    assert effects(python()) == "??-+"


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ("run(run_code:python)", "++-+"),
        ("run(run_code:python *)", "++-+"),
        ("run(run_code:*)", "++-+"),
        ("run(run_code:ruby)", "??-+"),
        ("run(python *)", "??-+"),
        ("run(python3 *)", "??-+"),
        ("run(python)", "??-+"),
        ("run(print*)", "??-+"),
        ("run(=print(1))", "??-+"),
        ("run(*)", "??-+"),
        ("*", "??-+"),
        ("run(=run_code:python\nprint(1))", "++-+"),
        ("run(=run_code:python\nprint(2))", "??-+"),
        ("run(=run_code:ruby\nprint(1))", "??-+"),
    ],
)
def test_only_a_rule_for_the_language_or_this_very_code_allows_it(allowed: str, expected: str) -> None:
    assert effects(python(), rule("allow", allowed)) == expected


def test_no_rule_that_allows_commands_allows_a_script_of_them() -> None:
    given = command_rules()
    lines = [line for line in ALLOWED if decide(Subject("run", line), "ask", given).effect == "allow"]
    assert lines
    assert [line for line in lines if decide(shell(line), "ask", given).effect == "allow"] == []


@pytest.mark.parametrize(
    "line",
    ["run_code:python", "run_code:python\nprint(1)", "run_code:python x; rm -rf /", "run_code:shell\nls"],
)
def test_a_command_line_that_looks_like_code_is_not_allowed_by_a_rule_for_code(line: str) -> None:
    allowed = [rule("allow", text) for text in ("run(run_code:*)", f"run(={line})", "run(run_code:python *)")]
    assert effects(Subject("run", line, folder="."), *allowed) == "??-+"


@pytest.mark.parametrize(
    ("subject", "denied"),
    [
        (python(), "run(run_code:python)"),
        (python(), "run(run_code:*)"),
        (python(), "run(*)"),
        (python(), "*"),
        (python(), "run(python *)"),
        (python(), "run(python3 *)"),
        (python(), "run(Python3 -c *)"),
        (python(), "run(=run_code:python\nprint(1))"),
        (shell("git push origin"), "run(git push *)"),
        (shell("if true; then\n  git push origin\nfi"), "run(git push *)"),
        (shell("ls"), "run(bash *)"),
    ],
)
def test_what_denies_it_outweighs_every_leave(subject: Subject, denied: str) -> None:
    assert effects(subject, rule("deny", denied), rule("allow", "run(run_code:*)")) == "----"


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.system('git push origin')",
        'subprocess.run(["git", "push", "origin"])',
        "subprocess.run(['/usr/bin/git', 'push'])",
        "x = `git push`",
    ],
)
def test_code_in_which_a_denied_command_stands_asks(text: str) -> None:
    given = (rule("deny", "run(git push *)"), rule("allow", "run(run_code:python)"))
    assert effects(python(text), *given) == "??-?"
    assert effects(python(text), rule("ask", "run(git push *)"), given[1]) == "??-?"
    assert effects(python("print('git pull')"), *given) == "++-+"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open('.git/hooks/pre-commit', 'w')", "??-?"),
        ("Path('.git') / 'hooks'", "??-?"),
        ("open('AGENTS.md', 'a')", "??-?"),
        ("open('server.key')", "??-?"),
        ("sorted(rows, key=lambda row: row.key)", "++-+"),
        ("event.key + item.pem", "++-+"),
        ("x = 1" + "#" * 20_000, "??-?"),
    ],
)
def test_protected_names_in_it_ask_in_every_mode(text: str, expected: str) -> None:
    assert effects(python(text), rule("allow", "run(run_code:python)")) == expected


def test_a_rule_for_the_language_does_not_cover_what_may_not_be_read() -> None:
    given = (rule("allow", "run(run_code:python)"), rule("deny", "read(private/**)"))
    assert effects(python("open('private/a')"), *given) == "??-?"
    assert effects(python("open('public/a')"), *given) == "++-+"


def test_the_standing_answers_are_for_exactly_this_code() -> None:
    pattern = (f"=run_code:python\n{PRINT}",)
    assert suggestions(python()) == (
        Suggestion("allow_chat", "chat", "allow", "run", pattern, "."),
        Suggestion("allow_always", "project", "allow", "run", pattern, "."),
        Suggestion("deny_always", "project", "deny", "run", pattern),
    )
    assert [found.effect for found in suggestions(python("open('.git/config')"))] == ["deny"]


def test_the_standing_answers_for_several_commands_are_a_rule_for_each() -> None:
    several = Subject("run", "# a\nls\n# b\nmake", folder=".", commands=("ls", "make", "ls"))
    assert suggestions(several)[0] == Suggestion("allow_chat", "chat", "allow", "run", ("=ls", "=make"), ".")
    hooked = Subject("run", "", folder=".", commands=("ls", "rm -r .git"))
    assert [found.effect for found in suggestions(hooked)] == ["deny"]


@pytest.mark.parametrize("text", ["run(run_code)", "run(run_code *)", "run(run_code:)", "run(run_code:a b)"])
def test_a_rule_for_code_names_a_language(text: str) -> None:
    with pytest.raises(Refused, match="must name a language"):
        parse_rule_text(text)
