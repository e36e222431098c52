"""No text that one client sends keeps another chat waiting: one that is too long is refused at once, by its field.

Whether the loop is free shows in the order of answers, which no load of the machine changes: a ping that is sent
behind a request is answered before it, or the request was refused.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.sidecar import Sidecar

LIMIT = 4 << 20
"""The contract's limit for one text, in bytes of UTF-8."""

HUGE: dict[str, str] = {
    "one word": "a" * (30 << 20),
    "spaces": " " * (28 << 20),
    "line ends": "\n" * (14 << 20),
    "one emoji": "\U0001f600" * (7 << 20),
    "one Chinese character": "\u6f22" * (9 << 20),
    "base64": "QUJDREVGR0hJSktM/+" * (27 << 16),
    "brackets": "[" * (29 << 20),
    "a byte too many": "x" * (LIMIT + 1),
    "a byte too many in two": "\u00e9" * (LIMIT // 2) + "x",
}
SENT: dict[str, tuple[str, dict[str, Any], str]] = {
    "a prompt": ("prompt/send", {"promptId": "p", "text": "HERE"}, "text"),
    "a block": (
        "prompt/send",
        {"promptId": "p", "content": [{"type": "text", "text": "HERE"}]},
        "content[0].text",
    ),
    "a resource": (
        "prompt/send",
        {"promptId": "p", "content": [{"type": "resource", "uri": "a:b", "text": "HERE"}]},
        "content[0].text",
    ),
    "a steer": ("prompt/send", {"promptId": "p", "text": "HERE", "delivery": "steer"}, "text"),
    "an edit": (
        "prompt/edit",
        {"promptId": "p", "content": [{"type": "text", "text": "HERE"}], "revision": 1},
        "content[0].text",
    ),
    "a look at the context": ("chat/context", {"text": "HERE", "budget": 1000}, "text"),
    "a title": ("chat/rename", {"title": "HERE"}, "title"),
    "instructions": ("chat/configure", {"set": {"instructions": "HERE"}}, "set.instructions"),
    "a search": ("chat/search", {"query": "HERE"}, "query"),
    "a search of the index": ("index/search", {"queries": ["HERE"]}, "queries[0]"),
    "a text for the index": ("index/add", {"content": "HERE", "source": "s"}, "content"),
    "an imported text": ("chat/import", {"data": '{"role":"user","text":"HERE"}'}, "data"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", HUGE)
@pytest.mark.parametrize("sent", ["a prompt", "a look at the context"])
def test_a_text_of_any_kind_that_is_too_long_is_refused(sidecar: Sidecar, text: str, sent: str) -> None:
    _refused(sidecar, sent, HUGE[text])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sent", SENT)
def test_a_text_in_any_place_that_is_too_long_is_refused(sidecar: Sidecar, sent: str) -> None:
    _refused(sidecar, sent, "word " * (LIMIT // 5 + 1))


@pytest.mark.parametrize("method", ["chat/search", "chat/list"])
@pytest.mark.parametrize(
    "query", ["word " * 1639, "x" * 8193, "%" * 60_000, " ".join(map(str, range(500_000))), "\u6f22" * 2731]
)
def test_a_search_for_too_much_is_refused_by_its_limit(sidecar: Sidecar, method: str, query: str) -> None:
    refusal = sidecar.refused(method, query=query)
    assert (refusal.code, refusal.data["reason"], refusal.data["retryable"]) == (-32602, "too_long", False)
    assert (refusal.data["params"]["field"], refusal.data["params"]["limit"]) == ("query", 8192)


@pytest.mark.parametrize("method", ["chat/search", "chat/list"])
@pytest.mark.parametrize("query", ["word " * 1638, "%" * 8192, '"' * 8192, "a b " * 2048])
def test_a_search_as_long_as_may_be_is_answered(sidecar: Sidecar, method: str, query: str) -> None:
    sidecar.run("a word and b", chatId="c")
    sidecar.call(method, query=query)


BLOCKS: dict[str, tuple[list[Any], int]] = {
    "a few long texts": ([{"type": "text", "text": "a" * LIMIT}] * 7, LIMIT),
    "a byte too many in two": ([{"type": "text", "text": "a" * LIMIT}, {"type": "text", "text": "b"}], LIMIT),
    "texts and resources": (
        [
            {"type": "text", "text": "a" * (LIMIT // 2)},
            {"type": "resource", "uri": "a:b", "text": "b" * LIMIT},
        ],
        LIMIT,
    ),
    "many": ([{"type": "text", "text": "ab"}] * 100_000, 1000),
    "one too many": ([{"type": "text", "text": "ab"}] * 1001, 1000),
    "many links": ([{"type": "resource_link", "uri": "a:b", "name": "c"}] * 50_000, 1000),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("method", ["prompt/send", "chat/context"])
def test_the_blocks_of_a_prompt_are_limited_together(sidecar: Sidecar, method: str, blocks: str) -> None:
    content, limit = BLOCKS[blocks]
    sidecar.call("chat/open", chatId="c")
    prompt = {"promptId": "p"} if method == "prompt/send" else {}
    refusal = sidecar.refused(method, chatId="c", content=content, **prompt)
    assert (refusal.code, refusal.data["reason"]) == (-32602, "too_long")
    assert (refusal.data["params"]["field"], refusal.data["params"]["limit"]) == ("content", limit)
    assert sidecar.run("hello", chatId="c")["data"]["reason"] == "end_turn"


def test_a_text_as_long_as_may_be_is_taken_and_echoed(sidecar: Sidecar) -> None:
    sidecar.call("chat/open", chatId="c")
    sent = sidecar.ask("prompt/send", chatId="c", promptId="p", text="a" * LIMIT)
    session = sidecar.result(sent)["sessionId"]
    ended = sidecar.wait_event(session, "turn.ended")
    assert ended["data"]["reason"] == "end_turn"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("unit", ["a", " ", "\n", "\U0001f600", "\u6f22", "[", "aB3 "])
def test_a_ping_is_answered_while_a_long_text_is_counted(sidecar: Sidecar, unit: str) -> None:
    """The context of a text is only looked at, so all that it costs is counting, beside the loop."""
    text = unit * (LIMIT // len(unit.encode()))
    sidecar.call("chat/open", chatId="c", config={"model": "openai:gpt-4o"})
    asked = sidecar.ask("chat/context", chatId="c", text=text, budget=1_500_000)
    ping = sidecar.ask("ping")
    sidecar.answer(ping)
    assert sidecar.answers(asked) == []
    sidecar.answer(asked, 60)


def _refused(sidecar: Sidecar, sent: str, text: str) -> None:
    method, params, field = SENT[sent]
    sidecar.call("chat/open", chatId="c")
    chat = (
        {}
        if method in ("chat/search", "index/search")
        else {"chatId": "new" if sent == "an imported text" else "c"}
    )
    refusal = sidecar.refused(method, **chat, **_filled(params, text))
    assert (refusal.code, refusal.data["reason"]) == (-32602, "too_long")
    assert (refusal.data["params"]["field"], refusal.data["params"]["limit"]) == (field, LIMIT)
    assert sidecar.run("hello", chatId="other")["data"]["reason"] == "end_turn"


def _filled(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(part, text) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, text) for part in value]
    return value.replace("HERE", text) if isinstance(value, str) else value
