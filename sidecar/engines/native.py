"""The native engine: runs one turn from the first request to the model's final answer.

Knows no chat and no journal: it reports to a `Sink`, and takes from it what the user adds while the turn runs.
"""

from __future__ import annotations

import random

import anyio
import msgspec

from ..model.content import EndReason
from ..model.failures import Failure, ProviderFailed
from ..providers.base import (
    AssistantMessage,
    Completion,
    Message,
    ModelRequest,
    ReplyPart,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ..tools.toolbox import CallResult, Toolbox
from .base import EngineChat, ModelCalls, Sink, TurnLimits, TurnRequest
from .repeats import RepeatGuard
from .results import tool_result

FIRST_WAIT_S = 0.5
"""Before the first retry; each later one waits twice as long, give or take a quarter."""

LONGEST_WAIT_S = 60.0
"""The longest delay before a retry; a provider that asks for more fails the turn instead."""


class NativeEngine:
    """Calls the provider and runs the tools that the model calls. Each turn brings all that it needs."""

    async def open(self, chat: EngineChat) -> None:
        """Prepare nothing: it has no state of its own."""

    async def run(self, turn: TurnRequest, sink: Sink) -> EndReason:
        """Call the model until it stops and the user adds nothing more, or a limit is reached."""
        if turn.calls is None:
            raise ValueError("the native engine calls a provider: `calls` is missing")
        return await _run(turn, turn.calls, sink)

    async def close(self) -> None:
        """End nothing."""


async def _run(request: TurnRequest, calls: ModelCalls, sink: Sink) -> EndReason:
    model_request = calls.first
    repeats = RepeatGuard()
    meter = _LimitMeter(request.limits, anyio.current_time())
    while True:
        step, completion, model_request = await _request_step(calls, model_request, sink)
        await sink.step_ended(completion.usage)
        reply = AssistantMessage("".join(step.texts), step.calls, completion.verbatim)
        messages: list[Message] = [*model_request.messages, reply]
        # Also after a stop for another reason than calls: every call in the history needs a result, or
        # providers refuse the next request.
        messages += await _run_tools(request, step.calls, sink, repeats)
        steers = sink.take_steers()
        messages += steers
        if sink.stopped():
            return "cancelled"
        if completion.stop != "tool_calls" and not steers:
            more = await _continuation_messages(completion, step, sink)
            if not more:
                return completion.stop
            messages += more
        limit = meter.limit_reached_by(completion.usage)
        if limit:
            await sink.limit_reached(limit)
            return "max_tokens" if limit == "tokens" else "max_steps"
        model_request = msgspec.structs.replace(model_request, messages=messages)
        # The tools may have returned more than the window has left.
        if calls.fit_next_step:
            model_request = await calls.fit_next_step(model_request)


async def _continuation_messages(
    completion: Completion, step: _StepCollector, sink: Sink
) -> list[UserMessage]:
    """The messages that continue a turn when the model would stop: from hooks, and from the user."""
    if completion.stop != "end_turn":
        return []
    more = await sink.before_stop("".join(step.texts))
    return [*more, *sink.take_steers()]


class _LimitMeter(msgspec.Struct):
    """What a turn has used of its limits."""

    limits: TurnLimits
    started: float
    steps: int = 0
    tokens: int = 0

    def limit_reached_by(self, usage: TokenUsage) -> str | None:
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


async def _request_step(
    calls: ModelCalls, model_request: ModelRequest, sink: Sink
) -> tuple[_StepCollector, Completion, ModelRequest]:
    """Send a request, with retries, until the model answers; also return the request that succeeded. Output that was
    shown cannot be withdrawn, so a failure after the first token is final.
    """
    attempt = 0
    while True:
        step = _StepCollector(sink)
        try:
            completion = await calls.provider.stream(model_request, step.take)
        except ProviderFailed as failure:
            wait = None if step.shown else _retry_delay(failure, attempt + 1, calls.provider.retries)
            less = await _reduced(calls, model_request, failure, step, wait is None)
            if less is not None:
                model_request = less
                continue
            if wait is None:
                raise
            attempt += 1
            await sink.retrying(failure, attempt, wait)
            await anyio.sleep(wait)
            await sink.retry_started()
            continue
        # A refusal without a word is often about something that an earlier turn has brought along.
        is_refused = completion.stop == "refusal" and not step.texts and not step.calls
        less = await _reduced(calls, model_request, _declined(), step, True) if is_refused else None
        if less is None:
            return step, completion, model_request
        model_request = less


async def _reduced(
    calls: ModelCalls, request: ModelRequest, failure: ProviderFailed, step: _StepCollector, is_final: bool
) -> ModelRequest | None:
    """The request without what may have been refused. What was shown cannot be withdrawn, so nothing is sent again."""
    return await calls.reduce(request, failure, is_final) if calls.reduce and not step.shown else None


def _declined() -> ProviderFailed:
    return ProviderFailed("refused", "The model declined to answer")


def _retry_delay(failure: ProviderFailed, attempt: int, retries: int) -> float | None:
    """Seconds until the next attempt, with jitter: several chats that failed together must not come back together.
    None when there is no next attempt.
    """
    if not failure.retryable or failure.is_final or attempt > retries:
        return None
    if failure.retry_after_ms is not None:
        wait = failure.retry_after_ms / 1000
    else:
        wait = FIRST_WAIT_S * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
    return wait if wait <= LONGEST_WAIT_S else None


async def _run_tools(
    request: TurnRequest, calls: list[ToolCall], sink: Sink, repeats: RepeatGuard
) -> list[ToolResult]:
    """Run the calls of one step: those that only read concurrently, the others alone. The results are in order."""
    tools = request.tools
    results: dict[str, CallResult] = {}
    for group in _groups(tools, calls):
        for call in group:
            # All of a group are announced before any runs, in the model's order: the app shows them in that
            # order.
            await sink.tool_started(call, *tools.title_and_kind(call))
        results |= await _run_group(request, group, sink, repeats)
        if sink.stopped():
            break
    return [_to_tool_result(request.secret, call, results[call.id]) for call in calls if call.id in results]


def _to_tool_result(secret: str, call: ToolCall, result: CallResult) -> ToolResult:
    outcome = result.outcome
    return tool_result(
        secret,
        call.id,
        call.name,
        outcome.text,
        failed=outcome.failed,
        denied=outcome.denied,
        source=result.source,
        content=result.content,
    )


def _groups(tools: Toolbox, calls: list[ToolCall]) -> list[list[ToolCall]]:
    """Group the calls, in order: calls that may run concurrently are in one group."""
    groups: list[list[ToolCall]] = []
    joins = False
    for call in calls:
        tool = tools.find(call.name)
        runs_alone = tool is not None and tool.runs_alone
        if joins and not runs_alone:
            groups[-1].append(call)
        else:
            groups.append([call])
        joins = not runs_alone
    return groups


async def _run_group(
    request: TurnRequest, calls: list[ToolCall], sink: Sink, repeats: RepeatGuard
) -> dict[str, CallResult]:
    results: dict[str, CallResult] = {}
    failures: list[Failure] = []

    async def run(call: ToolCall) -> None:
        result = repeats.refusal(call) or await request.run_tool(call)
        results[call.id] = result
        tool = request.tools.find(call.name)
        repeats.note(
            call, result.outcome, changes=tool is not None and tool.kind in ("edit", "delete", "move")
        )
        try:
            await sink.tool_ended(call, result)
        except Failure as failure:
            # Collected, not raised: raising would cancel the concurrent calls, whose edits may be half written.
            failures.append(failure)

    async with anyio.create_task_group() as tasks:
        for call in calls:
            tasks.start_soon(run, call)
    if failures:
        raise failures[0]
    return results


class _StepCollector(msgspec.Struct):
    """What one request to the model returned."""

    sink: Sink
    texts: list[str] = []
    calls: list[ToolCall] = []
    shown: bool = False

    async def take(self, chunk: ReplyPart) -> None:
        match chunk:
            case TextDelta(text):
                # Set before the sink is awaited: a failure while the text is stored must not lead to a second
                # attempt.
                self.shown = True
                self.texts.append(text)
                await self.sink.text(text)
            case ThoughtDelta(text):
                self.shown = True
                await self.sink.thought(text)
            case ToolCall():
                self.calls.append(chunk)
