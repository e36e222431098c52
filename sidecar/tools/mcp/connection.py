"""One server, for as long as somebody wants it: connected, listed, called, and connected again when it was lost.

All that the SDK opens is opened and closed in the server's one task. A call runs in a task beneath it, and its caller
only waits: whoever cancels a call leaves at once, while the server is told to stop in the background.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from ...system.redact import redacted
from ..base import Outcome
from .calls import Call, Calls, Show
from .config import ServerConfig
from .links import Link, Unusable, opened
from .offers import Offer
from .session import Listed, greet, innermost, listed, load, reason, session_over
from .state import ServerState, State

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

logger = logging.getLogger(__name__)

FIRST_WAIT_S = 1.0
MAX_WAIT_S = 60.0
"""Between two attempts; each wait is twice the one before."""

SHORT_WAIT_S = 4.0
"""A server that was lost and is back after such a wait is worth waiting for."""

STEADY_S = 30.0
"""A connection that has lasted this long starts the waits anew; one that breaks at each call does not."""

IDLE_S = 30 * 60.0
"""A server that no turn has wanted for this long is ended, and started again when one does."""

RESTART_S = 15.0
"""How long a call waits for a server that is being started again."""

REFRESH_S = 1.0
"""Between two readings of a list of tools that changes all the time."""

REASON_S = 1.0
"""From a call that was lost to the reason why the connection was."""

MAX_ERROR = 6000
"""Of what is told of a failure, with the last words of the server."""


class Connection:
    """`run` is the server's task, to be started once. `changed` hears of every new state."""

    def __init__(
        self, config: ServerConfig, environ: Mapping[str, str], changed: Callable[[ServerState], None]
    ) -> None:
        self.name = config.name
        self.offers: list[Offer] = []
        self.state = ServerState(self.name, "starting", _now())
        self.over = anyio.Event()
        self._config = config
        self._environ = environ
        self._changed = changed
        self._scope = anyio.CancelScope()
        self._stopping = anyio.Event()
        self._turned = anyio.Event()
        self._stale = anyio.Event()
        self._attempts = 0
        self._wanted = time.monotonic()
        self._link: Link | None = None
        self._calls: Calls | None = None

    @property
    def link(self) -> Link | None:
        return self._link

    @property
    def last_wanted(self) -> float:
        """On the monotonic clock; one that is busy is wanted now."""
        return time.monotonic() if self._calls is not None and self._calls.count else self._wanted

    def touch(self) -> None:
        """Somebody wants it."""
        self._wanted = time.monotonic()

    async def run(self) -> None:
        """Keep the connection until it is stopped; whatever the server does, no exception leaves."""
        try:
            self._changed(self.state)
            with self._scope:
                await self._keep()
        finally:
            self._turn("stopped")
            self.over.set()

    def stop(self) -> None:
        """Let the server end in order; `over` is set when it has."""
        self._stopping.set()
        if self._calls is not None and self._link is not None:
            self._link.ended.set()
        else:
            self._scope.cancel()

    def kill(self) -> None:
        """End it at once."""
        self._stopping.set()
        self._scope.cancel()
        if self._link is not None:
            self._link.kill()

    async def settled(self) -> None:
        """Return when it is known whether the server can be used."""
        while self.state.state in ("starting", "retrying"):
            await self._turned.wait()

    async def call(self, name: str, arguments: dict[str, Any], show: Show) -> Outcome:
        """Call a tool and tell what came of it, also when nothing did."""
        self.touch()
        with anyio.move_on_after(RESTART_S):
            await self.settled()
        calls = self._calls
        if calls is None:
            why = self.state.error or f"it is {self.state.state}"
            return Outcome(f"The MCP server {self.name!r} is not running: {why}", failed=True)
        if calls.is_full:
            return Outcome(f"The MCP server {self.name!r} is busy with {calls.count} calls.", failed=True)
        seconds = self._config.timeout_ms / 1000
        call = Call(name, arguments)
        with anyio.move_on_after(seconds) as limit:
            await calls.follow(call, show)
        self.touch()
        if call.outcome is not None:
            return call.outcome
        if limit.cancelled_caught:
            said = f"gave no answer within {seconds:g} s, and was told to stop. It may have done something."
            return Outcome(f"{self.name}/{name} {said}", failed=True)
        with anyio.move_on_after(REASON_S):
            await calls.over.wait()
        said = f"The MCP server {self.name!r} was lost in the middle of {name}: {calls.why}"
        return Outcome(f"{said}\nIt is being connected again. The call may have done something.", failed=True)

    async def _keep(self) -> None:
        while True:
            was_ready, why = await self._once()
            if self._stopping.is_set() or time.monotonic() - self.last_wanted > IDLE_S:
                return
            logger.warning("an MCP server is not there", extra={"server": self.name, "why": why})
            self._attempts += 1
            wait = min(FIRST_WAIT_S * 2.0 ** (self._attempts - 1), MAX_WAIT_S)
            self._turn("retrying" if was_ready and wait <= SHORT_WAIT_S else "failed", why)
            await anyio.sleep(wait)

    async def _once(self) -> tuple[bool, str]:
        """One connection from start to end: whether there was one, and why there is none any more."""
        calls = Calls()
        began: float | None = None
        why = "the connection ended"
        try:
            await anyio.to_thread.run_sync(load, abandon_on_cancel=True)
            async with opened(self._config, self._environ) as self._link:
                async with session_over(self._link, self._tools_changed) as session:
                    with anyio.fail_after(self._config.start_timeout_ms / 1000):
                        found = await greet(session)
                    began = time.monotonic()
                    await self._serve(session, self._link, calls, found)
                why = self._link.trouble() or why
        except Exception as error:
            # The SDK, and what a server makes it do, may raise anything. One server is no reason to end the house.
            why = self._words(error)
        finally:
            self._link = None
            calls.end(_presentable(why))
        if began is not None and time.monotonic() - began > STEADY_S:
            self._attempts = 0
        return began is not None, _presentable(why)

    async def _serve(self, session: ClientSession, link: Link, calls: Calls, found: Listed) -> None:
        """Let calls through until the link ends, or nobody wants the server any more."""
        async with anyio.create_task_group() as tasks:
            calls.open(session, tasks)
            self._calls = calls
            self._offer(found)
            tasks.start_soon(self._refresh, session)
            try:
                while not link.ended.is_set() and (left := self.last_wanted + IDLE_S - time.monotonic()) > 0:
                    with anyio.move_on_after(left):
                        await link.ended.wait()
            finally:
                self._calls = None
            await link.hang_up()
            tasks.cancel_scope.cancel()

    def _tools_changed(self) -> None:
        self._stale.set()

    async def _refresh(self, session: ClientSession) -> None:
        """Read the list of tools again whenever the server says that it has changed."""
        while True:
            await self._stale.wait()
            self._stale = anyio.Event()
            try:
                with anyio.fail_after(self._config.start_timeout_ms / 1000):
                    self._offer(await listed(session))
            except Exception as error:
                # The list that was read before stays in force; a lost connection is noticed elsewhere.
                logger.warning(
                    "an MCP server's tools could not be listed again",
                    extra={"server": self.name, "why": reason(error)},
                )
            await anyio.sleep(REFRESH_S)

    def _offer(self, found: Listed) -> None:
        self.offers, left_out = found
        if left_out:
            logger.warning("an MCP server offers more than is mounted", extra={"server": self.name})
        self._turn("ready", left_out=tuple(left_out))

    def _turn(self, state: State, error: str | None = None, left_out: tuple[str, ...] = ()) -> None:
        if state != "ready":
            self.offers = []
        self.state = ServerState(self.name, state, _now(), self._attempts, len(self.offers), left_out, error)
        self._turned.set()
        self._turned = anyio.Event()
        self._changed(self.state)

    def _words(self, error: Exception) -> str:
        """Why a connection could not be made or broke, in words for the user."""
        inner = innermost(error)
        known = self._link.trouble() if self._link is not None else None
        if isinstance(inner, Unusable):
            return str(inner)
        if isinstance(inner, TimeoutError):
            said = f"it was not ready within {self._config.start_timeout_ms / 1000:g} s"
        elif self._link is not None and self._link.ended.is_set() and known:
            return known
        else:
            logger.debug("an MCP connection failed", exc_info=error, extra={"server": self.name})
            said = reason(error)
        return f"{said}; {known}" if known else said


def _presentable(text: str) -> str:
    """Without secrets, and not too long; the end of it says the most."""
    text = redacted(text)
    return text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR // 4]} … {text[-MAX_ERROR * 3 // 4 :]}"


def _now() -> int:
    return time.time_ns() // 1_000_000
