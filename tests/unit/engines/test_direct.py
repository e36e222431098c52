from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from sidecar.engines.base import TurnLimits, TurnRequest
from sidecar.engines.direct import DirectEngine, call_text
from sidecar.model.content import Block
from sidecar.model.failures import Failure
from sidecar.providers.base import ToolCall, UserMessage
from sidecar.tools.base import ToolOutcome
from sidecar.tools.toolbox import CallResult, Toolbox

from .sinks import FunctionTool, ListSink


class SteerSink(ListSink):
    """A sink whose steers arrive while calls run."""

    def __init__(self) -> None:
        super().__init__()
        self._arrived = anyio.Event()

    def add(self, call: ToolCall) -> None:
        self.steers.append([UserMessage([prompt(call)])])
        self._arrived.set()

    async def wait_for_steers(self) -> None:
        await self._arrived.wait()
        self._arrived = anyio.Event()


def prompt(call: ToolCall) -> Block:
    return Block(type="text", text=call_text(call))


def request(run: Callable[[ToolCall], Awaitable[CallResult]], *blocks: Block) -> TurnRequest:
    return TurnRequest(
        prompt=list(blocks),
        model="none",
        effort=None,
        limits=TurnLimits(1),
        tools=Toolbox([FunctionTool("look")]),
        run_tool=run,
        secret="s",
        calls=None,
    )


async def test_a_call_that_arrives_while_another_runs_joins_its_turn() -> None:
    sink, ran = SteerSink(), []
    first, second = ToolCall("c1", "look", {"a": 1}), ToolCall("c2", "look", {})
    met = anyio.Event()

    async def run(call: ToolCall) -> CallResult:
        ran.append(call)
        if call == first:
            sink.add(second)
            await met.wait()
        met.set()
        return CallResult(ToolOutcome(call.id))

    with anyio.fail_after(5):
        reason = await DirectEngine().run(request(run, prompt(first)), sink)

    assert (reason, ran) == ("end_turn", [first, second])


async def test_a_call_that_arrives_at_the_end_still_runs() -> None:
    sink, ran = SteerSink(), []
    late = ToolCall("late", "look", {})

    async def run(call: ToolCall) -> CallResult:
        ran.append(call.id)
        if call.id == "c1":
            sink.steers.append([UserMessage([prompt(late)])])  # the listener does not wake for it
        return CallResult(ToolOutcome(call.id))

    with anyio.fail_after(5):
        await DirectEngine().run(request(run, prompt(ToolCall("c1", "look", {}))), sink)

    assert ran == ["c1", "late"]


async def test_a_prompt_that_is_no_call_ends_the_turn_with_the_reason() -> None:
    async def run(call: ToolCall) -> CallResult:
        raise AssertionError("nothing to run")

    with pytest.raises(Failure, match="another program"):
        await DirectEngine().run(request(run, Block(type="text", text="hello")), SteerSink())
