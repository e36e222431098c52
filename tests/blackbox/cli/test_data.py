"""`sidecar stats` and `sidecar purge`, through pipes and on a terminal."""

from __future__ import annotations

import json

import pytest

from .shell import Shell


@pytest.fixture
def filled(shell: Shell) -> Shell:
    (shell.folder / "engine").mkdir()
    shell.output("chat", "--chat", "thesis", "--project", "engine", "one two three")
    shell.output("chat", "--chat", "other", "--no-project", "hello")
    return shell


def test_stats_are_a_picture_and_json_for_programs(filled: Shell) -> None:
    picture = filled.output("stats")
    assert "2 chats, 2 turns" in picture
    assert "█" in picture
    assert max(map(len, picture.splitlines())) <= 80
    figures = json.loads(filled.output("stats", "--json"))
    assert (figures["scope"], figures["chats"], figures["inputTokens"], figures["cost"]) == (
        "all",
        2,
        4,
        None,
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("scope", "tokens"), [(("--chat", "other"), 1), (("--project", "engine"), 3), (("--all",), 4)]
)
def test_stats_of_a_scope(filled: Shell, scope: tuple[str, ...], tokens: int) -> None:
    assert json.loads(filled.output("stats", "--json", *scope))["inputTokens"] == tokens


@pytest.mark.slow
def test_purge_says_what_it_removed(filled: Shell) -> None:
    assert "Purged 1 chat, 1 turn, 2 messages" in filled.output("purge", "--chat", "other", "--yes")
    assert "thesis" in filled.output("chats")
    assert "Purged 1 chat" in filled.output("purge", "--project", "engine", "--yes")
    assert filled.output("chats") == "There are no chats yet.\n"
    assert "Purged nothing" in filled.output("purge", "--all", "--yes")


def test_purge_without_a_terminal_wants_yes(filled: Shell) -> None:
    done = filled.run("purge", "--all")
    assert (done.returncode, "--yes" in done.stderr) == (2, True)
    assert "thesis" in filled.output("chats")


def test_purge_needs_one_scope(shell: Shell) -> None:
    assert shell.run("purge").returncode == 2
    assert shell.run("purge", "--all", "--chat", "c").returncode == 2


def test_purge_of_an_unknown_chat_names_it(shell: Shell) -> None:
    done = shell.run("purge", "--chat", "ghost", "--yes")
    assert (done.returncode, "ghost" in done.stderr) == (1, True)


@pytest.mark.slow
def test_purge_asks_on_a_terminal(filled: Shell) -> None:
    for answer, end, left in (("n", "Nothing was purged", True), ("y", "Purged 1 chat", False)):
        with filled.terminal("purge", "--chat", "thesis") as terminal:
            said = terminal.wait_for("Purge it? [y/N]")
            assert "the chat thesis for good: 1 chat, 1 turn" in said
            terminal.enter(answer)
            terminal.wait_for(end)
            assert terminal.leave_code() == (1 if left else 0)
        assert ("thesis" in filled.output("chats")) is left


def test_a_purged_chat_makes_room_for_a_new_one_in_the_terminal(shell: Shell) -> None:
    with shell.terminal("chat", "--no-project") as terminal:
        terminal.wait_for("> ")
        terminal.enter("hello")
        terminal.wait_for("\n\n> ")
        terminal.enter("/purge chat delete-1-turn")
        terminal.wait_for("Purged this chat")
        terminal.wait_for("> ")
        terminal.enter("something new")
        terminal.wait_for("this is a new one")
        terminal.wait_for("\n\n> ")
        terminal.enter("/quit")
        assert terminal.leave_code() == 0
