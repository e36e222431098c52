"""The native engine between a scripted provider and a list: the one place that knows how a turn is wired."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from sidecar.engines.base import FitNextStep, ModelCalls, Reduce, TurnLimits, TurnRequest
from sidecar.engines.native import NativeEngine
from sidecar.model.content import Block, EndReason
from sidecar.model.failures import ProviderFailed
from sidecar.providers.base import (
    Completion,
    Emit,
    ModelEntry,
    ModelRequest,
    ReplyPart,
    TokenUsage,
    ToolCall,
    ToolSpec,
    UserMessage,
)
from sidecar.tools.base import (
    Intent,
    PlanEntry,
    PlannedCall,
    Tool,
    ToolContext,
    ToolInput,
    ToolKind,
    ToolOutcome,
)
from sidecar.tools.toolbox import CallResult, Toolbox
from sidecar.workspace.paths import Workspace
from tests.support.patience import PATIENCE_S
from tests.unit.tools.context import FolderContext

Fact = tuple[Any, ...]
Reply = Sequence[ReplyPart | Completion | ProviderFailed | anyio.Event]
"""What one request brings: chunks, then how it ends. An event holds it until that is set; without an end it waits until
it is cancelled."""


class ScriptedReplies:
    """A provider that gives the replies one after the other, and keeps the requests."""

    reads_history = True

    def __init__(self, *replies: Reply, retries: int = 0) -> None:
        self._replies = list(replies)
        self.retries = retries
        self.requests: list[ModelRequest] = []
        self.waiting = anyio.Event()
        """Set when a reply is held, or has said all it has and has no end."""

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion:
        self.requests.append(request)
        for part in self._replies.pop(0):
            if isinstance(part, Completion):
                return part
            if isinstance(part, ProviderFailed):
                raise part
            if isinstance(part, anyio.Event):
                self.waiting.set()
                await part.wait()
            else:
                await emit(part)
        self.waiting.set()
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    async def warm(self, model: str) -> None:
        return

    async def models(self) -> list[ModelEntry]:
        return []

    def model_entry(self, model: str) -> ModelEntry:
        return ModelEntry(model, model, "test")

    def offline_entries(self, reason: str) -> list[ModelEntry]:
        return []


class FunctionTool:
    """A tool that runs a function; by default it says its own name."""

    def __init__(
        self,
        name: str,
        function: Callable[[], Awaitable[ToolOutcome]] | None = None,
        *,
        kind: ToolKind = "read",
        runs_alone: bool = False,
    ) -> None:
        self.spec = ToolSpec(name, f"The tool {name}.", {"type": "object"})
        self.kind: ToolKind = kind
        self.runs_alone = runs_alone
        self._function = function or self._say_name

    def title(self, input: ToolInput) -> str:
        return f"{self.spec.name}()"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        return PlannedCall(Intent("read", self.spec.name), self._function)

    async def _say_name(self) -> ToolOutcome:
        return ToolOutcome(self.spec.name)


class ListSink:
    """Keeps the facts of a turn in the order in which they came. `steers` and `continuations` are given out one list
    at a time, as if the user or a hook had added them; `stops_after` names the call that the user stops at."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.steers: list[list[UserMessage]] = []
        self.continuations: list[list[UserMessage]] = []
        self.stops_after: str | None = None
        self.tool_ended_error: Exception | None = None
        self._stopped = False

    async def text(self, text: str) -> None:
        self.facts.append(("text", text))

    async def thought(self, text: str) -> None:
        self.facts.append(("thought", text))

    async def tool_started(self, call: ToolCall, title: str, kind: str) -> None:
        self.facts.append(("tool_started", call.id, title, kind))

    async def tool_ended(self, call: ToolCall, result: CallResult) -> None:
        self.facts.append(("tool_ended", call.id, result.outcome.text))
        self._stopped = self._stopped or call.id == self.stops_after
        if self.tool_ended_error:
            raise self.tool_ended_error

    async def tool_changed(self, call: ToolCall, title: str) -> None:
        self.facts.append(("tool_changed", call.id, title))

    async def tool_output(self, call: ToolCall, text: str) -> None:
        self.facts.append(("tool_output", call.id, text))

    async def plan(self, entries: list[PlanEntry]) -> None:
        self.facts.append(("plan", [entry.content for entry in entries]))

    async def notice(self, code: str, params: dict[str, Any]) -> None:
        self.facts.append(("notice", code, params))

    def set_window(self, used: int, budget: int) -> None:
        self.facts.append(("set_window", used, budget))

    async def limit_reached(self, limit: str) -> None:
        self.facts.append(("limit_reached", limit))

    def stopped(self) -> bool:
        return self._stopped

    async def step_ended(self, usage: TokenUsage) -> None:
        self.facts.append(("step_ended", usage.input, usage.output))

    async def retrying(self, failure: ProviderFailed, attempt: int, wait: float) -> None:
        self.facts.append(("retrying", failure.reason, attempt, wait))

    async def retry_started(self) -> None:
        self.facts.append(("retry_started",))

    async def before_stop(self, said: str) -> list[UserMessage]:
        self.facts.append(("before_stop", said))
        return self.continuations.pop(0) if self.continuations else []

    def take_steers(self) -> list[UserMessage]:
        return self.steers.pop(0) if self.steers else []

    async def wait_for_steers(self) -> None:
        """A list is given out when it is asked for; nothing arrives later."""
        await anyio.sleep_forever()

    def named(self, *names: str) -> list[Fact]:
        """The facts of these kinds."""
        return [fact for fact in self.facts if fact[0] in names]


def user(text: str) -> UserMessage:
    return UserMessage([Block(type="text", text=text)])


def turn_request(
    provider: ScriptedReplies,
    *tools: Tool,
    limits: TurnLimits | None = None,
    fit_next_step: FitNextStep | None = None,
    reduce: Reduce | None = None,
) -> TurnRequest:
    toolbox = Toolbox(tools)

    async def run_tool(call: ToolCall) -> CallResult:
        """Allows every call, changes none, and stores no output."""
        tool = toolbox.find(call.name)
        if tool is None:
            return CallResult(ToolOutcome(toolbox.explain_unknown(call.name), failed=True))
        planned = await tool.prepare(
            ToolInput(call.input), FolderContext(Workspace(os.path.dirname(__file__)), call.id)
        )
        return CallResult(await planned.run())

    return TurnRequest(
        prompt=user("Hello").content,
        model="test:test",
        effort=None,
        limits=limits or TurnLimits(steps=10),
        tools=toolbox,
        run_tool=run_tool,
        secret="secret",
        calls=ModelCalls(provider, ModelRequest("test", [user("Hello")]), fit_next_step, reduce),
    )


async def run_turn(request: TurnRequest, sink: ListSink) -> EndReason:
    with anyio.fail_after(PATIENCE_S):
        return await NativeEngine().run(request, sink)
