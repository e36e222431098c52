"""Command lines are read as the shells read them, or not at all."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.policy.commands import MAX_COMMANDS, Redirection, SimpleCommand, parse_command

SHELLS = ["bash", "dash"]
SIGNS = [*" \n'\"\\;&|#><$`!{},[]*?~()=-12a", *["say", " "] * 3, "b=c", "\\\n", "&&", "||", ">&2", "..", "/x"]
"""Pieces of which lines are drawn: what shells look at, and little else."""


def argvs(line: str) -> list[list[str]] | None:
    parsed = parse_command(line)
    return [list(simple.argv) for simple in parsed.commands] if parsed.commands else None


def test_words_come_out_as_the_shell_reads_them() -> None:
    assert {line: argvs(line) for line in LINES} == LINES


def test_redirections_and_assignments_stand_apart_from_the_words() -> None:
    assert parse_command("CI=1 LC_ALL=C say a <in >out 2>>err 3>|x <>both >/dev/null 2>&1 b").commands == (
        SimpleCommand(
            ("say", "a", "b"),
            ("CI=1", "LC_ALL=C"),
            (
                Redirection("read", "in"),
                Redirection("write", "out"),
                Redirection("write", "err"),
                Redirection("write", "x"),
                Redirection("both", "both"),
                Redirection("write", "/dev/null"),
            ),
            fed=True,
        ),
    )
    assert parse_command("say >a >/dev/null").commands[0].written == ("a",)


def test_a_command_knows_that_its_input_is_a_pipe() -> None:
    assert [simple.fed for simple in parse_command("a | b && c | d <x; e\n").commands] == [
        False,
        True,
        False,
        True,
        False,
    ]


def test_a_command_in_the_background_is_told() -> None:
    assert [parse_command(line).background for line in ("a & b", "a &", "a && b", "a 2>&1")] == [
        True,
        True,
        False,
        False,
    ]


def test_the_reason_says_what_was_not_understood() -> None:
    assert {line: parse_command(line).unclear for line in REASONS} == REASONS


def test_a_program_that_runs_others_is_read_but_unclear() -> None:
    parsed = parse_command("ls; bash -c 'rm x'")
    assert [simple.argv for simple in parsed.commands] == [("ls",), ("bash", "-c", "rm x")]
    assert parsed.unclear == parsed.commands[1].risk == "bash: it runs the code that it is given"


def test_fifty_commands_are_read_and_one_more_is_not() -> None:
    assert len(parse_command("; ".join(["a"] * MAX_COMMANDS)).commands) == MAX_COMMANDS
    assert parse_command("; ".join(["a"] * (MAX_COMMANDS + 1))).commands == ()


@given(st.one_of(st.text(), st.lists(st.sampled_from(SIGNS)).map("".join)))
@example("\ud800")
@example("a" * 20_000)
@example("[" * 16_000)
@example("{" * 16_000)
def test_any_text_is_read_or_unclear_and_never_fails(text: str) -> None:
    parsed = parse_command(text)
    assert parsed.commands or parsed.unclear


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"])), min_size=1))
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    line = shlex.join(["say", *words])
    assert argvs(line) == [["say", *words]]


@given(st.lists(st.sampled_from(["a", " ", "'", '"', "\\", "b c", "-x"])).map("".join))
def test_what_is_understood_of_a_simple_line_is_what_shlex_reads(text: str) -> None:
    found = argvs(f"say {text}")
    if found is not None:
        assert found == [shlex.split(f"say {text}")]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shell", SHELLS)
def test_real_shells_run_just_the_words_that_were_read(shell: str, tmp_path: Path) -> None:
    """Lines drawn at random from what matters to a shell. Where all is understood, it runs exactly these commands."""
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    say = tmp_path / "say"
    say.write_text('#!/bin/sh\nprintf "%s\\1" "$@" >>"$SAID"\nprintf "\\2" >>"$SAID"\n')
    say.chmod(0o755)
    draw = random.Random(4)
    lines = ["".join(draw.choice(SIGNS) for _ in range(draw.randint(2, 9))) for _ in range(20_000)]
    lines = [f"say {line}" for line in lines]
    understood = {line: found for line in lines if (found := _only_says(line)) is not None}
    assert len(understood) > 150
    drawn = dict(list(understood.items())[:150])
    assert {line: _said(shell, line, tmp_path) for line in drawn} == drawn


def _only_says(line: str) -> list[list[str]] | None:
    """The commands of a line in which all that runs is `say`, one after the other."""
    parsed = parse_command(line)
    if parsed.background or not parsed.commands or "|" in line or "&&" in line:
        return None
    if any(simple.argv[0] != "say" or simple.redirects for simple in parsed.commands):
        return None
    return [list(simple.argv[1:]) or [""] for simple in parsed.commands]


def _said(shell: str, line: str, folder: Path) -> list[list[str]]:
    said = folder / "said"
    said.write_text("")
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    subprocess.run(
        [shutil.which(shell) or shell, "-c", line],
        cwd=empty,
        env={"PATH": f"{folder}:{os.environ['PATH']}", "SAID": str(said)},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return [run.split("\1")[:-1] for run in said.read_text().split("\2")[:-1]]


LINES: dict[str, list[list[str]] | None] = {
    "a b": [["a", "b"]],
    "  a\tb  ": [["a", "b"]],
    "a 'b c' \"d e\" f\\ g": [["a", "b c", "d e", "f g"]],
    "a 'b'\"c\"d": [["a", "bcd"]],
    "a '' \"\"": [["a", "", ""]],
    'a "b\\"c\\\\d\\e"': [["a", 'b"c\\d\\e']],
    "a 'b\\c'": [["a", "b\\c"]],
    'a "b\nc"': [["a", "b\nc"]],
    "a b\\\nc \\\n d": [["a", "bc", "d"]],
    "a;b&&c||d|e\nf": [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]],
    "a &&\n\n b": [["a"], ["b"]],
    "a # b; c\nd": [["a"], ["d"]],
    "a b#c '#d' \\#e": [["a", "b#c", "#d", "#e"]],
    "a '$b' \\$c \"d\\$e\" f$": [["a", "$b", "$c", "d$e", "f$"]],
    "a '*' \\* \"?\" b/*.c": [["a", "*", "*", "?", "b/*.c"]],
    "a '{b,c}' {} HEAD@{1}": [["a", "{b,c}", "{}", "HEAD@{1}"]],
    "a b~ '~' HEAD~1": [["a", "b~", "~", "HEAD~1"]],
    "a b=c -d=e": [["a", "b=c", "-d=e"]],
    "a 'CI=1'": [["a", "CI=1"]],
    "'CI'=1 a": [["CI=1", "a"]],
    "a 2 >&2": [["a", "2"]],
    "a 2''>/dev/null": [["a", "2"]],
    "[ -f a ]": [["[", "-f", "a", "]"]],
    "a b! \"c!\" '!d'": [["a", "b!", "c!", "!d"]],
}

REASONS = {
    "a $(b)": "it has a substitution or an expansion ($)",
    "a `b`": "it has a command substitution",
    "a <(b)": "it has a process substitution",
    "(a)": "it has a subshell or a function",
    "a <<b": "it has a here-document",
    "if a": "if is no plain command",
    "a* b": "a* is no plain command",
    "PATH=b a": "PATH may change what the command does",
    "CI=1": "it has an assignment or a redirection without a command",
    "a 'b": "a quote is not closed",
    "a\\": "it ends in a backslash",
    "a {b,c}": "it has a brace expansion",
    "a ~": "~ expands to an unknown folder",
    "a *": "a wildcard at a word's start may become an option, by the name of a file",
    "a b/.c*": "a wildcard may match hidden files",
    "a !b": "it may have a history expansion (!)",
    "a\r": "it has a control or invisible character (U+000D)",
    "a \u200b": "it has a control or invisible character (U+200B)",
    "a \u3164": "it has an invisible character (U+3164)",
    "a \uff1b b": "it has a character that looks like one of the shell's (U+FF1B)",
    "a >": "there is no file after >",
    "a && && b": "there is no command before &&",
    "a |": "there is no command after |",
    "a > b*": "a redirection's file is not known",
    "a >/dev/tcp/b/1": "a redirection opens a connection",
    "a 12>b": "shells read 12 before a redirection in different ways",
    "a &>b": "shells read &> in different ways",
    "": "there is no command",
}
