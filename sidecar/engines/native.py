"""The native engine: one turn from the first request to the model's last word.

Knows no chat and no journal: what happens goes into a `Sink`, and what the user adds meanwhile comes out of it.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
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
from ..tools.toolbox import Clerk, Result, Toolbox
from .repeats import Repeats

FIRST_WAIT_S = 0.5
"""Before the first retry; each later one waits twice as long, give or take a quarter."""

LONGEST_WAIT_S = 60.0
"""Nobody sits in front of a chat for longer; a provider that wants more is told about instead."""


class Limits(msgspec.Struct, frozen=True):
    """How far a turn may go: requests to the model, seconds, tokens in and out; None is no limit."""

    steps: int
    seconds: float | None = None
    tokens: int | None = None


Refit = Callable[[list[Message]], Awaitable[list[Message]]]


class TurnRequest(msgspec.Struct, frozen=True):
    """What a turn starts from: the first request to the model, and how many may follow."""

    provider: Provider
    first: ModelRequest
    limits: Limits
    tools: Toolbox
    refit: Refit | None = None
    """Makes what is to be sent fit, before every request but the first."""


class Sink(Protocol):
    """Where a turn's facts go, in order; awaiting is how a slow disk slows the model down."""

    async def text(self, text: str) -> None: ...
    async def thought(self, text: str) -> None: ...
    async def tool_started(self, call: ToolCall, title: str, kind: str) -> None: ...
    async def tool_ended(self, call: ToolCall, result: Result) -> None: ...
    def clerk(self, call: ToolCall) -> Clerk: ...
    async def limit_reached(self, limit: str) -> None: ...
    def stopped(self) -> bool: ...
    async def step_ended(self, usage: TokenUsage) -> None: ...
    async def retrying(self, failure: ProviderFailed, attempt: int, wait: float) -> None: ...
    async def asking_again(self) -> None: ...
    async def stopping(self, said: str) -> list[UserMessage]: ...
    def take_steers(self) -> list[UserMessage]: ...


async def run(request: TurnRequest, sink: Sink) -> EndReason:
    """Ask the model until it ends, the user adds nothing more, or a limit is reached."""
    messages = list(request.first.messages)
    repeats = Repeats()
    meter = _Meter(request.limits, anyio.current_time())
    while True:
        step, completion = await _ask(request, messages, sink)
        await sink.step_ended(completion.usage)
        messages.append(AssistantMessage("".join(step.texts), step.calls, completion.verbatim))
        messages += await _run_tools(request.tools, step.calls, sink, repeats)
        steers = sink.take_steers()
        messages += steers
        if sink.stopped():
            return "cancelled"
        if completion.stop != "tool_calls" and not steers:
            more = await _before_the_end(completion, step, sink)
            if not more:
                return completion.stop
            messages += more
        limit = meter.reached(completion.usage)
        if limit:
            await sink.limit_reached(limit)
            return "max_tokens" if limit == "tokens" else "max_steps"
        if request.refit:
            messages = await request.refit(messages)


async def _before_the_end(completion: Completion, step: _Step, sink: Sink) -> list[UserMessage]:
    """What keeps a model that would stop: what it is asked for, and what the user has added meanwhile."""
    if completion.stop != "end_turn":
        return []
    more = await sink.stopping("".join(step.texts))
    return [*more, *sink.take_steers()]


class _Meter(msgspec.Struct):
    """What a turn has used of its limits."""

    limits: Limits
    started: float
    steps: int = 0
    tokens: int = 0

    def reached(self, usage: TokenUsage) -> str | None:
        """The name of the limit that this step has reached."""
        self.steps += 1
        self.tokens += (usage.input or 0) + (usage.output or 0)
        if self.steps >= self.limits.steps:
            return "steps"
        if self.limits.tokens is not None and self.tokens >= self.limits.tokens:
            return "tokens"
        if self.limits.seconds is not None and anyio.current_time() - self.started >= self.limits.seconds:
            return "time"
        return None


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


async def _run_tools(tools: Toolbox, calls: list[ToolCall], sink: Sink, repeats: Repeats) -> list[ToolResult]:
    """Run the calls of one step: those that only look side by side, the others alone. The results are in order."""
    results: dict[str, Result] = {}
    for group in _groups(tools, calls):
        for call in group:
            tool = tools.find(call.name)
            title, kind = (tool.title(call.input), tool.kind) if tool else (call.name, "other")
            await sink.tool_started(call, title, kind)
        results |= await _run_group(tools, group, sink, repeats)
        if sink.stopped():
            break
    return [_told(call, results[call.id]) for call in calls if call.id in results]


def _told(call: ToolCall, result: Result) -> ToolResult:
    outcome = result.outcome
    return ToolResult(call.id, outcome.text, outcome.failed or outcome.denied, result.source)


def _groups(tools: Toolbox, calls: list[ToolCall]) -> list[list[ToolCall]]:
    """The calls in order, those that may run side by side together."""
    groups: list[list[ToolCall]] = []
    joins = False
    for call in calls:
        tool = tools.find(call.name)
        alone = tool is not None and tool.alone
        if joins and not alone:
            groups[-1].append(call)
        else:
            groups.append([call])
        joins = not alone
    return groups


async def _run_group(
    tools: Toolbox, calls: list[ToolCall], sink: Sink, repeats: Repeats
) -> dict[str, Result]:
    results: dict[str, Result] = {}
    failures: list[Failure] = []

    async def run(call: ToolCall) -> None:
        result = repeats.refusal(call) or await tools.run(call, sink.clerk(call))
        results[call.id] = result
        tool = tools.find(call.name)
        repeats.note(
            call, result.outcome, changes=tool is not None and tool.kind in ("edit", "delete", "move")
        )
        try:
            await sink.tool_ended(call, result)
        except Failure as failure:
            failures.append(failure)

    async with anyio.create_task_group() as tasks:
        for call in calls:
            tasks.start_soon(run, call)
    if failures:
        raise failures[0]
    return results


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
