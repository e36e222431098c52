"""Typing, pasting and completing prompts on a real terminal, also while an answer streams."""

from __future__ import annotations

import json
import os
import signal

import pytest

from .shell import Shell, Terminal, call

pytestmark = pytest.mark.slow


def prompts(shell: Shell, chat: str) -> list[str]:
    return [item["text"] for item in shell.items(chat, "user")]


def leave(screen: Terminal) -> None:
    """Exit from an empty prompt."""
    screen.type("\x04")
    assert screen.leave_code() == 0
    assert screen.echoes


@pytest.fixture
def waiting(shell: Shell) -> Shell:
    """A model that answers `wait` with a first word, and goes on when the file `go` appears."""
    wait = call("run_command", command="while [ ! -e go ]; do sleep 0.02; done")
    steps = [{"text": "started\n\n"}, {"toolCall": wait}, {"text": "finished"}]
    script = shell.folder / "script.json"
    script.write_text(json.dumps({"replies": [{"match": "wait", "steps": steps}], "onExhausted": "echo"}))
    shell.env["SIDECAR_MODEL"] = f"scripted:{script}"
    return shell


def go(shell: Shell) -> None:
    (shell.folder / "go").touch()


@pytest.mark.parametrize(
    "text", ["one\ntwo\n\tthree", "/quit is\na word", "\n".join("long" for _ in range(5000))]
)
def test_a_pasted_text_is_one_prompt(text: str, shell: Shell) -> None:
    with shell.terminal("chat", "--chat", "c") as screen:
        screen.wait_for("> ")
        screen.paste(f"see: {text}")
        screen.type(" end")
        screen.wait_for(" end")
        screen.type("\r")
        screen.wait_for(" out\n\n> ")
        leave(screen)
    assert prompts(shell, "c") == [f"see: {text} end"]


def test_a_long_paste_is_a_note_on_the_screen(shell: Shell) -> None:
    with shell.terminal("chat") as screen:
        screen.wait_for("> ")
        screen.paste("line\n" * 3000)
        screen.wait_for("[pasted 3,000 lines]")
        screen.type("\x7f")
        leave(screen)


def test_what_is_typed_while_an_answer_streams_is_kept(waiting: Shell) -> None:
    with waiting.terminal("chat", "--chat", "c", "--mode", "auto") as screen:
        screen.wait_for("> ")
        screen.enter("wait")
        screen.wait_for("started")
        screen.type("the next")
        screen.wait_for("the next▏")
        go(waiting)
        screen.wait_for("finished")
        screen.wait_for("\n> the next")
        screen.enter(" one")
        screen.wait_for("the next one\n")
        screen.wait_for(" out\n\n> ")
        leave(screen)
    assert prompts(waiting, "c") == ["wait", "the next one"]


def test_prompts_that_are_sent_ahead_follow_one_by_one(waiting: Shell) -> None:
    with waiting.terminal("chat", "--chat", "c", "--mode", "auto") as screen:
        screen.wait_for("> ")
        screen.enter("wait")
        screen.wait_for("started")
        screen.enter("second")
        screen.paste("third\nof two lines")
        screen.type("\r")
        screen.type("and")
        screen.wait_for("and▏")
        go(waiting)
        screen.wait_for(" out\n\n> third")
        screen.wait_for(" out\n\n> and")
        screen.type("\x15")
        leave(screen)
    assert prompts(waiting, "c") == ["wait", "second", "third\nof two lines"]


def test_prompts_that_were_sent_ahead_can_be_edited_after_a_cancel(waiting: Shell) -> None:
    with waiting.terminal("chat", "--chat", "c", "--mode", "auto") as screen:
        screen.wait_for("> ")
        screen.enter("wait")
        screen.wait_for("started")
        screen.enter("second")
        screen.type("rest")
        screen.wait_for("rest▏")
        screen.interrupt("cancelled")
        screen.wait_for("\n> second\n  rest")
        screen.type("\x03")
        leave(screen)
    assert prompts(waiting, "c") == ["wait"]


def test_the_start_line_names_model_project_and_mode(shell: Shell) -> None:
    with shell.terminal("chat", "--mode", "read-only") as screen:
        screen.wait_for("echo: · ~ · mode read-only\n")
        screen.wait_for("\n> ")
        leave(screen)
    with shell.terminal("chat", "--no-project", columns=40) as screen:
        screen.wait_for("echo: · no project · mode ask\n")
        screen.wait_for("\n> ")
        leave(screen)


def test_the_tokens_are_shown_after_an_answer(shell: Shell) -> None:
    with shell.terminal("chat") as screen:
        screen.wait_for("> ")
        screen.enter("one two three")
        screen.wait_for("\n\n3 in, 3 out\n\n> ")
        leave(screen)


def test_a_file_is_completed_after_an_at_sign_and_sent_with_the_prompt(shell: Shell) -> None:
    (shell.folder / "project" / "my notes").mkdir(parents=True)
    (shell.folder / "project" / "my notes" / "plan.md").write_text("the plan")
    (shell.folder / "project" / "place.txt").write_text("the place")
    with shell.terminal("chat", "--chat", "c", "--project", "project") as screen:
        screen.wait_for("> ")
        screen.type("compare @pl")
        screen.type("\t")
        screen.wait_for("@place.txt")
        screen.type(" with @pla\x7f\x7f\x7fmy\t")
        screen.wait_for('@"my notes/')
        screen.type("\t")
        screen.wait_for('plan.md"')
        screen.type("\r")
        screen.wait_for("opened place.txt")
        screen.wait_for("opened my notes/plan.md")
        screen.wait_for(" out\n\n> ")
        leave(screen)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_help_is_wrapped_at_words(columns: int, shell: Shell) -> None:
    whole = " ".join(shell.output("chat", "/help").split()) if columns == 80 else ""
    with shell.terminal("chat", columns=columns) as screen:
        screen.wait_for("> ")
        screen.enter("/help")
        screen.wait_for("/help\n")
        text = screen.wait_for("\n> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0
    assert max(map(len, text.splitlines())) <= columns
    assert not whole or " ".join(text.split()) == whole


def test_lines_can_be_edited_and_called_back(shell: Shell) -> None:
    with shell.terminal("chat", "--chat", "c") as screen:
        screen.wait_for("> ")
        screen.enter("wrold\x1b[D\x1b[D\x1b[D\x1b[D\x1b[3~\x1b[Cr\x01hello \x05!")
        screen.wait_for(" out\n")
        screen.wait_for("\n> ")
        screen.type("unsent")
        screen.wait_for("unsent")
        screen.type("\x1b[A")
        screen.wait_for("hello world!")
        screen.type("\x1b[B")
        screen.wait_for("unsent")
        screen.type("\x03\x12wor")
        screen.wait_for("search 'wor': hello world!")
        screen.type("\r")
        screen.wait_for(" out\n\n> ")
        leave(screen)
    assert prompts(shell, "c") == ["hello world!"] * 2


def test_a_prompt_of_several_lines_is_typed(shell: Shell) -> None:
    with shell.terminal("chat", "--chat", "c") as screen:
        screen.wait_for("> ")
        screen.type("one\\\r")
        screen.type("two\x1b\r")
        screen.enter("three")
        screen.wait_for(" out\n\n> ")
        leave(screen)
    assert prompts(shell, "c") == ["one\ntwo\nthree"]


def test_ctrl_c_clears_the_prompt_and_exits_from_an_empty_one(shell: Shell) -> None:
    with shell.terminal("chat") as screen:
        screen.wait_for("> ")
        screen.type("half a question")
        screen.wait_for("question")
        screen.type("\x03")
        screen.wait_for("> ")
        screen.type("\x1b[A")
        screen.wait_for("half a question")
        screen.type("\x03\x03")
        assert screen.leave_code() == 0
        assert screen.echoes


def test_the_prompt_is_drawn_again_when_the_window_changes(shell: Shell) -> None:
    with shell.terminal("chat") as screen:
        screen.wait_for("> ")
        screen.type("a prompt of quite a number of words that fills the line of a window")
        screen.wait_for("a window")
        screen.resize(40)
        screen.wait_for("> a prompt of quite a number of words \nthat fills the line of a window")
        screen.type("\x15")
        leave(screen)


def test_the_terminal_is_restored_when_the_command_is_ended(shell: Shell) -> None:
    with shell.terminal("chat") as screen:
        screen.wait_for("> ")
        os.kill(screen.pid, signal.SIGTERM)
        assert screen.leave_code() == -signal.SIGTERM
        assert screen.echoes
        assert screen.raw.endswith("\x1b[?2004l")


def test_keys_that_are_typed_when_a_question_appears_do_not_answer_it(shell: Shell) -> None:
    shell.play(["Soon.", {"delayMs": 300}, call("run_command", command="echo hi"), "Over."])
    with shell.terminal("chat", "--mode", "ask") as screen:
        screen.wait_for("> ")
        screen.enter("go")
        screen.wait_for("Soon.")
        screen.type("yes")
        screen.wait_for("[y]")
        screen.type("n")
        screen.wait_for("→ no")
        screen.enter(" or no")
        screen.wait_for("yes or no\n")
        screen.wait_for(" out\n\n> ")
        leave(screen)


def test_the_rule_of_a_choice_is_readable_on_a_narrow_screen(shell: Shell) -> None:
    shell.play([call("run_command", command="grep -c something file-of-a-long-name.txt"), "Over."])
    with shell.terminal("chat", "--mode", "ask", columns=40) as screen:
        screen.wait_for("> ")
        screen.enter("go")
        card = screen.wait_for("[s] no, and stop")
        screen.type("n")
        screen.wait_for("→ no")
        screen.enter("next")
        screen.wait_for(" out\n\n> ")
        leave(screen)
    assert "run(=" in card
    assert "…" not in card
