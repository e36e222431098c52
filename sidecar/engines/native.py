"""The native engine: one turn from the first request to the model's last word.

Knows no chat and no journal: what happens goes into a `Sink`, and what the user adds meanwhile comes out of it.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from ..model.content import EndReason
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


class TurnRequest(msgspec.Struct, frozen=True):
    """What a turn starts from."""

    provider: Provider
    model: str
    messages: list[Message]
    effort: str | None
    max_steps: int


class Sink(Protocol):
    """Where a turn's facts go, in order; awaiting is how a slow disk slows the model down."""

    async def text(self, text: str) -> None: ...
    async def thought(self, text: str) -> None: ...
    async def tool_started(self, call: ToolCall) -> None: ...
    async def tool_ended(self, call: ToolCall, result: ToolResult) -> None: ...
    async def step_ended(self, usage: TokenUsage) -> None: ...
    def take_steers(self) -> list[UserMessage]: ...


async def run(request: TurnRequest, sink: Sink) -> EndReason:
    """Ask the model until it ends, the user adds nothing more, or the steps run out."""
    messages = list(request.messages)
    for _ in range(request.max_steps):
        step = _Step(sink)
        completion = await _ask(request, messages, step)
        await sink.step_ended(completion.usage)
        messages.append(AssistantMessage("".join(step.texts), step.calls))
        messages += [await _run_tool(call, sink) for call in step.calls]
        steers = sink.take_steers()
        messages += steers
        if completion.stop != "tool_calls" and not steers:
            return completion.stop
    return "max_steps"


async def _ask(request: TurnRequest, messages: list[Message], step: _Step) -> Completion:
    return await request.provider.stream(
        ModelRequest(request.model, list(messages), request.effort), step.take
    )


async def _run_tool(call: ToolCall, sink: Sink) -> ToolResult:
    """Tools are not built in yet, so every call fails in words that the model can act on."""
    await sink.tool_started(call)
    result = ToolResult(call.id, f"There is no tool called {call.name!r}.", failed=True)
    await sink.tool_ended(call, result)
    return result


class _Step(msgspec.Struct):
    """What one request to the model brought."""

    sink: Sink
    texts: list[str] = []
    calls: list[ToolCall] = []

    async def take(self, chunk: Chunk) -> None:
        match chunk:
            case TextDelta(text):
                self.texts.append(text)
                await self.sink.text(text)
            case ThoughtDelta(text):
                await self.sink.thought(text)
            case ToolCall():
                self.calls.append(chunk)
