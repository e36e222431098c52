"""Cached tokens are those that were really sent before."""

from __future__ import annotations

from typing import Any

from sidecar.fake_provider import FakeProvider

from .raw import ask, post

LONG = "The quick brown fox jumps over the lazy dog. " * 200
MARK: Any = {"cache_control": {"type": "ephemeral"}}


async def test_openai_finds_a_beginning_that_it_has_seen(fake: FakeProvider) -> None:
    async def cached(*texts: str) -> int:
        messages = [{"role": "user", "content": text} for text in texts]
        usage = (await post(fake, "openai-chat", {"model": "fake-1", "messages": messages})).json["usage"]
        found: int = usage["prompt_tokens_details"]["cached_tokens"]
        return found

    assert await cached(LONG) == 0
    again = await cached(LONG, "and then?")
    assert again >= 2048
    assert again % 128 == 0
    assert await cached("Something else. " + LONG) == 0


async def test_short_prompts_are_not_cached(fake: FakeProvider) -> None:
    for _ in range(2):
        usage = (await ask(fake, "openai-responses", "hi", stream=False)).json["usage"]
        assert usage["input_tokens_details"]["cached_tokens"] == 0


async def test_anthropic_reads_what_ended_at_a_breakpoint(fake: FakeProvider) -> None:
    async def usage(*messages: Any, system: Any) -> tuple[int, int]:
        body = {"model": "fake-1", "max_tokens": 100, "system": system, "messages": [*messages]}
        found = (await post(fake, "anthropic", body)).json["usage"]
        return found["cache_creation_input_tokens"], found["cache_read_input_tokens"]

    system = [{"type": "text", "text": LONG, **MARK}]
    user = {"role": "user", "content": [{"type": "text", "text": LONG}]}
    written, read = await usage(user, system=system)
    assert (written > 2000, read) == (True, 0)
    assert await usage(user, system=system) == (0, written)
    marked = {"role": "user", "content": [{"type": "text", "text": LONG, **MARK}]}
    more, read = await usage(marked, system=system)
    assert (more > 2000, read) == (True, written)
    assert await usage(marked, system=[{"type": "text", "text": LONG}]) == (0, written + more)


async def test_without_breakpoints_anthropic_caches_nothing(fake: FakeProvider) -> None:
    for _ in range(2):
        usage = (await ask(fake, "anthropic", LONG, stream=False)).json["usage"]
        assert (usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]) == (0, 0)


async def test_usage_can_be_named_in_the_prompt(fake: FakeProvider) -> None:
    usage = (await ask(fake, "anthropic", "[[usage=100,7,60]]", stream=False)).json["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (40, 60, 7)
