"""The connection to one agent: its process, the messages in both directions, and who gets those of the agent.

One task reads, in order; another writes. Knows the framing and the handshake, and neither turns nor tools.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from sidecar_protocol.errors import RpcError
from sidecar_protocol.framing import Deframer, Oversized
from sidecar_protocol.jsonrpc import Notification
from sidecar_protocol.peer import Call, Cancelling, Peer

from ... import __version__
from ...model import JsonObject
from ...model.failures import Failure
from .presets import AgentCommand
from .process import AgentProcess, start_agent

logger = logging.getLogger(__name__)

PROTOCOL_VERSION = 1

MAX_FRAME_BYTES = 32 * 1024 * 1024
"""One message of an agent: an image, or a whole file, fits."""

MAX_UNSENT_BYTES = 64 * 1024 * 1024
"""Bytes that wait for an agent to read its input; one that reads nothing is ended."""

LAST_WORDS_S = 0.3
"""How long the last words of an ended agent may take to arrive."""

AUTH_REQUIRED = -32000
"""The protocol's error code for an agent that wants a login."""

_CANCELLING = Cancelling("$/cancel_request", "requestId")

_METHOD_NOT_FOUND = -32601


class Listener(Protocol):
    """Gets what the agent sends while a turn runs."""

    async def on_update(self, update: JsonObject) -> None: ...
    async def answer(self, method: str, params: JsonObject) -> Any: ...


class AgentConnection:
    """A running agent. `listener` gets its updates and requests; without one, updates are dropped."""

    def __init__(self, agent: AgentCommand, process: AgentProcess) -> None:
        self._agent = agent
        self._process = process
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._wake = anyio.Event()
        self._updates: deque[JsonObject] = deque()
        self._scope = anyio.CancelScope()
        self._peer: Peer | None = None
        self._is_closing = False
        self.listener: Listener | None = None
        self.session_id: str | None = None
        """Updates of other sessions, such as those of subagents, are not of this chat."""
        self.ended = anyio.Event()
        """Set when nothing can be sent any more."""
        self._gone = anyio.Event()
        self.capabilities: JsonObject = {}
        self.auth_methods: list[JsonObject] = []

    async def run(self, started: Callable[[], None]) -> None:
        """Transport messages until the agent ends or `close` is called; then nothing of it is left."""
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    self._peer = Peer(self._write, self._serve, self._hear, tasks, _CANCELLING)
                    started()
                    tasks.start_soon(self._process.drain_stderr)
                    tasks.start_soon(self._send)
                    await self._receive()
                    tasks.cancel_scope.cancel()
        finally:
            if self._peer:
                self._peer.refuse(_ended_error())
            self.ended.set()
            await self._process.end()
            self._gone.set()

    async def close(self) -> None:
        """End the agent and wait until it has ended."""
        self._is_closing = True
        self._scope.cancel()
        await self._gone.wait()

    async def initialize(self, *, with_files: bool) -> None:
        """Exchange `initialize` with the agent."""
        result = await self.request(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": {
                    "fs": {"readTextFile": with_files, "writeTextFile": with_files},
                    "terminal": with_files,
                },
                "clientInfo": {"name": "sidecar", "title": "Sidecar", "version": __version__},
            },
        )
        version = result.get("protocolVersion")
        if version != PROTOCOL_VERSION:
            raise Failure(
                "precondition_failed",
                f"{self._agent.title} speaks version {version!r} of the Agent Client Protocol, not {PROTOCOL_VERSION}",
                reason="agent_protocol",
            )
        self.capabilities = _object(result.get("agentCapabilities"))
        methods = result.get("authMethods")
        self.auth_methods = [_object(one) for one in methods] if isinstance(methods, list) else []

    async def request(self, method: str, params: Mapping[str, Any]) -> JsonObject:
        """Ask the agent. Raises RpcError for its refusal, and a Failure when it has ended."""
        if self._peer is None or self.ended.is_set():
            raise await self.failure()
        try:
            return _object(await self._peer.request(method, params))
        except RpcError as error:
            if error.name == "shutting_down":
                raise await self.failure() from error
            raise

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if self._peer and not self.ended.is_set():
            self._peer.notify(method, params)

    async def failure(self) -> Failure:
        """Why the agent has ended, in its own last words."""
        with anyio.move_on_after(LAST_WORDS_S):
            await self._process.silent.wait()
        words = self._process.last_words()
        return Failure(
            "provider_error",
            f"{self._agent.title} has ended" + (f"; its last words: {words[-1000:]}" if words else ""),
            reason="agent_ended",
            retryable=True,
            action="retry",
            hint="It is started again by the next prompt",
        )

    def _write(self, message: bytes) -> None:
        self._unsent.append(message + b"\n")
        self._unsent_bytes += len(message)
        self._wake.set()
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            logger.warning("an agent does not read its input", extra={"engine": self._agent.name})
            self._scope.cancel()

    async def _send(self) -> None:
        while True:
            while self._unsent:
                data = b"".join(self._unsent)
                self._unsent.clear()
                self._unsent_bytes = 0
                if not await self._process.send(data):
                    return
            self._wake = anyio.Event()
            await self._wake.wait()

    async def _receive(self) -> None:
        frames = Deframer("lines", MAX_FRAME_BYTES)
        while data := await self._process.receive():
            for frame in frames.feed(data):
                # Some agents log to stdout: what is no message is not answered.
                if isinstance(frame, Oversized) or not frame.lstrip().startswith(b"{"):
                    logger.info("ignored output of an agent", extra={"engine": self._agent.name})
                    continue
                assert self._peer is not None
                self._peer.receive(frame)
                # Before the next frame: the answer to a prompt must not overtake the updates before it.
                await self._pass_updates()
        if not self._is_closing:
            logger.info("an agent has ended", extra={"engine": self._agent.name})
            with anyio.move_on_after(LAST_WORDS_S):
                await self._process.silent.wait()

    async def _pass_updates(self) -> None:
        while self._updates:
            update = self._updates.popleft()
            if self.listener is None:
                continue
            try:
                await self.listener.on_update(update)
            except Exception:
                # One update that cannot be understood or stored must not end the connection; the turn fails by
                # itself when the journal does.
                logger.exception("an update of an agent was lost", extra={"engine": self._agent.name})

    def _hear(self, message: Notification) -> None:
        if message.method != "session/update":
            return
        session, update = message.params.get("sessionId"), message.params.get("update")
        # Some agents send updates before they answer session/new: then no session is known, and none is meant.
        if self.session_id is not None and session == self.session_id and isinstance(update, dict):
            self._updates.append(update)

    async def _serve(self, call: Call) -> Any:
        if self.listener is None or call.params.get("sessionId", self.session_id) != self.session_id:
            if call.method == "session/request_permission":
                return {"outcome": {"outcome": "cancelled"}}
            raise RpcError(_METHOD_NOT_FOUND, f"{call.method} is not answered between turns")
        try:
            return await self.listener.answer(call.method, call.params)
        except Failure as failure:
            raise RpcError(-32603, failure.message) from failure


async def open_connection(
    tasks: TaskGroup, agent: AgentCommand, folder: str, environ: Mapping[str, str], *, with_files: bool
) -> AgentConnection:
    """Start the agent and exchange `initialize`, within its time."""
    program = await anyio.to_thread.run_sync(agent.program, environ)
    if program is None:
        raise not_installed(agent)
    connection = AgentConnection(agent, await start_agent(agent, program, folder, environ))
    begun = anyio.Event()
    tasks.start_soon(connection.run, begun.set)
    try:
        with anyio.fail_after(agent.start_s):
            await begun.wait()
            await connection.initialize(with_files=with_files)
    except TimeoutError:
        await connection.close()
        raise Failure(
            "provider_error",
            f"{agent.title} did not answer within {agent.start_s:g} s",
            reason="agent_start",
            retryable=True,
            action="retry",
        ) from None
    except RpcError as error:
        await connection.close()
        raise refusal(agent, error) from error
    except BaseException:
        with anyio.CancelScope(shield=True):
            await connection.close()
        raise
    return connection


def not_installed(agent: AgentCommand) -> Failure:
    """The one error of an agent that is not there, with the command that installs it."""
    how = (
        f"Install it: {agent.install}" if agent.install else "Correct `command` in its table of the settings"
    )
    return Failure(
        "precondition_failed",
        f"{agent.title} is not installed: there is no program {agent.command!r}. {how}",
        reason="agent_missing",
        params={"engine": agent.name, "command": agent.command},
        hint=how,
    )


def refusal(agent: AgentCommand, error: RpcError) -> Failure:
    """An error of the agent, as the failure of a turn."""
    if error.code == AUTH_REQUIRED:
        return Failure(
            "provider_error",
            f"{agent.title} wants a login. {agent.login}".strip(),
            reason="no_key",
            action="enter_key",
            hint=agent.login or None,
        )
    details = error.data.get("details") or error.data.get("message") or ""
    words = f"{error.message}: {details}" if details else error.message
    return Failure("provider_error", f"{agent.title}: {words}"[:2000], reason="agent_refused")


def _ended_error() -> RpcError:
    return RpcError.named("shutting_down", "The agent has ended")


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
