"""Questions of the model to the person, on a real terminal."""

from __future__ import annotations

import pytest

from .shell import Shell, call

CHOICES = call("ask_user", question="Which colour?", choices=["red", "green"])
BOTH = call("ask_user", question="Which colour?", choices=["red", "green"], free_text=True)
WORDS = call("ask_user", question="Your name?\nThe first one.")

LAST = "alone: no answer): "


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("asked", "typed", "told"),
    [
        (CHOICES, "2", "The user answers: green"),
        (CHOICES, "red", "The user answers: red"),
        (BOTH, "1", "The user answers: red"),
        (BOTH, "rather blue", "The user answers: rather blue"),
        (WORDS, "Ada", "The user answers: Ada"),
        (CHOICES, "", "does not want to answer"),
        (BOTH, "", "does not want to answer"),
        (WORDS, "", "does not want to answer"),
    ],
)
def test_an_answer_reaches_the_model(shell: Shell, asked: dict[str, object], typed: str, told: str) -> None:
    shell.play(["Let me ask.", asked, "Thanks."])
    with shell.terminal("chat", "--chat", "c") as screen:
        screen.wait_for("> ")
        screen.enter("go")
        screen.wait_for("Let me ask.")
        screen.wait_for("? " + str(asked["input"]["question"]).partition("\n")[0])  # type: ignore[index]
        screen.wait_for(LAST)
        screen.enter(typed)
        screen.wait_for("Thanks.")
        screen.wait_for("\n> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0
    (item,) = shell.items("c")
    assert told in item["output"]["text"]


def test_a_number_that_is_no_choice_is_asked_for_again(shell: Shell) -> None:
    shell.play([CHOICES, "Thanks."])
    with shell.terminal("chat", "--chat", "c") as screen:
        screen.wait_for("> ")
        screen.enter("go")
        screen.wait_for(LAST)
        screen.enter("3")
        screen.wait_for(LAST)
        screen.enter("1")
        screen.wait_for("Thanks.")
    (item,) = shell.items("c")
    assert item["output"]["text"] == "The user answers: red"


def test_ctrl_c_at_a_question_cancels_the_turn(shell: Shell) -> None:
    shell.play([WORDS, "Never said."])
    with shell.terminal("chat", "--chat", "c") as screen:
        screen.wait_for("> ")
        screen.enter("go")
        screen.wait_for(LAST)
        screen.interrupt("\ncancelled")
        screen.wait_for("\n> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0
    assert shell.items("c", "message") == []


def test_without_a_terminal_nobody_is_asked(shell: Shell) -> None:
    shell.play([WORDS, "I go on."])
    assert shell.output("chat", "--chat", "c", "go") == "I go on.\n"
    assert "Nobody can be asked" in shell.items("c")[0]["output"]["text"]
