"""OpenAI's own SDK takes everything that the fake says for the real thing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import openai
import pytest
from openai import AsyncOpenAI

from sidecar.fake_provider import FAULTS, FakeProvider
from tests.support.patience import PATIENCE_S
from tests.support.processes import within

from .images import PNG
from .raw import KEY, TOOL

FUNCTION: Any = {"type": "function", "function": {"name": "look", "parameters": TOOL}}
FLAT: Any = {"type": "function", "name": "look", "parameters": TOOL, "strict": False}
# The SDK stumbles over an event that has no data, which the standard tells it to drop.
HARMLESS = [fault.name for fault in FAULTS.values() if fault.harmless and fault.name != "bare_fields"]


@pytest.fixture
async def client(fake: FakeProvider) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=f"{fake.url}/v1", api_key=KEY, max_retries=0, timeout=PATIENCE_S
    ) as client:
        yield client


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


async def chat_stream(client: AsyncOpenAI, prompt: str, **more: Any) -> list[Any]:
    stream = await client.chat.completions.create(
        model="fake-1", messages=[user(prompt)], stream=True, **more
    )
    return [chunk async for chunk in stream]


async def test_a_chat_stream_has_role_first_then_deltas_finish_and_usage(client: AsyncOpenAI) -> None:
    chunks = await chat_stream(client, "[[n=3]]", stream_options={"include_usage": True})
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].delta.content for chunk in chunks[1:4]] == ["t0000 ", "t0001 ", "t0002 "]
    assert [chunk.choices[0].finish_reason for chunk in chunks[:5]] == [None, None, None, None, "stop"]
    assert (chunks[5].choices, chunks[5].usage.completion_tokens) == ([], 3)
    assert [chunk.usage for chunk in chunks[:5]] == [None] * 5


async def test_usage_is_streamed_only_when_asked_for(client: AsyncOpenAI) -> None:
    assert all(chunk.usage is None and chunk.choices for chunk in await chat_stream(client, "hello"))


async def test_the_sdk_accumulates_a_streamed_chat_with_parallel_tool_calls(client: AsyncOpenAI) -> None:
    prompt = '[[say=Let me look.]][[tool=look:{"where": "door"}]][[tool=look:{"where": "]]"}]]'
    async with client.chat.completions.stream(
        model="fake-1", messages=[user(prompt)], tools=[FUNCTION]
    ) as stream:
        async for _ in stream:
            pass
        choice = (await stream.get_final_completion()).choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me look.")
    assert choice.message.tool_calls is not None
    assert [call.function.arguments for call in choice.message.tool_calls] == [
        '{"where": "door"}',
        '{"where": "]]"}',
    ]


async def test_tool_results_are_quoted_in_the_answer(client: AsyncOpenAI) -> None:
    asked = user('[[tool=look:{"where": "door"}]]')
    first = await client.chat.completions.create(model="fake-1", messages=[asked], tools=[FUNCTION])
    message = first.choices[0].message
    assert message.tool_calls is not None
    result: Any = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "a cat"}
    history: list[Any] = [asked, message.model_dump(exclude_none=True, exclude={"annotations"}), result]
    second = await client.chat.completions.create(model="fake-1", messages=history, tools=[FUNCTION])
    assert second.choices[0].message.content == "The tools said: “a cat”."


async def test_an_image_is_looked_at(client: AsyncOpenAI) -> None:
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PNG.url}}]
    answer = await client.chat.completions.create(model="fake-1", messages=[user(parts)])
    assert answer.choices[0].message.content == "You said: “What is it?”."
    with pytest.raises(openai.BadRequestError):
        await client.chat.completions.create(model="fake-blind", messages=[user(parts)])


async def test_refusals_and_cut_answers_say_so(client: AsyncOpenAI) -> None:
    refused = await client.chat.completions.create(model="fake-1", messages=[user("[[refuse]]")])
    assert refused.choices[0].message.refusal == "I cannot help with that."
    cut = await client.chat.completions.create(
        model="fake-1", messages=[user("[[n=9]]")], max_completion_tokens=2
    )
    assert (cut.choices[0].finish_reason, cut.choices[0].message.content) == ("length", "t0000 t0001 ")


async def test_responses_stream_in_order_with_numbers(client: AsyncOpenAI) -> None:
    stream = await client.responses.create(
        model="fake-1",
        input='[[think=hm]][[say=Yes.]][[tool=look:{"where": "door"}]]',
        reasoning={"summary": "auto", "effort": "low"},
        tools=[FLAT],
        stream=True,
    )
    events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type.removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]


async def test_responses_take_reasoning_calls_and_outputs_back(client: AsyncOpenAI) -> None:
    ask: Any = {
        "model": "fake-1",
        "tools": [FLAT],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    items: list[Any] = [
        user('[[think=hm]][[tool=look:{"where": "door"}]][[next]][[tool=look:{"where": "roof"}]]')
    ]
    for found in ("a cat", "a bird"):
        response = await client.responses.create(input=items, **ask)
        assert [item.type for item in response.output][-1] == "function_call"
        items += [item.model_dump(exclude_none=True) for item in response.output]
        call: Any = response.output[-1]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": found})
    response = await client.responses.create(input=items, **ask)
    assert response.output_text == "The tools said: “a bird”."


async def test_a_stored_response_can_be_gone_on_with(client: AsyncOpenAI) -> None:
    first = await client.responses.create(
        model="fake-1", input='[[tool=look:{"where": "door"}]]', tools=[FLAT]
    )
    call: Any = first.output[0]
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "a cat"}
    second = await client.responses.create(model="fake-1", input=[output], previous_response_id=first.id)
    assert second.output_text == "The tools said: “a cat”."
    with pytest.raises(openai.BadRequestError, match="not found"):
        await client.responses.create(model="fake-1", input="hi", previous_response_id="resp_unknown")


async def test_a_response_that_was_cut_is_incomplete(client: AsyncOpenAI) -> None:
    response = await client.responses.create(model="fake-1", input="[[n=99]]", max_output_tokens=16)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


async def test_models_are_listed_and_found(client: AsyncOpenAI) -> None:
    listed = [model.id async for model in client.models.list()]
    assert listed[:2] == ["fake-1", "fake-modern"]
    assert (await client.models.retrieve("fake-1")).owned_by == "fake"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("bad_request", openai.BadRequestError),
        ("unauthorized", openai.AuthenticationError),
        ("forbidden", openai.PermissionDeniedError),
        ("model_not_found", openai.NotFoundError),
        ("rate_limit", openai.RateLimitError),
        ("server_error", openai.InternalServerError),
        ("close_after_request", openai.APIConnectionError),
        ("error_mid", openai.APIError),
    ],
)
async def test_errors_are_the_sdks_own(client: AsyncOpenAI, fault: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        await chat_stream(client, f"[[say=one two three]][[fault={fault}]]")


async def test_the_sdk_retries_over_faults_that_pass(fake: FakeProvider) -> None:
    async with AsyncOpenAI(base_url=f"{fake.url}/v1", api_key=KEY, max_retries=2) as client:
        answer = await client.chat.completions.create(
            model="fake-1", messages=[user("[[say=ok]][[fault=rate_limit_ms*2]]")]
        )
    assert answer.choices[0].message.content == "ok"
    assert [request.status for request in fake.requests] == [429, 429, 200]


@pytest.mark.parametrize("fault", HARMLESS)
async def test_harmless_oddities_lose_nothing(client: AsyncOpenAI, fault: str) -> None:
    chunks = await chat_stream(client, f"[[say=Grüße, 世界!]][[fault={fault}]]")
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text.lstrip("x") == "Grüße, 世界!"


@pytest.mark.parametrize("fault", [name for name in HARMLESS if FAULTS[name].apis is None])
async def test_harmless_oddities_of_responses_lose_nothing(client: AsyncOpenAI, fault: str) -> None:
    stream = await client.responses.create(
        model="fake-1", input=f"[[say=Grüße!]][[fault={fault}]]", stream=True
    )
    text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
    assert text.lstrip("x") == "Grüße!"


async def test_a_wrong_key_and_an_unknown_model_are_refused(fake: FakeProvider) -> None:
    async with AsyncOpenAI(base_url=f"{fake.url}/v1", api_key="wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError, match="Incorrect API key"):
            await client.models.list()
    async with AsyncOpenAI(base_url=f"{fake.url}/v1", api_key=KEY, max_retries=0) as client:
        with pytest.raises(openai.NotFoundError, match="does not exist"):
            await client.chat.completions.create(model="gpt-nothing", messages=[user("hi")])


async def test_closing_a_stream_is_noticed_at_once_and_connections_are_reused(
    fake: FakeProvider, client: AsyncOpenAI
) -> None:
    for _ in range(2):
        await client.chat.completions.create(model="fake-1", messages=[user("hi")])
    assert [request.connection for request in fake.requests] == [1, 1]
    stream = await client.chat.completions.create(
        model="fake-1", messages=[user("[[n=1000]][[delay=20]]")], stream=True
    )
    await anext(aiter(stream))
    await stream.close()
    with anyio.fail_after(PATIENCE_S), within(1):
        await fake.requests[-1].ended.wait()
    assert fake.requests[-1].closed_early
    assert fake.requests[-1].sent < 20
