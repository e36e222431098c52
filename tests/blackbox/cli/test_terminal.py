"""The conversation on a real terminal: streaming, Ctrl-C, resuming, slash commands."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from .shell import Shell

pytestmark = pytest.mark.slow

LEAVING = "To go on: sidecar chat --chat "


@pytest.fixture
def slow(shell: Shell) -> Shell:
    """A model that goes on and on when asked to `count`."""
    script = shell.folder / "script.json"
    steps = [{"text": "started\n\n"}, {"repeat": 10_000, "steps": [{"text": "more ", "delayMs": 5}]}]
    replies = [{"match": "count", "steps": steps}]
    script.write_text(json.dumps({"replies": replies, "onExhausted": "echo"}))
    shell.env["SIDECAR_MODEL"] = f"scripted:{script}"
    return shell


def test_an_answer_appears_as_markdown_and_ctrl_d_leaves(shell: Shell) -> None:
    with shell.terminal("chat") as screen:
        screen.wait_for("> ")
        screen.enter("- an item")
        screen.wait_for(" • an item")
        screen.wait_for("> ")
        screen.type("\x04")
        screen.wait_for(LEAVING + "terminal-")
        assert screen.leave_code() == 0


def test_bare_sidecar_on_a_terminal_is_a_chat(shell: Shell) -> None:
    with shell.terminal() as screen:
        screen.wait_for("> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0


def test_a_chat_without_prompts_is_not_kept(shell: Shell) -> None:
    with shell.terminal("chat") as screen:
        screen.wait_for("> ")
        screen.type("\x04")
        assert screen.leave_code() == 0
    assert shell.output("chats") == "There are no chats yet.\n"


def test_ctrl_c_cancels_the_answer_and_a_second_one_leaves(slow: Shell) -> None:
    with slow.terminal("chat", "--chat", "tab-7") as screen:
        screen.wait_for("> ")
        screen.enter("count")
        screen.wait_for("started")
        screen.wait_for("more")
        screen.interrupt("cancelled")
        screen.wait_for("> ")
        screen.enter("still there?")
        screen.wait_for("still there?\n")
        screen.wait_for("still there?")
        screen.wait_for("> ")
        screen.interrupt(LEAVING + "tab-7")
        assert screen.leave_code() == 0
    assert "cancelled" in slow.output("show", "tab-7")


def test_ctrl_c_on_a_single_question_ends_with_130(slow: Shell) -> None:
    with slow.terminal("chat", "count") as screen:
        screen.wait_for("more")
        screen.interrupt("cancelled")
        assert screen.leave_code() == 130


@pytest.mark.skipif(sys.platform != "linux", reason="finds the sidecar through /proc")
def test_a_sidecar_that_is_killed_is_started_again_and_the_answer_is_kept(slow: Shell) -> None:
    with slow.terminal("chat") as screen:
        screen.wait_for("> ")
        screen.enter("count")
        screen.wait_for("more")
        os.kill(screen.child(), signal.SIGKILL)
        screen.wait_for("interrupted: the sidecar ended before the answer did")
        screen.wait_for("> ")
        screen.enter("are you back?")
        screen.wait_for("are you back?\n")
        screen.wait_for("are you back?")
        screen.wait_for("> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0


def test_a_chat_is_gone_on_with(shell: Shell) -> None:
    shell.output("chat", "--chat", "tab-7", "What was said before")
    with shell.terminal("chat", "--chat", "tab-7") as screen:
        screen.wait_for("> What was said before")
        screen.wait_for("Ctrl-D leaves.")
        screen.wait_for("> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0


def test_slash_commands_do_what_they_say(shell: Shell) -> None:
    with shell.terminal("chat", "--chat", "tab-7") as screen:
        for line, told in [
            ("/help", "Start another chat."),
            ("/hepl", "Did you mean /help?"),
            ("first words", "first words"),
            ("/title Punch cards", "The title is 'Punch cards'."),
            ("/model", "* echo:"),
            ("/engine", "* native"),
            ("/engine acp:codex", "The engine is acp:codex."),
            ("/engine native", "The engine is native."),
            ("/model scripted:x", "The model is scripted:x."),
            ("/model echo:", "The model is echo:."),
            ("/retry", "first words"),
            ("/history", "> first words"),
            ("//slash", "/slash"),
            ("/new", "A new chat."),
        ]:
            screen.wait_for("\n> ")
            screen.enter(line)
            screen.wait_for(line)
            screen.wait_for(told)
        screen.wait_for("> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0
    assert "Punch cards" in shell.output("chats")
