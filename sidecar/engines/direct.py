"""The direct engine: runs tool calls that the client makes itself, without a model.

Each call is the text of a prompt (`call_text`). Calls that arrive while others run join their turn as steers, so that
an outside agent can have several calls in progress.
"""

from __future__ import annotations

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..model import JsonObject
from ..model.content import Block, EndReason
from ..model.failures import Failure
from ..providers.base import ToolCall
from .base import EngineChat, Sink, TurnRequest


class _CallText(msgspec.Struct, frozen=True):
    """A call as the text of a prompt holds it."""

    call: str
    tool: str
    arguments: JsonObject


def call_text(call: ToolCall) -> str:
    """The text of the prompt that makes this call."""
    return msgspec.json.encode(_CallText(call.id, call.name, call.input)).decode()


class DirectEngine:
    """Runs the calls of a turn concurrently, and ends the turn when no call runs or waits."""

    async def open(self, chat: EngineChat) -> None:
        """Prepare nothing: it has no state of its own."""

    async def run(self, turn: TurnRequest, sink: Sink) -> EndReason:
        blocks = turn.prompt
        while blocks:
            await _TurnCalls(turn, sink).run(_calls_in(blocks))
            # A call that arrived after the last one ended, while the listener was being cancelled.
            blocks = _steered_blocks(sink)
        return "cancelled" if sink.stopped() else "end_turn"

    async def close(self) -> None:
        """End nothing."""


class _TurnCalls:
    """The calls in progress of one turn."""

    def __init__(self, turn: TurnRequest, sink: Sink) -> None:
        self._turn = turn
        self._sink = sink
        self._running = 0
        self._idle = anyio.Event()

    async def run(self, calls: list[ToolCall]) -> None:
        """Run these calls, and those that arrive until none runs."""
        if not calls:
            return
        async with anyio.create_task_group() as tasks:
            await self._start(calls, tasks)
            tasks.start_soon(self._listen, tasks)
            while self._running:  # a call may have arrived since the last one ended
                self._idle = anyio.Event()
                await self._idle.wait()
            tasks.cancel_scope.cancel()

    async def _listen(self, tasks: TaskGroup) -> None:
        while True:
            await self._sink.wait_for_steers()
            await self._start(_calls_in(_steered_blocks(self._sink)), tasks)

    async def _start(self, calls: list[ToolCall], tasks: TaskGroup) -> None:
        self._running += len(calls)
        for call in calls:
            await self._sink.tool_started(call, *self._turn.tools.title_and_kind(call))
            tasks.start_soon(self._run, call)

    async def _run(self, call: ToolCall) -> None:
        result = await self._turn.run_tool(call)
        await self._sink.tool_ended(call, result)
        self._running -= 1
        if not self._running:
            self._idle.set()


def _steered_blocks(sink: Sink) -> list[Block]:
    return [block for steer in sink.take_steers() for block in steer.content]


def _calls_in(blocks: list[Block]) -> list[ToolCall]:
    return [_decode_call(block) for block in blocks]


def _decode_call(block: Block) -> ToolCall:
    try:
        found = msgspec.json.decode(block.text or "", type=_CallText)
    except msgspec.DecodeError as error:
        raise Failure(
            "precondition_failed", "This turn ran calls of another program; only that program can make them"
        ) from error
    return ToolCall(found.call, found.tool, found.arguments)
