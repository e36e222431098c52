"""Anthropic's own SDK takes everything that the fake says for the real thing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import anyio
import pytest
from anthropic import AsyncAnthropic

from sidecar.fake_provider import FAULTS, FakeProvider
from tests.support.patience import PATIENCE_S
from tests.support.processes import within

from .images import PNG
from .raw import KEY, TOOL

LOOK: Any = {"name": "look", "input_schema": TOOL}
BUDGET: Any = {"type": "enabled", "budget_tokens": 1024}
HARMLESS = [fault.name for fault in FAULTS.values() if fault.harmless and fault.apis is None]


@pytest.fixture
async def client(fake: FakeProvider) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=fake.url, api_key=KEY, max_retries=0, timeout=PATIENCE_S) as client:
        yield client


def asking(content: Any, **more: Any) -> Any:
    messages = [{"role": "user", "content": content}]
    return {"model": "fake-1", "max_tokens": 4096, "messages": messages, **more}


async def test_a_stream_has_all_events_in_their_order(client: AsyncAnthropic) -> None:
    stream = await client.messages.create(
        **asking('[[think=hm]][[say=Yes.]][[tool=look:{"a": 1}]]', thinking=BUDGET, tools=[LOOK]), stream=True
    )
    events = [event async for event in stream]
    assert [(event.type, getattr(event, "index", None)) for event in events] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
    ]


async def test_a_tool_loop_with_thinking_goes_round(client: AsyncAnthropic) -> None:
    request = asking('[[think=Look first.]][[tool=look:{"where": "door"}]]', tools=[LOOK], thinking=BUDGET)
    async with client.messages.stream(**request) as stream:
        message = await stream.get_final_message()
    assert message.stop_reason == "tool_use"
    assert [block.type for block in message.content] == ["thinking", "tool_use"]
    use: Any = message.content[1]
    assert use.input == {"where": "door"}
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "a cat"}
    content = [block.model_dump(exclude_none=True) for block in message.content]
    request["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    answer: Any = (await client.messages.create(**request)).content[-1]
    assert answer.text == "The tools said: “a cat”."


async def test_omitted_thinking_comes_with_its_signature_alone(client: AsyncAnthropic) -> None:
    adaptive: Any = {"type": "adaptive", "display": "omitted"}
    async with client.messages.stream(**asking("[[think=secret]][[say=ok]]", thinking=adaptive)) as stream:
        thought: Any = (await stream.get_final_message()).content[0]
    assert (thought.type, thought.thinking, bool(thought.signature)) == ("thinking", "", True)


async def test_an_image_and_a_system_prompt_are_taken(client: AsyncAnthropic) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": PNG.type, "data": PNG.data}}
    request = asking([{"type": "text", "text": "What is it?"}, image], system="Be brief.")
    answer: Any = (await client.messages.create(**request)).content[0]
    assert answer.text == "You said: “What is it?”."


async def test_stop_reasons_are_told_apart(client: AsyncAnthropic) -> None:
    async def reason(prompt: str, **more: Any) -> str:
        message = await client.messages.create(**{**asking(prompt), **more})
        return str(message.stop_reason)

    assert await reason("hi") == "end_turn"
    assert await reason("[[refuse]]") == "refusal"
    assert await reason("[[n=9]]", max_tokens=2) == "max_tokens"
    assert await reason("[[max_tokens]]") == "max_tokens"
    assert await reason("[[tool=look:{}]]") == "tool_use"


async def test_models_tell_their_windows(client: AsyncAnthropic) -> None:
    models = [model async for model in client.models.list(limit=2)]
    assert [(model.id, model.max_input_tokens, model.max_tokens) for model in models][:3] == [
        ("fake-1", 200_000, 64_000),
        ("fake-modern", 1_000_000, 128_000),
        ("fake-small", 8_192, 2_048),
    ]
    model = await client.models.retrieve("fake-small")
    assert model.capabilities is not None
    assert model.capabilities.image_input.supported


async def test_tokens_are_counted(client: AsyncAnthropic) -> None:
    count = await client.messages.count_tokens(
        model="fake-1", messages=[{"role": "user", "content": "x" * 400}]
    )
    assert count.input_tokens > 100


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("bad_request", anthropic.BadRequestError),
        ("unauthorized", anthropic.AuthenticationError),
        ("forbidden", anthropic.PermissionDeniedError),
        ("model_not_found", anthropic.NotFoundError),
        ("rate_limit_seconds", anthropic.RateLimitError),
        ("server_error", anthropic.InternalServerError),
        ("overloaded", anthropic.APIStatusError),
        ("reset_before_headers", anthropic.APIConnectionError),
        ("error_mid", anthropic.APIStatusError),
    ],
)
async def test_errors_are_the_sdks_own(client: AsyncAnthropic, fault: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        async with client.messages.stream(**asking(f"[[say=one two three]][[fault={fault}]]")) as stream:
            await stream.get_final_message()


@pytest.mark.parametrize("fault", HARMLESS)
async def test_harmless_oddities_lose_nothing(client: AsyncAnthropic, fault: str) -> None:
    async with client.messages.stream(**asking(f"[[say=Grüße, 世界!]][[fault={fault}]]")) as stream:
        assert (await stream.get_final_text()).lstrip("x") == "Grüße, 世界!"


async def test_sampling_parameters_belong_to_the_old_version_only(
    fake: FakeProvider, client: AsyncAnthropic
) -> None:
    with pytest.raises(anthropic.BadRequestError, match="temperature: Extra inputs are not permitted"):
        await client.messages.create(**asking("hi"), extra_body={"temperature": 1})
    await client.messages.create(
        **asking("hi"), extra_body={"temperature": 1}, extra_headers={"anthropic-version": "2023-06-01"}
    )


async def test_a_wrong_key_is_refused(fake: FakeProvider) -> None:
    async with AsyncAnthropic(base_url=fake.url, api_key="wrong", max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
            await client.messages.create(**asking("hi"))


async def test_leaving_a_stream_closes_it(fake: FakeProvider, client: AsyncAnthropic) -> None:
    async with client.messages.stream(**asking("[[n=1000]][[delay=20]]")) as stream:
        await anext(aiter(stream))
    with anyio.fail_after(PATIENCE_S), within(1):
        await fake.requests[-1].ended.wait()
    assert fake.requests[-1].closed_early
