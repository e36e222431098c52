"""The calls of one connection. Each runs in the task group of the server, and its caller only waits for it."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from ...model import JsonObject
from ...system.lazy import lazy_module
from ..base import ShowOutput, ToolOutcome
from .offers import clean_text

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from . import session as sdk
else:
    sdk = lazy_module("sidecar.tools.mcp.session")

logger = logging.getLogger(__name__)

MAX_CALLS = 64
"""Calls in flight at one server, including cancelled ones whose cancellation is being sent."""

MAX_PROGRESS = 16
"""Lines of progress that are buffered for the client; more are dropped."""

MAX_LINE = 500
"""Characters of one line of progress."""


class McpCall:
    """One call; `outcome` stays None when the connection was lost or the caller was cancelled."""

    def __init__(self, name: str, arguments: JsonObject) -> None:
        self.name = name
        self.arguments = arguments
        self.outcome: ToolOutcome | None = None
        self.scope = anyio.CancelScope()
        self.said, self.lines = anyio.create_memory_object_stream[str](MAX_PROGRESS)

    async def add_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Add a progress message; the server decides how often, so this never waits."""
        line = message or (f"{progress:g} of {total:g}" if total else f"{progress:g}")
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.said.send_nowait(f"{clean_text(line)[:MAX_LINE]}\n")


class Calls:
    """`over` is set when the connection has ended; `why` then holds the reason."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.why = "the connection ended"
        self.count = 0
        self._session: ClientSession | None = None
        self._tasks: TaskGroup | None = None

    @property
    def is_full(self) -> bool:
        return self.count >= MAX_CALLS

    def open(self, session: ClientSession, tasks: TaskGroup) -> None:
        self._session, self._tasks = session, tasks

    def end(self, why: str) -> None:
        self.why = why
        self.over.set()

    async def follow(self, call: McpCall, show: ShowOutput) -> None:
        """Start the call and show its progress until it ends; a cancelled caller returns at once, and the call is
        cancelled.
        """
        assert self._tasks is not None
        self.count += 1
        self._tasks.start_soon(self._call_tool, call)
        try:
            with call.lines:
                async for line in call.lines:
                    await show(line)
        finally:
            call.scope.cancel()

    async def _call_tool(self, call: McpCall) -> None:
        assert self._session is not None
        try:
            with call.said, call.scope:
                call.outcome = await sdk.call_tool(
                    self._session, call.name, call.arguments, call.add_progress
                )
        except sdk.ConnectionLost:
            pass
        except Exception:
            # An exception here would cancel the parallel calls, which share the task group.
            logger.exception("a call of an MCP tool failed")
            call.outcome = ToolOutcome("The call failed inside the sidecar.", failed=True)
        finally:
            self.count -= 1
