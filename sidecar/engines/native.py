"""The native engine: one turn from the first request to the model's last word.

Knows no chat and no journal: what happens goes into a `Sink`, and what the user adds meanwhile comes out of it.
"""

from __future__ import annotations

import random
from typing import Protocol

import anyio
import msgspec

from ..model.content import EndReason
from ..model.failures import Failure, ProviderFailed
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
from ..tools.base import Outcome
from ..tools.toolbox import Toolbox

FIRST_WAIT_S = 0.5
"""Before the first retry; each later one waits twice as long, give or take a quarter."""

LONGEST_WAIT_S = 60.0
"""Nobody sits in front of a chat for longer; a provider that wants more is told about instead."""


class TurnRequest(msgspec.Struct, frozen=True):
    """What a turn starts from: the first request to the model, and how many may follow."""

    provider: Provider
    first: ModelRequest
    max_steps: int
    tools: Toolbox


class Sink(Protocol):
    """Where a turn's facts go, in order; awaiting is how a slow disk slows the model down."""

    async def text(self, text: str) -> None: ...
    async def thought(self, text: str) -> None: ...
    async def tool_started(self, call: ToolCall, title: str, kind: str) -> None: ...
    async def tool_ended(self, call: ToolCall, outcome: Outcome) -> None: ...
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
        messages += await _run_tools(request.tools, step.calls, sink)
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


async def _run_tools(tools: Toolbox, calls: list[ToolCall], sink: Sink) -> list[ToolResult]:
    """Run the calls of one step side by side; all that there are only read. The results are in the calls' order."""
    outcomes: dict[str, Outcome] = {}
    failures: list[Failure] = []

    async def run(call: ToolCall) -> None:
        outcomes[call.id] = await tools.run(call)
        try:
            await sink.tool_ended(call, outcomes[call.id])
        except Failure as failure:
            failures.append(failure)

    for call in calls:
        tool = tools.find(call.name)
        await sink.tool_started(
            call, tool.title(call.input) if tool else call.name, tool.kind if tool else "other"
        )
    async with anyio.create_task_group() as tasks:
        for call in calls:
            tasks.start_soon(run, call)
    if failures:
        raise failures[0]
    return [ToolResult(call.id, outcomes[call.id].text, outcomes[call.id].failed) for call in calls]


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
