"""Gemini and Ollama, for which no SDK is at hand: the shape of their streams, and the requests that they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.fake_provider import FakeProvider, Model

from .images import PNG
from .raw import TOOL, ask, get, post, send

HI: Any = {"role": "user", "parts": [{"text": "hi"}]}


def call(**more: Any) -> Any:
    part = {
        "functionCall": {"name": "look", "args": {}},
        "thoughtSignature": "skip_thought_signature_validator",
    }
    return {"role": "model", "parts": [part | more]}


def response(*names: str) -> Any:
    return {
        "role": "user",
        "parts": [{"functionResponse": {"name": name, "response": {"r": 1}}} for name in names],
    }


def gemini(*contents: Any, **more: Any) -> Any:
    return {"contents": [*contents], **more}


def declared(**more: Any) -> Any:
    return [{"functionDeclarations": [{"name": "look", "parameters": TOOL, **more}]}]


GEMINI_BAD: dict[str, tuple[Any, str]] = {
    "an unknown field": (gemini(HI, model_name="x"), 'Unknown name "model_name": Cannot find field.'),
    "no contents": ({}, "contents is not specified"),
    "an unknown role": (gemini({"role": "assistant", "parts": [{"text": "a"}]}), "valid role: user, model"),
    "roles that do not alternate": (gemini(HI, HI), "alternate between user and model"),
    "a model first": (gemini({"role": "model", "parts": [{"text": "a"}]}, HI), "begin with a user turn"),
    "a model last": (gemini(HI, {"role": "model", "parts": [{"text": "a"}]}), "end with a user turn"),
    "no parts": (gemini({"role": "user", "parts": []}), "contents.parts must not be empty"),
    "an empty part": (gemini({"role": "user", "parts": [{}]}), "must have one initialized field"),
    "an empty text": (gemini({"role": "user", "parts": [{"text": ""}]}), "must have one initialized field"),
    "a missing response": (gemini(HI, call(), HI), "number of function response parts is equal"),
    "too many responses": (gemini(HI, call(), response("look", "look")), "number of function response parts"),
    "a response of another name": (gemini(HI, call(), response("listen")), "matches its call"),
    "a call without its signature": (
        gemini(HI, call(thoughtSignature=""), response("look")),
        "missing a thought_signature",
    ),
    "a signature that was made up": (
        gemini(HI, call(thoughtSignature="bm8="), response("look")),
        "not valid",
    ),
    "JSON Schema beyond the subset": (
        gemini(HI, tools=declared(parameters=TOOL | {"additionalProperties": False})),
        'Unknown name "additionalProperties"',
    ),
    "a bad function name": (gemini(HI, tools=declared(name="1 look")), "Invalid function name"),
    "an image that is none": (
        gemini({"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}),
        "Unable to process input image",
    ),
}


@pytest.mark.parametrize(("body", "message"), GEMINI_BAD.values(), ids=GEMINI_BAD)
async def test_gemini_refuses(fake: FakeProvider, body: Any, message: str) -> None:
    answer = await post(fake, "gemini", body)
    assert (answer.status, answer.json["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert message in answer.json["error"]["message"]


async def test_gemini_streams_parts_and_ends_with_a_reason(fake: FakeProvider) -> None:
    asked = {"role": "user", "parts": [{"text": '[[think=hm]][[say=Yes.]][[tool=look:{"where": "door"}]]'}]}
    more: Any = {"tools": declared(), "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    path = "/v1beta/models/fake-1:streamGenerateContent?alt=sse"
    answer = await post(fake, "gemini", gemini(asked, **more), path)
    candidates = [event["candidates"][0] for event in answer.events]
    parts = [candidate["content"]["parts"][0] for candidate in candidates]
    assert parts[:2] == [{"text": "hm", "thought": True}, {"text": "Yes."}]
    assert parts[2]["functionCall"]["args"] == {"where": "door"}
    assert [candidate.get("finishReason") for candidate in candidates] == [None, None, None, "STOP"]
    turn = [asked, {"role": "model", "parts": [parts[2]]}, response("look")]
    again = await post(fake, "gemini", gemini(*turn, **more))
    assert again.json["candidates"][0]["content"]["parts"] == [{"text": "The tools said: “1”."}]


async def test_gemini_streams_an_array_without_alt_sse(fake: FakeProvider) -> None:
    answer = await post(fake, "gemini", gemini(HI), "/v1beta/models/fake-1:streamGenerateContent")
    assert [chunk["modelVersion"] for chunk in json.loads(answer.body)] == ["fake-1"] * 4


async def test_gemini_takes_an_image_and_lists_its_limits(fake: FakeProvider) -> None:
    image = {"inlineData": {"mimeType": PNG.type, "data": PNG.data}}
    assert (
        await post(fake, "gemini", gemini({"role": "user", "parts": [image, {"text": "?"}]}))
    ).status == 200
    listed = (await get(fake, "gemini", "/v1beta/models")).json["models"][0]
    assert (listed["name"], listed["inputTokenLimit"], listed["outputTokenLimit"]) == (
        "models/fake-1",
        200_000,
        64_000,
    )


async def test_gemini_tells_a_wrong_key_and_a_blocked_prompt_in_its_own_way(fake: FakeProvider) -> None:
    wrong = await send(
        fake, "POST", "/v1beta/models/fake-1:generateContent", gemini(HI), {"x-goog-api-key": "no"}
    )
    assert (wrong.status, wrong.json["error"]["details"][0]["reason"]) == (400, "API_KEY_INVALID")
    blocked = await ask(fake, "gemini", "[[fault=prompt_blocked]]", stream=False)
    assert blocked.json["promptFeedback"] == {"blockReason": "PROHIBITED_CONTENT"}


def ollama(*messages: Any, **more: Any) -> Any:
    return {"model": "fake-1", "messages": [*messages], "stream": False, **more}


USER: Any = {"role": "user", "content": "hi"}
CALLED: Any = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"function": {"name": "look", "arguments": {}}}],
}
OLLAMA_BAD: dict[str, tuple[Any, int, str]] = {
    "no model": ({"messages": [USER]}, 400, "model is required"),
    "an unknown model": (ollama(USER) | {"model": "llama"}, 404, "model 'llama' not found"),
    "an unknown role": (ollama({"role": "developer", "content": "x"}), 400, 'invalid role: "developer"'),
    "content in parts": (ollama({"role": "user", "content": []}), 400, "cannot unmarshal array"),
    "a tool message without a call": (
        ollama(USER, {"role": "tool", "content": "x"}),
        400,
        "must follow the tool calls",
    ),
    "arguments as text": (
        ollama(USER, {**CALLED, "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}),
        400,
        "cannot unmarshal string",
    ),
    "an image that is no base64": (
        ollama({**USER, "images": ["data:image/png"]}),
        400,
        "illegal base64 data",
    ),
    "tools for a model without": (
        ollama(USER, tools=[{"type": "function", "function": {"name": "look"}}]) | {"model": "fake-plain"},
        400,
        "does not support tools",
    ),
    "thinking for a model without": (
        ollama(USER, think=True) | {"model": "fake-plain"},
        400,
        "does not support thinking",
    ),
}


@pytest.mark.parametrize(("body", "status", "message"), OLLAMA_BAD.values(), ids=OLLAMA_BAD)
async def test_ollama_refuses(fake: FakeProvider, body: Any, status: int, message: str) -> None:
    answer = await post(fake, "ollama", body)
    assert (answer.status, message in answer.json["error"]) == (status, True)


async def test_ollama_streams_lines_and_ends_with_counts(fake: FakeProvider) -> None:
    asked = {"role": "user", "content": '[[think=hm]][[say=Yes.]][[tool=look:{"where": "door"}]]'}
    answer = await post(fake, "ollama", ollama(asked, think=True) | {"stream": True})
    messages = [line["message"] for line in answer.events]
    assert [line["done"] for line in answer.events] == [False, False, False, True]
    assert (messages[0]["thinking"], messages[1]["content"]) == ("hm", "Yes.")
    assert messages[2]["tool_calls"][0]["function"]["arguments"] == {"where": "door"}
    assert answer.events[-1]["done_reason"] == "stop"
    result = {"role": "tool", "content": "a cat", "tool_name": "look"}
    again = await post(fake, "ollama", ollama(asked, messages[2], result))
    assert again.json["message"]["content"] == "The tools said: “a cat”."


async def test_ollama_lists_and_shows_its_models() -> None:
    async with FakeProvider(models=[Model("tiny", window=50)]) as fake:
        assert (await get(fake, "ollama", "/api/tags")).json["models"][0]["name"] == "tiny:latest"
        shown = (await post(fake, "ollama", {"model": "tiny"}, "/api/show")).json
        assert shown["model_info"]["fake.context_length"] == 50
        assert "version" in (await get(fake, "ollama", "/api/version")).json
