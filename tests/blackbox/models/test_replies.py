"""Every provider: text, thinking, tool calls, images, usage, stop reasons, cancelling, kept connections."""

from __future__ import annotations

import pytest

from tests.blackbox.models.talk import Talk
from tests.unit.fake_provider.images import PNG

pytestmark = pytest.mark.sampled(2)


@pytest.mark.sampled(1)
def test_text_streams_and_the_history_goes_along(talk: Talk) -> None:
    first = talk.send("c", "[[say=Hello there, user]]")
    assert talk.end(first)["reason"] == "end_turn"
    second = talk.ask("[[say=Again]]")

    assert talk.text(first) == "Hello there, user"
    assert second["reason"] == "end_turn"
    sent = talk.asked[-1].body.decode()
    assert (
        sent.index("[[say=Hello there, user]]")
        < sent.index('Hello there, user"')
        < sent.index("[[say=Again]]")
    )
    assert [request.rule for request in talk.asked] == [None, None]


@pytest.mark.sampled(1)
def test_requests_share_a_connection(talk: Talk) -> None:
    for number in range(3):
        talk.ask(f"[[say={number}]]")

    assert len({request.connection for request in talk.asked}) == 1


@pytest.mark.sampled(1)
def test_thinking_is_a_thought_of_its_own(talk: Talk) -> None:
    talk.fake.vendor.style = "deepseek"  # OpenAI's own Chat Completions keep thoughts to themselves
    sent = talk.send("c", "[[think=Let me see]] [[say=Done]]", overrides={"effort": "high"})
    talk.end(sent)

    assert talk.text(sent, "thought") == "Let me see"
    assert talk.text(sent) == "Done"
    assert [item["text"] for item in talk.items(sent, "thought")] == ["Let me see"]


@pytest.mark.sampled(1)
def test_parallel_tool_calls_are_run_and_answered(talk: Talk) -> None:
    sent = talk.send("c", '[[say=Looking]] [[tool=look:{"where": "door"}]] [[tool=hear:{"what": "wind"}]]')
    ended = talk.end(sent)

    assert ended["reason"] == "end_turn"
    tools = talk.items(sent, "tool")
    assert [(tool["name"], tool["input"]) for tool in tools] == [
        ("look", {"where": "door"}),
        ("hear", {"what": "wind"}),
    ]
    assert [request.rule for request in talk.asked] == [None, None]
    assert "There is no tool called" in talk.asked[-1].body.decode()


@pytest.mark.sampled(1)
def test_a_turn_with_tool_calls_stays_valid_in_the_history(talk: Talk) -> None:
    talk.ask("[[think=Hm]] [[say=Looking]] [[tool=look:{}]] [[tool=look:{}]]", overrides={"effort": "medium"})
    ended = talk.ask("[[say=Next]]", overrides={"effort": "medium"})

    assert ended["reason"] == "end_turn"
    assert [request.rule for request in talk.asked] == [None, None, None]


@pytest.mark.sampled(1)
def test_usage_is_told_with_what_was_cached(talk: Talk) -> None:
    usage = talk.ask("[[say=x]] [[usage=1000,20,600]]")["usage"]

    assert (usage["inputTokens"], usage["outputTokens"]) == (1000, 20)
    assert usage.get("cachedTokens") == (None if talk.api == "ollama" else 600)


@pytest.mark.sampled(1)
def test_the_second_prompt_is_read_from_the_cache(talk: Talk) -> None:
    if talk.api in ("ollama", "gemini"):
        pytest.skip("this API has no cache that a request can mark or count on")
    long = "Remember this. " * 800
    talk.ask(f"{long} [[say=Yes]]")
    usage = talk.ask("[[say=And now]]")["usage"]

    assert usage["cachedTokens"] > usage["inputTokens"] * 0.8


@pytest.mark.sampled(1)
def test_stop_reasons(talk: Talk) -> None:
    assert talk.ask("[[say=one two]] [[max_tokens]]")["reason"] == "max_tokens"
    refused = talk.ask("[[refuse]]")["reason"]
    assert refused == ("end_turn" if talk.api == "ollama" else "refusal")  # Ollama has no word for it


@pytest.mark.sampled(1)
def test_an_image_reaches_the_model(talk: Talk) -> None:
    data = PNG.data
    content = [
        {"type": "text", "text": "[[say=I see]]"},
        {"type": "image", "data": data, "mimeType": "image/png"},
    ]
    sent = talk.sidecar.call("prompt/send", chatId="c", promptId="image", content=content)

    assert talk.end(sent)["reason"] == "end_turn"
    assert data in talk.asked[-1].body.decode()


@pytest.mark.sampled(1)
def test_cancel_closes_the_connection_at_once(talk: Talk) -> None:
    sent = talk.send("c", "[[n=500]] [[delay=20]]")
    talk.sidecar.wait_event(sent["sessionId"], lambda event: event["type"] == "message.delta")
    outcome = talk.sidecar.call("turn/cancel", chatId="c")

    assert outcome["outcome"] == "cancelled"
    talk.sidecar.wait_until(lambda: talk.asked[0].closed_early, 2, "the connection to close")
    ended = talk.end(sent)
    assert ended["reason"] == "cancelled"
    assert talk.text(sent).startswith("t0000 ")
    assert talk.ask("[[say=fine]]")["reason"] == "end_turn"


@pytest.mark.sampled(1)
def test_instructions_go_first(talk: Talk) -> None:
    talk.sidecar.call("chat/open", chatId="c", config={"instructions": "Answer in Latin."})
    talk.ask("[[say=Salve]]")

    body = talk.asked[-1].body.decode()
    assert "Answer in Latin." in body
    assert talk.asked[-1].rule is None


@pytest.mark.sampled(1)
def test_an_interrupted_answer_goes_on(talk: Talk) -> None:
    talk.ask("[[say=one two three]] [[fault=cut_event*1]]")
    again = talk.sidecar.call("turn/retry", chatId="c", promptId="again", **{"from": "here"})

    assert talk.end(again)["reason"] == "end_turn"
    assert [request.rule for request in talk.asked] == [None, None]
