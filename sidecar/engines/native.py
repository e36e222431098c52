"""The native engine: one turn from the first request to the model's last word.

Knows no chat and no journal: what happens goes into a `Sink`, and what the user adds meanwhile comes out of it.
"""

from __future__ import annotations

import random
from typing import Protocol

import anyio
import msgspec

from ..model.content import EndReason
from ..model.failures import ProviderFailed
from ..providers.base import (
    AssistantMessage,
    Chunk,
    Completion,
    Message,
    ModelRequest,
    Provider,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    ToolCall,
    ToolResult,
    UserMessage,
)

FIRST_WAIT_S = 0.5
"""Before the first retry; each later one waits twice as long, give or take a quarter."""

LONGEST_WAIT_S = 60.0
"""Nobody sits in front of a chat for longer; a provider that wants more is told about instead."""


class TurnRequest(msgspec.Struct, frozen=True):
    """What a turn starts from: the first request to the model, and how many may follow."""

    provider: Provider
    first: ModelRequest
    max_steps: int


class Sink(Protocol):
    """Where a turn's facts go, in order; awaiting is how a slow disk slows the model down."""

    async def text(self, text: str) -> None: ...
    async def thought(self, text: str) -> None: ...
    async def tool_started(self, call: ToolCall) -> None: ...
    async def tool_ended(self, call: ToolCall, result: ToolResult) -> None: ...
    async def step_ended(self, usage: TokenUsage) -> None: ...
    async def retrying(self, failure: ProviderFailed, attempt: int, wait: float) -> None: ...
    async def asking_again(self) -> None: ...
    def take_steers(self) -> list[UserMessage]: ...


async def run(request: TurnRequest, sink: Sink) -> EndReason:
    """Ask the model until it ends, the user adds nothing more, or the steps run out."""
    messages = list(request.first.messages)
    for _ in range(request.max_steps):
        step, completion = await _ask(request, messages, sink)
        await sink.step_ended(completion.usage)
        messages.append(AssistantMessage("".join(step.texts), step.calls, completion.verbatim))
        messages += [await _run_tool(call, sink) for call in step.calls]
        steers = sink.take_steers()
        messages += steers
        if completion.stop != "tool_calls" and not steers:
            return completion.stop
    return "max_steps"


async def _ask(request: TurnRequest, messages: list[Message], sink: Sink) -> tuple[_Step, Completion]:
    """Ask until the model answers. What was shown cannot be taken back, so then a failure is final."""
    asked = msgspec.structs.replace(request.first, messages=list(messages))
    attempt = 0
    while True:
        step = _Step(sink)
        try:
            return step, await request.provider.stream(asked, step.take)
        except ProviderFailed as failure:
            attempt += 1
            wait = _wait(failure, attempt, request.provider.retries)
            if wait is None or step.shown:
                raise
            await sink.retrying(failure, attempt, wait)
            await anyio.sleep(wait)
            await sink.asking_again()


def _wait(failure: ProviderFailed, attempt: int, retries: int) -> float | None:
    """Seconds until the next try; None when there is none."""
    if not failure.retryable or attempt > retries:
        return None
    if failure.retry_after_ms is not None:
        wait = failure.retry_after_ms / 1000
    else:
        wait = FIRST_WAIT_S * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
    return wait if wait <= LONGEST_WAIT_S else None


async def _run_tool(call: ToolCall, sink: Sink) -> ToolResult:
    """Tools are not built in yet, so every call fails in words that the model can act on."""
    await sink.tool_started(call)
    words = call.problem or f"There is no tool called {call.name!r}."
    result = ToolResult(call.id, words, failed=True)
    await sink.tool_ended(call, result)
    return result


class _Step(msgspec.Struct):
    """What one request to the model brought."""

    sink: Sink
    texts: list[str] = []
    calls: list[ToolCall] = []
    shown: bool = False

    async def take(self, chunk: Chunk) -> None:
        match chunk:
            case TextDelta(text):
                self.shown = True
                self.texts.append(text)
                await self.sink.text(text)
            case ThoughtDelta(text):
                self.shown = True
                await self.sink.thought(text)
            case ToolCall():
                self.calls.append(chunk)
