"""Lines that begin with a slash: whose they are, their help, and what completes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sidecar_protocol.messages import CommandInfo

from sidecar.cli import slash
from sidecar.cli.terminal import Terminal

THEIRS = [
    CommandInfo(name="open", arguments="PATH", description="Bring files into view."),
    CommandInfo(name="open:list", arguments="", description="The files in view."),
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
    assert slash.read(line) == meaning


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("retri", "Did you mean /retry?"),
        ("opn:list", "Did you mean /open:list?"),
        ("zzz", "/help lists the commands."),
    ],
)
def test_an_unknown_command_names_the_nearest_of_both_lists(name: str, told: str) -> None:
    said = slash.unknown(name, THEIRS)
    assert told in said
    assert f"//{name} sends it as text" in said


def test_every_command_is_helped_and_done() -> None:
    assert [name for name in slash.HELP if name != "quit" and not hasattr(Terminal, f"_do_{name}")] == []


def test_help_has_both_lists_and_a_name_that_is_in_both_once() -> None:
    lines = slash.help_lines(THEIRS)
    assert len(lines) == len(slash.HELP) + len(THEIRS)
    assert [line.split()[0] for line in lines][-3:] == ["/open", "/open:list", "//text"]
    assert not [line for line in lines if "Theirs." in line]


def completions(line: str, project: Path | None = None) -> list[str]:
    complete = slash.Completer(lambda: line, lambda: THEIRS, lambda: str(project) if project else None)
    found = [complete(line, state) for state in range(20)]
    return [each for each in found if each is not None]


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
