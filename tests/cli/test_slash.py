"""Lines that begin with a slash."""

from __future__ import annotations

import pytest

from sidecar.cli import slash
from sidecar.cli.terminal import Terminal


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("hello /help", (None, "hello /help")),
        ("/help", ("help", "")),
        ("/title  My chat ", ("title", "My chat")),
        ("//etc/hosts", (None, "/etc/hosts")),
    ],
)
def test_a_line_is_a_command_or_text(line: str, meaning: tuple[str | None, str]) -> None:
    assert slash.read(line) == meaning


@pytest.mark.parametrize(
    ("line", "told"), [("/retri", "Did you mean /retry?"), ("/zzz", "/help lists the commands.")]
)
def test_an_unknown_command_names_the_nearest(line: str, told: str) -> None:
    with pytest.raises(slash.Unknown) as caught:
        slash.read(line)
    assert told in str(caught.value)
    assert f"/{line} sends it as text" in str(caught.value)


def test_every_command_is_helped_and_done() -> None:
    assert [name for name in slash.HELP if name != "quit" and not hasattr(Terminal, f"_do_{name}")] == []
    assert len(slash.help_lines()) == len(slash.HELP) + 1


def test_names_are_completed() -> None:
    complete = slash.completer(lambda: "/h")
    assert [complete("/h", 0), complete("/h", 1), complete("/h", 2)] == ["/help", "/history", None]
