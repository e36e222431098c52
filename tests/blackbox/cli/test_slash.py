"""Lines that begin with a slash: whose they are, their help, and what completes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sidecar_protocol.messages import CommandInfo

from sidecar.cli.terminal import slash
from sidecar.cli.terminal.completion import Completer, mentioned_files
from sidecar.cli.terminal.own_commands import OwnCommands

THEIRS = [
    CommandInfo(name="open", arguments="PATH", description="Open files."),
    CommandInfo(name="open:list", arguments="", description="List the open files."),
    CommandInfo(name="model", arguments="[NAME]", description="Theirs."),
]


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("hello /help", (None, "hello /help")),
        ("/help", ("help", "")),
        ("/title  My chat ", ("title", "My chat")),
        ("//etc/hosts", (None, "//etc/hosts")),
        ("/open src/*.py", (None, "/open src/*.py")),
        ("/nonsense", (None, "/nonsense")),
    ],
)
def test_a_line_is_obeyed_here_or_goes_to_the_sidecar(line: str, meaning: tuple[str | None, str]) -> None:
    assert slash.parse_line(line) == meaning


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("retri", "Did you mean /retry?"),
        ("opn:list", "Did you mean /open:list?"),
        ("zzz", "/help lists the commands."),
    ],
)
def test_an_unknown_command_names_the_nearest_of_both_lists(name: str, told: str) -> None:
    said = slash.unknown_command(name, THEIRS)
    assert told in said
    assert f"//{name} sends it as text" in said


def test_every_command_is_helped_and_done() -> None:
    assert [name for name in slash.HELP if name != "quit" and not hasattr(OwnCommands, f"_do_{name}")] == []


def test_help_has_both_lists_and_a_name_that_is_in_both_once() -> None:
    lines = slash.help_lines(THEIRS)
    assert len(lines) == len(slash.HELP) + len(THEIRS)
    assert [line.split()[0] for line in lines][-3:] == ["/open", "/open:list", "//text"]
    assert not [line for line in lines if "Theirs." in line]


def completions(line: str, project: Path | None = None) -> list[str]:
    return Completer(lambda: THEIRS, lambda: str(project) if project else None)(line)


def test_names_of_both_lists_are_completed() -> None:
    assert completions("/h") == ["/help", "/history"]
    assert completions("/op") == ["/open", "/open:list"]
    assert completions("/mode") == ["/model", "/mode"]
    assert completions("hello /h") == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("src/add.py", "src/adder/x.py", "src/.hidden", "a file.txt", "b dir/one two"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("/open s", ["/open src/"]),
        ("/pin src/a", ["/pin src/add.py", "/pin src/adder/"]),
        ("/open src/", ["/open src/add.py", "/open src/adder/"]),
        ("/open src/.", ["/open src/.hidden"]),
        ("/open a", ["/open 'a file.txt'"]),
        ("/open b", ["/open 'b dir/"]),
        ("/open 'b dir/o", ["/open 'b dir/one two'"]),
        ("/open no/such", []),
        ("/diff s", []),
    ],
)
def test_paths_of_the_project_are_completed_where_a_command_takes_one(
    line: str, found: list[str], project: Path
) -> None:
    assert completions(line, project) == found


def test_without_a_project_there_are_no_paths() -> None:
    assert completions("/open s") == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("look at @s", ["look at @src/"]),
        ("@src/a", ["@src/add.py", "@src/adder/"]),
        ("@a", ['@"a file.txt"']),
        ('@"b dir/o', ['@"b dir/one two"']),
        ("@add", ["@src/add.py"]),
        ("mail@s", []),
        ("/context why @src/add", ["/context why @src/add.py", "/context why @src/adder/"]),
    ],
)
def test_files_are_completed_after_an_at_sign(line: str, found: list[str], project: Path) -> None:
    assert completions(line, project) == found


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("compare @src/add.py, @src/add.py:3-9 and @nothing", ["src/add.py"]),
        ('(@"a file.txt")', []),
        ('see @"a file.txt".', ["a file.txt"]),
        ("mail@src/add.py @src @", []),
    ],
)
def test_a_prompt_names_files_by_an_at_sign(text: str, files: list[str], project: Path) -> None:
    assert mentioned_files(text, str(project)) == files
    assert mentioned_files(text, None) == []


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_help_is_wrapped_at_words(width: int) -> None:
    lines = slash.help_lines(THEIRS, width)
    assert max(map(len, lines)) <= width
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(slash.help_lines(THEIRS)).split())
