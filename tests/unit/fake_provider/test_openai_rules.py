"""Each rule of OpenAI's two APIs refuses the request that breaks it, and says which parameter it was."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.fake_provider import FakeProvider, Model

from .images import PNG
from .raw import TOOL, post

USER: Any = {"role": "user", "content": "hi"}
RESULT: Any = {"role": "tool", "tool_call_id": "c1", "content": "a cat"}


def called(*ids: str, **more: Any) -> Any:
    function = {"name": "look", "arguments": "{}", **more}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def chat(*messages: Any, **more: Any) -> Any:
    return {"model": "fake-1", "messages": [*messages], **more}


def tool(**function: Any) -> Any:
    return [{"type": "function", "function": {"name": "look", "parameters": TOOL, **function}}]


CHAT_GOOD = {
    "several system messages": chat(
        {"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, USER
    ),
    "parallel calls, answered in any order": chat(
        USER, called("c1", "c2"), {**RESULT, "tool_call_id": "c2"}, RESULT, USER
    ),
    "an empty string": chat({"role": "user", "content": ""}),
    "a strict schema": chat(USER, tools=tool(parameters=TOOL | {"additionalProperties": False}, strict=True)),
    "an id used again in a later turn's text": chat(USER, {"role": "assistant", "content": "c1"}, USER),
}
CHAT_BAD: dict[str, tuple[Any, str]] = {
    "an unknown parameter": (chat(USER, max_output=3), "Unknown parameter: 'max_output'."),
    "an unknown member": (chat({**USER, "id": 1}), "Unknown parameter: 'messages[0].id'."),
    "no model": ({"messages": [USER]}, "you must provide a model parameter"),
    "no messages": ({"model": "fake-1"}, "Missing required parameter: 'messages'."),
    "empty messages": (chat(), "Invalid 'messages': empty array"),
    "an unknown role": (chat({"role": "model", "content": "hi"}), "Invalid value: 'model'"),
    "null content": (chat({"role": "user", "content": None}), "expected a string, got null"),
    "an assistant without content or calls": (chat(USER, {"role": "assistant", "content": None}), "got null"),
    "an empty array": (chat({"role": "user", "content": []}), "empty array"),
    "an unknown part": (chat({"role": "user", "content": [{"type": "image"}]}), "Invalid value: 'image'"),
    "an image of the assistant": (
        chat(USER, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": PNG.url}}]}),
        "Invalid value: 'image_url'",
    ),
    "a wrong image type": (
        chat(
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "data:image/bmp;base64,AA=="}}],
            }
        ),
        "unsupported image",
    ),
    "a tool message without a call": (chat(USER, RESULT), "must be a response to a preceeding message"),
    "a tool message with another id": (
        chat(USER, called("c1"), {**RESULT, "tool_call_id": "c9"}),
        "'tool_call_id' of 'c9' not found",
    ),
    "a tool message twice": (chat(USER, called("c1"), RESULT, RESULT), "'tool_call_id' of 'c1' not found"),
    "a call without an answer": (
        chat(USER, called("c1", "c2"), RESULT, USER),
        "did not have response messages: c2",
    ),
    "an open call at the end": (chat(USER, called("c1")), "did not have response messages: c1"),
    "ids that repeat": (chat(USER, called("c1", "c1"), RESULT), "Duplicate value for 'tool_call_id'"),
    "no tool calls in the list": (
        chat(USER, {"role": "assistant", "content": "x", "tool_calls": []}),
        "empty array",
    ),
    "arguments as an object": (
        chat(USER, called("c1", arguments={}), RESULT),
        "expected a string, but got an object",
    ),
    "arguments that are no JSON": (chat(USER, called("c1", arguments="{"), RESULT), "expected a JSON string"),
    "a bad tool name": (chat(USER, tools=tool(name="look around")), "does not match pattern"),
    "a schema that is no object": (
        chat(USER, tools=tool(parameters={"type": "array"})),
        "got 'type: \"array\"'",
    ),
    "a strict schema left open": (chat(USER, tools=tool(strict=True)), "'additionalProperties' is required"),
    "an empty list of tools": (chat(USER, tools=[]), "Invalid 'tools': empty array"),
    "a choice of an unknown tool": (
        chat(USER, tools=tool(), tool_choice={"type": "function", "function": {"name": "x"}}),
        "Tool choice 'x' not found",
    ),
    "a choice without tools": (chat(USER, tool_choice="auto"), "only allowed when 'tools' are specified"),
    "stream options without a stream": (
        chat(USER, stream_options={"include_usage": True}),
        "only allowed when 'stream'",
    ),
    "too hot": (chat(USER, temperature=3), "maximum value 2"),
    "an unknown effort": (chat(USER, reasoning_effort="enormous"), "Invalid value: 'enormous'"),
}


@pytest.mark.parametrize("body", CHAT_GOOD.values(), ids=CHAT_GOOD)
async def test_chat_takes(fake: FakeProvider, body: Any) -> None:
    answer = await post(fake, "openai-chat", body)
    assert answer.status == 200, answer.body


@pytest.mark.parametrize(("body", "message"), CHAT_BAD.values(), ids=CHAT_BAD)
async def test_chat_refuses(fake: FakeProvider, body: Any, message: str) -> None:
    answer = await post(fake, "openai-chat", body)
    assert answer.status == 400
    assert set(answer.json["error"]) == {"message", "type", "param", "code"}
    assert message in answer.json["error"]["message"]


CALL: Any = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT: Any = {"type": "function_call_output", "call_id": "c1", "output": "a cat"}
REASONING: Any = {"type": "reasoning", "id": "rs_1", "summary": []}


def response(*items: Any, **more: Any) -> Any:
    return {"model": "fake-1", "input": [*items], **more}


RESPONSES_BAD: dict[str, tuple[Any, int, str]] = {
    "an unknown parameter": (response(USER, messages=[]), 400, "Unknown parameter: 'messages'."),
    "no input": ({"model": "fake-1"}, 400, "Missing required parameter: 'input'."),
    "an unknown item": (response({"type": "tool_result"}), 400, "Invalid value: 'tool_result'"),
    "an unknown role": (response({"role": "tool", "content": "x"}), 400, "Invalid value: 'tool'"),
    "a part of the other side": (
        response({"role": "user", "content": [{"type": "output_text", "text": "x"}]}),
        400,
        "Invalid value: 'output_text'",
    ),
    "an empty array": (response({"role": "user", "content": []}), 400, "minimum length 1"),
    "a call without an output": (response(USER, CALL), 400, "No tool output found for function call c1."),
    "an output without a call": (response(USER, OUTPUT), 400, "No tool call found for function call output"),
    "an output twice": (response(USER, CALL, OUTPUT, OUTPUT), 400, "Duplicate tool output"),
    "a call twice": (response(USER, CALL, CALL, OUTPUT), 400, "Duplicate function call"),
    "an id of another kind": (response(USER, {**CALL, "id": "call_1"}, OUTPUT), 400, "begins with 'fc'"),
    "arguments as an object": (response(USER, {**CALL, "arguments": {}}, OUTPUT), 400, "expected a string"),
    "reasoning that was not stored": (
        response(USER, REASONING, CALL, OUTPUT),
        404,
        "Items are not persisted",
    ),
    "reasoning that was made up": (
        response(USER, {**REASONING, "encrypted_content": "bm8="}, CALL, OUTPUT),
        400,
        "could not be verified",
    ),
    "a bad tool name": (
        response(USER, tools=[{"type": "function", "name": "a b"}]),
        400,
        "does not match pattern",
    ),
    "an unknown include": (response(USER, include=["everything"]), 400, "Invalid value: 'everything'"),
    "too little output": (response(USER, max_output_tokens=1), 400, "Expected a value >= 16"),
}


@pytest.mark.parametrize(("body", "status", "message"), RESPONSES_BAD.values(), ids=RESPONSES_BAD)
async def test_responses_refuse(fake: FakeProvider, body: Any, status: int, message: str) -> None:
    answer = await post(fake, "openai-responses", body)
    assert answer.status == status
    assert message in answer.json["error"]["message"]


async def test_reasoning_needs_its_item_and_the_item_its_reasoning(fake: FakeProvider) -> None:
    more = {"store": False, "include": ["reasoning.encrypted_content"]}
    asked = {"role": "user", "content": "[[think=hm]][[tool=look:{}]]"}
    reasoning, call = (await post(fake, "openai-responses", response(asked, **more))).json["output"]
    output = {**OUTPUT, "call_id": call["call_id"]}
    assert (
        await post(fake, "openai-responses", response(asked, reasoning, call, output, **more))
    ).status == 200
    alone = await post(fake, "openai-responses", response(asked, reasoning, **more))
    assert "without its required following item" in alone.json["error"]["message"]
    without = await post(fake, "openai-responses", response(asked, call, output, **more))
    assert "without its required 'reasoning' item" in without.json["error"]["message"]


async def test_modern_models_take_no_temperature_and_no_max_tokens(fake: FakeProvider) -> None:
    async def code(**more: Any) -> str | None:
        answer = await post(fake, "openai-chat", chat(USER, **more) | {"model": "fake-modern"})
        return None if answer.status == 200 else str(answer.json["error"]["code"])

    assert await code(max_tokens=100) == "unsupported_parameter"
    assert await code(temperature=0.2) == "unsupported_value"
    assert await code(max_completion_tokens=100, temperature=1) is None


async def test_a_prompt_beyond_the_window_is_refused_with_the_code_for_it() -> None:
    async with FakeProvider(models=[Model("tiny", window=50)]) as fake:
        long = {"role": "user", "content": "word " * 100}
        for api, body in (
            ("openai-chat", {"model": "tiny", "messages": [long]}),
            ("openai-responses", {"model": "tiny", "input": [long]}),
        ):
            error = (await post(fake, api, body)).json["error"]
            assert error["code"] == "context_length_exceeded"


async def test_dialects_list_windows_and_tell_thoughts() -> None:
    async with FakeProvider(style="openrouter") as fake:
        asked = chat({"role": "user", "content": "[[think=hm]]"}, reasoning={"effort": "low"})
        message = (await post(fake, "openai-chat", asked)).json["choices"][0]["message"]
        assert message["reasoning"] == "hm"
    async with FakeProvider(style="vllm") as fake:
        message = (await post(fake, "openai-chat", chat({"role": "user", "content": "[[think=hm]]"}))).json
        assert message["choices"][0]["message"]["reasoning_content"] == "hm"


async def test_a_tool_in_a_namespace_is_called_by_both_names(fake: FakeProvider) -> None:
    function = {"type": "function", "name": "look", "parameters": TOOL}
    namespace = {"type": "namespace", "name": "mcp__cat", "tools": [function]}
    asked = {"role": "user", "content": "[[tool=mcp__cat__look:{}]]"}
    body = response(asked, tools=[namespace], client_metadata={"session_id": "s"})

    (call,) = (await post(fake, "openai-responses", body)).json["output"]

    assert (call["name"], call["namespace"], call["arguments"]) == ("look", "mcp__cat", "{}")
