"""Tool calls that a client makes itself, as an outside agent does over MCP: who waits for each result in this process.

The journal stores the calls and their results like those of a model. Only calls that are registered here run, so a
call from a journal or an imported chat never does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from ...providers.base import ToolCall
from ...tools.base import ShowOutput, ToolOutcome
from ...tools.toolbox import CallResult
from .client_app import ClientApp

CANCELLED = CallResult(ToolOutcome("Cancelled by the client.", failed=True))
ORPHANED = CallResult(
    ToolOutcome("The program that made this call does not wait for it any more.", failed=True)
)


class DirectCall:
    """One call in progress. `app` answers its questions; `show` gets what it prints while it runs."""

    def __init__(self, call: ToolCall, app: ClientApp, show: ShowOutput) -> None:
        self.call = call
        self.app = app
        self.show = show
        self._scope = anyio.CancelScope()
        self.result: CallResult | None = None
        self._ended = anyio.Event()

    def cancel(self) -> None:
        """End the call; its result says so."""
        self._scope.cancel()

    async def run(self, run: Callable[[], Awaitable[CallResult]]) -> CallResult:
        """Run the call and keep its result."""
        result = CANCELLED
        try:
            with self._scope:
                result = await run()
        finally:
            self.result = result
            self._ended.set()
        return result

    async def wait(self) -> None:
        """Wait for the result."""
        await self._ended.wait()
