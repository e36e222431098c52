"""The connection to one server while it is in use: connect, list, call, and reconnect after a loss.

Everything that the SDK opens is opened and closed in one task per server, because its cancel scopes must not cross
tasks. A call runs in a child task and its caller only waits: a cancelled caller returns at once, while the
cancellation is sent to the server in the background.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from ...model import JsonObject
from ...system import clock
from ...system.lazy import lazy_module, load
from ...system.redact import HIDDEN, MIN_LENGTH, redact_text
from ..base import ShowOutput, ToolOutcome
from .calls import Calls, McpCall
from .config import ServerConfig
from .links import ServerLink, ServerUnusable, innermost_error
from .offers import ToolOffer
from .state import ServerState, State

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from . import http, stdio
    from . import session as sdk
else:
    http = lazy_module("sidecar.tools.mcp.http")
    sdk = lazy_module("sidecar.tools.mcp.session")
    stdio = lazy_module("sidecar.tools.mcp.stdio")

logger = logging.getLogger(__name__)

FIRST_WAIT_S = 1.0
MAX_WAIT_S = 60.0
"""Seconds between two attempts; each wait is twice the one before."""

SHORT_WAIT_S = 4.0
"""A lost server whose next attempt is at most this far away is worth waiting for: it is `retrying`, not `failed`."""

STABLE_AFTER_S = 30.0
"""Seconds: a connection that has lasted this long resets the backoff; one that breaks at each call does not."""

IDLE_S = 30 * 60.0
"""Seconds: a server that no turn has used for this long is stopped, and started again when one does."""

RESTART_S = 15.0
"""Seconds that a call waits for a server that is restarting."""

REFRESH_S = 1.0
"""Seconds between two reads of a list of tools that changes all the time."""

EXIT_REASON_WAIT_S = 1.0
"""Seconds from a lost call to the reason why the connection was lost."""

MAX_ERROR = 6000
"""Characters of an error message, with the last output of the server."""


class ServerConnection:
    """`run` is the task of the server, to be started once. `changed` is called with every new state."""

    def __init__(
        self, config: ServerConfig, environ: Mapping[str, str], changed: Callable[[ServerState], None]
    ) -> None:
        self.name = config.name
        self.offers: list[ToolOffer] = []
        self.state = ServerState(self.name, "starting", clock.now())
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
        self._link: ServerLink | None = None
        self._calls: Calls | None = None

    @property
    def link(self) -> ServerLink | None:
        return self._link

    @property
    def last_wanted(self) -> float:
        """On the monotonic clock; a busy server counts as used now."""
        return time.monotonic() if self._calls is not None and self._calls.count else self._wanted

    def touch(self) -> None:
        """Mark the server as used now."""
        self._wanted = time.monotonic()

    async def run(self) -> None:
        """Maintain the connection until it is stopped; whatever the server does, no exception escapes."""
        try:
            self._changed(self.state)
            with self._scope:
                await self._keep_connected()
        finally:
            self._set_state("stopped")
            self.over.set()

    def stop(self) -> None:
        """Stop the server in an orderly way; `over` is set when it has ended."""
        self._stopping.set()
        if self._calls is not None and self._link is not None:
            # Ending the link lets `_serve` close stdin first: a server that is only cancelled is killed without a
            # chance to save.
            self._link.ended.set()
        else:
            self._scope.cancel()

    def kill(self) -> None:
        """Kill the server at once."""
        self._stopping.set()
        self._scope.cancel()
        if self._link is not None:
            self._link.kill()

    async def wait_until_settled(self) -> None:
        """Return when it is known whether the server can be used."""
        while self.state.state in ("starting", "retrying"):
            await self._turned.wait()

    async def call(self, name: str, arguments: JsonObject, show: ShowOutput) -> ToolOutcome:
        """Call a tool and return its outcome, also when the call failed."""
        self.touch()
        with anyio.move_on_after(RESTART_S):
            await self.wait_until_settled()
        # Read once, after the wait: the server may be lost between two lines, and its calls end with it.
        calls = self._calls
        if calls is None:
            why = self.state.error or f"it is {self.state.state}"
            return ToolOutcome(f"The MCP server {self.name!r} is not running: {why}", failed=True)
        if calls.is_full:
            return ToolOutcome(f"The MCP server {self.name!r} is busy with {calls.count} calls.", failed=True)
        seconds = self._config.timeout_ms / 1000
        call = McpCall(name, arguments)
        with anyio.move_on_after(seconds) as limit:
            await calls.follow(call, show)
        self.touch()
        # Before the time limit is looked at: an answer that came at the last moment counts.
        if call.outcome is not None:
            return call.outcome
        if limit.cancelled_caught:
            said = f"gave no answer within {seconds:g} s, and was cancelled. It may have had effects."
            return ToolOutcome(f"{self.name}/{name} {said}", failed=True)
        with anyio.move_on_after(EXIT_REASON_WAIT_S):
            # The call fails a moment before the exit code and the last words of stderr are there.
            await calls.over.wait()
        said = f"The MCP server {self.name!r} was lost in the middle of {name}: {calls.why}"
        return ToolOutcome(f"{said}\nIt is being reconnected. The call may have had effects.", failed=True)

    async def _keep_connected(self) -> None:
        while True:
            was_ready, why = await self._connect_once()
            # A server that nobody has used for long is not started again; the next call does that.
            if self._stopping.is_set() or time.monotonic() - self.last_wanted > IDLE_S:
                return
            logger.warning("an MCP server is not there", extra={"server": self.name, "why": why})
            self._attempts += 1
            wait = min(FIRST_WAIT_S * 2.0 ** (self._attempts - 1), MAX_WAIT_S)
            self._set_state("retrying" if was_ready and wait <= SHORT_WAIT_S else "failed", why)
            await anyio.sleep(wait)

    async def _connect_once(self) -> tuple[bool, str]:
        """Run one connection from start to end; return whether it was established, and why it ended."""
        calls = Calls()
        began: float | None = None
        why = "the connection ended"
        try:
            await anyio.to_thread.run_sync(_load_sdk, abandon_on_cancel=True)
            async with _open_link(self._config, self._environ) as self._link:
                async with sdk.make_session(self._link, self._tools_changed) as session:
                    with anyio.fail_after(self._config.start_timeout_ms / 1000):
                        found = await sdk.initialize(session)
                    began = time.monotonic()
                    await self._serve(session, self._link, calls, found)
                why = self._link.trouble() or why
        except Exception as error:
            # The SDK, and what a server makes it do, may raise anything. One server must not end the program.
            why = self._error_message(error)
        finally:
            self._link = None
            calls.end(_safe_message(why, self._config))
        # A server that connects and falls at once must not begin again with the shortest wait.
        if began is not None and time.monotonic() - began > STABLE_AFTER_S:
            self._attempts = 0
        return began is not None, _safe_message(why, self._config)

    async def _serve(
        self, session: ClientSession, link: ServerLink, calls: Calls, found: sdk.ToolListing
    ) -> None:
        """Accept calls until the link ends, or nobody needs the server any more."""
        async with anyio.create_task_group() as tasks:
            calls.open(session, tasks)
            self._calls = calls
            self._publish_tools(found)
            tasks.start_soon(self._refresh, session)
            try:
                # The time left changes with every use, so it is asked again after each wait.
                while not link.ended.is_set() and (left := self.last_wanted + IDLE_S - time.monotonic()) > 0:
                    with anyio.move_on_after(left):
                        await link.ended.wait()
            finally:
                self._calls = None
            await link.disconnect()
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
                    self._publish_tools(await sdk.list_tools(session))
            except Exception as error:
                # The previous list stays in force; a lost connection is noticed elsewhere.
                logger.warning(
                    "an MCP server's tools could not be listed again",
                    extra={"server": self.name, "why": sdk.error_reason(error)},
                )
            # After the read: a server that announces changes all the time is read once a second.
            await anyio.sleep(REFRESH_S)

    def _publish_tools(self, found: sdk.ToolListing) -> None:
        self.offers, left_out = found
        if left_out:
            logger.warning("an MCP server offers more than is mounted", extra={"server": self.name})
        self._set_state("ready", left_out=tuple(left_out))

    def _set_state(self, state: State, error: str | None = None, left_out: tuple[str, ...] = ()) -> None:
        if state != "ready":
            self.offers = []
        self.state = ServerState(
            self.name, state, clock.now(), self._attempts, len(self.offers), left_out, error
        )
        # Set and replaced: who waits is woken, and who waits next waits for the next state.
        self._turned.set()
        self._turned = anyio.Event()
        self._changed(self.state)

    def _error_message(self, error: Exception) -> str:
        """Return why a connection could not be made or broke, for the user."""
        inner = innermost_error(error)
        known = self._link.trouble() if self._link is not None else None
        if isinstance(inner, ServerUnusable):
            return str(inner)
        if isinstance(inner, TimeoutError):
            said = f"it was not ready within {self._config.start_timeout_ms / 1000:g} s"
        elif self._link is not None and self._link.ended.is_set() and known:
            return known
        else:
            logger.debug("an MCP connection failed", exc_info=error, extra={"server": self.name})
            said = sdk.error_reason(error)
        return f"{said}; {known}" if known else said


def _safe_message(text: str, config: ServerConfig) -> str:
    """Redact secrets and shorten; the end of a message says the most. A server that fails may print its environment,
    so every value of its variables is redacted here, whatever its name is, except paths.
    """
    text = redact_text(text)
    for value in sorted(config.env.values(), key=len, reverse=True):
        if len(value) >= MIN_LENGTH and not value.startswith("/"):
            text = text.replace(value, HIDDEN)
    return text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR // 4]} … {text[-MAX_ERROR * 3 // 4 :]}"


def _load_sdk() -> None:
    """Import the modules that use the SDK. In a thread: it takes most of a second."""
    try:
        for module in (sdk, http, stdio):
            load(module)
    except Exception as error:
        # A broken package may raise anything, and `sdk.error_reason` cannot explain it without the SDK.
        raise ServerUnusable(
            f"the MCP SDK cannot be imported ({type(error).__name__}: {error}); install chat-sidecar again"
        ) from error
    sdk.silence_loggers()


def _open_link(config: ServerConfig, environ: Mapping[str, str]) -> AbstractAsyncContextManager[ServerLink]:
    """Open the link to this server; it ends with the context."""
    if config.url is not None:
        return http.open_http_link(config)
    return stdio.open_process_link(config, environ)
