from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from sidecar.model.failures import ProviderFailed
from sidecar.providers.base import (
    Completion,
    ModelEntry,
    ModelRequest,
    ReplyPart,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    ToolCall,
)
from sidecar.providers.scripted import ScriptedProvider
from tests.support.patience import PATIENCE_S

from .conftest import Script, ask, said, text


@pytest.mark.parametrize(
    ("step", "pieces"),
    [
        ({"text": "One  two\n three "}, ["One", "  two", "\n three", " "]),
        ({"text": "a b", "chunk": "word"}, ["a", " b"]),
        ({"text": "été", "chunk": "char"}, ["é", "t", "é"]),
        ({"text": "abcde", "chunk": 2}, ["ab", "cd", "e"]),
        ({"text": "a b", "chunk": 99, "delayMs": 0}, ["a b"]),
        ({"text": " \n"}, [" \n"]),
        ({"text": ""}, []),
    ],
)
async def test_a_text_comes_in_pieces(script: Script, step: dict[str, Any], pieces: list[str]) -> None:
    chunks, completion = await ask(script({"steps": [step]}), "hi")

    assert (chunks, completion) == ([TextDelta(piece) for piece in pieces], Completion("end_turn"))


async def test_a_thought_comes_before_the_text(script: Script) -> None:
    chunks, _ = await ask(script({"steps": [{"thought": "Hm hm"}, {"text": "Yes"}]}), "hi")

    assert chunks == [ThoughtDelta("Hm"), ThoughtDelta(" hm"), TextDelta("Yes")]


@pytest.mark.parametrize("stop", ["end_turn", "max_tokens", "refusal"])
async def test_a_stop_and_the_usage_are_told_at_the_end(script: Script, stop: str) -> None:
    usage = {"input": 12, "output": 3, "cached": 0}
    _, completion = await ask(script({"steps": [{"usage": usage}, {"text": "a"}, {"stop": stop}]}), "hi")

    assert (completion.stop, completion.usage) == (stop, TokenUsage(12, 3, 0))


async def test_no_steps_are_an_empty_answer(script: Script) -> None:
    assert await ask(script({"steps": []}), "hi") == ([], Completion("end_turn"))


async def test_repetitions_play_within_each_other(script: Script) -> None:
    inner = {"repeat": 2, "steps": [{"text": "b"}]}
    provider = script({"steps": [{"repeat": 3, "steps": [{"text": "a"}, inner]}, {"text": "c"}]})

    assert await text(provider, "hi") == "abbabbabbc"


@pytest.mark.parametrize(
    ("fault", "details"),
    [
        ({"reason": "overloaded"}, {"reason": "overloaded", "retryable": True, "action": "retry"}),
        ({"reason": "bad_key"}, {"reason": "bad_key", "retryable": False, "action": "enter_key"}),
        (
            {"reason": "quota", "retryable": True, "retryAfterMs": 5, "action": "retry"},
            {"reason": "quota", "retryable": True, "retryAfterMs": 5, "action": "retry"},
        ),
    ],
)
async def test_an_error_fails_as_a_provider_does(
    script: Script, fault: dict[str, Any], details: dict[str, Any]
) -> None:
    with pytest.raises(ProviderFailed) as caught:
        await ask(script({"steps": [{"error": {"message": "So it is", **fault}}]}), "hi")

    assert (caught.value.message, caught.value.details()) == (
        "So it is",
        {"name": "provider_error", **details},
    )


async def test_what_was_said_before_an_error_is_said(script: Script) -> None:
    provider = script({"steps": [{"text": "Half"}, {"error": {"reason": "stream_cut"}}]})
    chunks: list[ReplyPart] = []

    async def take(chunk: ReplyPart) -> None:
        chunks.append(chunk)

    with pytest.raises(ProviderFailed, match="The script fails here with stream_cut"):
        await provider.stream(ModelRequest("", [said("hi")]), take)
    assert chunks == [TextDelta("Half")]


async def test_delays_are_slept(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(anyio, "sleep", sleep)
    await ask(script({"steps": [{"delayMs": 200}, {"text": "a b c", "delayMs": 30}]}), "hi")

    assert slept == [0.2, 0.03, 0.03]


async def test_a_hang_ends_when_it_is_cancelled(script: Script) -> None:
    provider = script({"steps": [{"text": "One"}, {"hang": True}]}, {"steps": [{"text": "Next"}]})
    chunks: list[ReplyPart] = []

    async def take(chunk: ReplyPart) -> None:
        chunks.append(chunk)
        scope.cancel()

    with anyio.fail_after(PATIENCE_S), anyio.CancelScope() as scope:
        await provider.stream(ModelRequest("", [said("hi")]), take)

    assert (chunks, scope.cancelled_caught) == ([TextDelta("One")], True)
    assert await text(provider, "hi") == "Next"


@pytest.mark.parametrize("steps", [[{"text": "a"}], [{"text": "a a a a", "chunk": 1}], [{"usage": {}}]])
async def test_a_long_stream_lets_others_run_and_be_cancelled(script: Script, steps: list[Any]) -> None:
    provider = script({"steps": [{"repeat": 1_000_000, "steps": steps}]})
    ended: list[str] = []

    async def others() -> None:
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        ended.append("others")
        tasks.cancel_scope.cancel()

    async def stream() -> None:
        await ask(provider, "hi")
        ended.append("stream")

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream)
            tasks.start_soon(others)

    assert ended == ["others"]


async def test_every_call_has_an_id_of_its_own(script: Script) -> None:
    calls = [{"name": "a"}, {"name": "b", "input": {"x": 1}, "id": "mine"}]
    provider = script({"match": "", "steps": [{"toolCalls": calls}]})

    chunks, completion = await ask(provider, "hi")
    again, _ = await ask(provider, "hi")

    assert (chunks, completion.stop) == (
        [ToolCall("scripted-1", "a", {}), ToolCall("mine", "b", {"x": 1})],
        "tool_calls",
    )
    assert [call.id for call in again if isinstance(call, ToolCall)] == ["scripted-3", "mine-4"]


async def test_the_model_is_listed_by_its_file(script: Script) -> None:
    (entry,) = await script().models()

    assert entry == ModelEntry(
        id=entry.id, name="Script script.json", provider="scripted", takes_tools=True, thinks=True
    )
    assert entry.id.startswith("scripted:")
    assert entry.id.endswith("script.json")


async def test_a_missing_script_is_listed_as_not_available() -> None:
    assert await ScriptedProvider("no/such.json").models() == [
        ModelEntry(
            id="scripted:no/such.json",
            name="Script such.json",
            provider="scripted",
            takes_tools=True,
            thinks=True,
            available=False,
            reason="model_unknown",
        )
    ]
