"""Results of tools as they are sent: fenced, but for denials and the user's own answers; masked within the fence."""

from __future__ import annotations

from sidecar.chat.request.messages import mask_result
from sidecar.engines.results import tool_result
from tests.blackbox.window.fencing import fences

TEXT = "some words " * 100


def test_a_result_is_fenced_and_keeps_its_own_words() -> None:
    made = tool_result("s", "1", "read_file", TEXT, failed=True, source="out:a")
    found, outside = fences(made.text)
    assert ([fence.text for fence in found], outside) == ([TEXT], "")
    assert (made.said, made.failed, made.source) == (TEXT, True, "out:a")


def test_denials_and_the_users_answers_are_not() -> None:
    assert tool_result("s", "1", "run_command", "Denied.", denied=True).text == "Denied."
    assert tool_result("s", "1", "ask_user", "Blue.").text == "Blue."


def test_a_masked_result_is_fenced_once() -> None:
    short = mask_result("s", tool_result("s", "1", "grep", TEXT))
    found, outside = fences(short.text)
    assert (len(found), outside) == (1, "")
    assert "characters left out" in found[0].text
    assert "[[" not in found[0].text
    assert mask_result("s", tool_result("s", "1", "ask_user", TEXT)).text.startswith("[output:")
