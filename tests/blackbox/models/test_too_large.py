"""A window that is unknown, or set too large, kills no chat: what the provider refuses as too large is sent again in
the same turn, with fewer old turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.fake_provider import in_thread
from tests.blackbox.models.talk import Json, Talk
from tests.blackbox.models.test_refused import used
from tests.support.spawner import Spawner

pytestmark = pytest.mark.sampled(1)

WINDOW = 8192
"""That of the fake's `fake-small`, which refuses every request that is larger; OpenAI's APIs do not list it."""

LONG = "word " * 2000
SMALL: Json = {"overrides": {"model": "openai:fake-small"}}
OTHER_WORDS = {
    "llama.cpp": "request (9999 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "vLLM": "This model's maximum context length is 8192 tokens. However, you requested 9999 tokens",
    "Mistral": "Prompt contains 9999 tokens, too large for model with 8192 maximum context length",
    "TGI": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 9999",
    "Groq": "Request too large for model on tokens per minute (TPM): Limit 8192, Requested 9999",
    "no number": "The input is too long for this model",
}


@pytest.mark.parametrize("how", ["unknown", "set too large", "switched"])
def test_a_chat_goes_on_beyond_the_window(how: str, talk: Talk) -> None:
    model = {"model": f"{talk.provider}:fake-small"}
    if talk.api == "anthropic":
        talk.sidecar.call("models/list", provider="anthropic")  # it insists on its limit of an answer
    talk.sidecar.call("chat/open", chatId="c", config={"window": 100_000} if how != "unknown" else {})
    for number in range(6):
        override: Json = {} if how == "switched" and number < 5 else {"overrides": model}
        assert talk.ask(f"turn {number} {LONG} [[say=ok]]", **override)["reason"] == "end_turn", number
    assert "turn 5 word" in talk.asked[-1].body.decode()
    assert f"turn 0 {LONG}" not in talk.asked[-1].body.decode() or talk.api == "ollama"


@pytest.mark.parametrize("words", OTHER_WORDS.values(), ids=OTHER_WORDS)
@pytest.mark.parametrize("status", [400, 413, 429])
def test_other_servers_words_are_understood(words: str, status: int, spawn: Spawner, tmp_path: Path) -> None:
    """The provider refuses whatever still has the first turn, as if the window were full with it."""
    if status == 429 and "Request too large" not in words:
        pytest.skip("a limit of requests")
    with in_thread() as fake:
        talk = Talk("openai-chat", fake, spawn, tmp_path)
        for number in range(3):
            assert talk.ask(f"turn {number} {LONG} [[say=ok]]")["reason"] == "end_turn"
        fake.forbidden, fake.forbidden_answer = f"turn 0 {LONG}", (status, {"error": {"message": words}})
        assert [talk.ask("[[say=fine]]")["reason"] for _ in range(2)] == ["end_turn"] * 2
        windows = [m["window"] for m in talk.sidecar.call("models/list")["items"] if m["id"] == talk.model]
        assert windows in ([], [None], [WINDOW])


def test_a_window_that_a_refusal_named_is_kept_for_all_chats(talk_openai: Talk) -> None:
    talk = talk_openai
    for number in range(5):
        assert talk.ask(f"turn {number} {LONG} [[say=ok]]", **SMALL)["reason"] == "end_turn"
    (small,) = [m for m in talk.sidecar.call("models/list")["items"] if m["id"] == "openai:fake-small"]
    assert small["window"] == WINDOW
    before = len(talk.asked)
    for number in range(5):
        assert talk.ask(f"turn {number} {LONG} [[say=ok]]", chat="d", **SMALL)["reason"] == "end_turn"
    assert {request.status for request in talk.asked[before:]} == {200}, "a request was refused again"


def test_a_tool_result_beyond_an_unknown_window_does_not_end_the_turn(
    talk_openai: Talk, tmp_path: Path
) -> None:
    talk, project = talk_openai, tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("line of words\n" * 700)
    talk.sidecar.call("chat/open", chatId="c", projectPath=str(project))
    assert talk.ask(f"turn 0 {LONG} [[say=ok]]", **SMALL)["reason"] == "end_turn"
    assert talk.ask(f"turn 1 {LONG} [[say=ok]]", **SMALL)["reason"] == "end_turn"
    read = '[[tool=read_file:{"path": "a.txt"}]]'
    assert talk.ask(f"{read}[[next]]{read}[[next]][[say=read]]", **SMALL)["reason"] == "end_turn"


@pytest.fixture
def talk_openai(spawn: Spawner, tmp_path: Path) -> Iterator[Talk]:
    with in_thread() as fake:
        yield Talk("openai-chat", fake, spawn, tmp_path)


def test_a_prompt_that_is_larger_than_an_unknown_window_alone_is_refused_and_not_paid_for(
    talk_openai: Talk,
) -> None:
    talk = talk_openai
    assert talk.ask("hello [[say=ok]]", **SMALL)["reason"] == "end_turn"
    error = talk.ask(LONG * 6, **SMALL)["error"]["data"]
    assert (error["reason"], error["params"]["window"]) == ("window", WINDOW)
    assert talk.ask("hello [[say=ok]]", **SMALL)["reason"] == "end_turn"
    assert used(talk) < 300
