"""The calls of one connection while it lasts. Each runs in the server's task group, and its caller only follows it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from ..base import Outcome
from .offers import well_formed
from .session import Lost, ask

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

logger = logging.getLogger(__name__)

MAX_CALLS = 64
"""In flight at one server; those that were cancelled and are being withdrawn count."""

MAX_PROGRESS = 16
"""Lines of progress that wait for the user's screen; more are dropped."""

MAX_LINE = 500
"""Of one line of progress."""

Show = Callable[[str], Awaitable[None]]


class Call:
    """One call; `outcome` stays None when the connection was lost or nobody waits any more."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self.name = name
        self.arguments = arguments
        self.outcome: Outcome | None = None
        self.scope = anyio.CancelScope()
        self.said, self.lines = anyio.create_memory_object_stream[str](MAX_PROGRESS)

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        """Something of its progress; the server decides how often, so nothing waits here."""
        line = message or (f"{progress:g} of {total:g}" if total else f"{progress:g}")
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.said.send_nowait(f"{well_formed(line)[:MAX_LINE]}\n")


class Calls:
    """`over` is set when the connection has ended, `why` then says what happened to it."""

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

    async def follow(self, call: Call, show: Show) -> None:
        """Start the call and show its progress until it is over; who is cancelled withdraws it and leaves at once."""
        assert self._tasks is not None
        self.count += 1
        self._tasks.start_soon(self._carry_out, call)
        try:
            with call.lines:
                async for line in call.lines:
                    await show(line)
        finally:
            call.scope.cancel()

    async def _carry_out(self, call: Call) -> None:
        assert self._session is not None
        try:
            with call.said, call.scope:
                call.outcome = await ask(self._session, call.name, call.arguments, call.note)
        except Lost:
            pass
        except Exception:
            # It must not end the calls beside it, which share a task group with it.
            logger.exception("a call of an MCP tool failed")
            call.outcome = Outcome("The call failed inside the sidecar.", failed=True)
        finally:
            self.count -= 1
