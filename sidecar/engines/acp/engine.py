"""The engine of an agent: its process, its session, and the turns that it answers.

The agent runs from the first turn of a chat until the chat is closed. One that has ended is started again by the next
turn; one that does not acknowledge a cancel is ended.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup
from sidecar_protocol.errors import RpcError

from ...model import JsonObject
from ...model.content import Block, EndReason
from ...model.failures import Failure
from ...providers.base import TokenUsage
from ...tools.mcp.links import innermost_error
from ..base import Attached, EngineChat, EngineHost, Sink, TurnRequest
from .connection import AUTH_REQUIRED, AgentConnection, not_installed, open_connection, refusal
from .content import prompt_blocks
from .presets import AgentCommand
from .turn import AgentTurn

logger = logging.getLogger(__name__)

CANCEL_S = 0.3
"""How long a cancelled turn waits for the agent to say so; its last words still belong to the turn."""

CANCELLED_S = 5.0
"""How long the next turn waits for that; then the agent is started again."""

_REASONS: Mapping[Any, EndReason] = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "max_turn_requests": "max_steps",
    "refusal": "refusal",
    "cancelled": "cancelled",
}


class _PendingPrompt:
    """A prompt that the agent has not answered yet."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.result: JsonObject | None = None
        self.failure: Failure | None = None


class AcpEngine:
    """Runs the turns of one chat by an agent. `tasks` outlives it: the agent's messages are read between turns too."""

    def __init__(self, agent: AgentCommand, tasks: TaskGroup, environ: Mapping[str, str]) -> None:
        self._agent = agent
        self._tasks = tasks
        self._environ = environ
        self._chat: EngineChat | None = None
        self._connection: AgentConnection | None = None
        self._pending: _PendingPrompt | None = None

    async def open(self, chat: EngineChat) -> None:
        """Look for the agent; `attach` starts it."""
        self._chat = chat
        if await anyio.to_thread.run_sync(self._agent.program, self._environ) is None:
            raise not_installed(self._agent)

    async def attach(self, known: str | None, model: str) -> Attached:
        connection = await self._connected()
        if known is not None and known == connection.session_id:
            return Attached(known, resumed=True)
        session = await self._resume(connection, known) if known is not None else None
        connection.session_id = session or await self._create(connection)
        return Attached(connection.session_id, resumed=session is not None)

    async def run(self, turn: TurnRequest, sink: Sink) -> EndReason:
        connection, host = self._connection, turn.host
        if connection is None or connection.session_id is None or host is None:
            raise ValueError("a turn of an agent needs `attach` before, and `host`")
        prompt, background = turn.prompt, host.background
        with anyio.move_on_after(turn.limits.seconds) as limit:
            while True:
                reason, said = await self._answer(connection, host, background, prompt, sink)
                more = await sink.before_stop(said) if reason == "end_turn" else []
                if not more:
                    return reason
                prompt, background = [block for message in more for block in message.content], ""
        assert limit.cancelled_caught
        await sink.limit_reached("time")
        return "max_steps"

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connected(self) -> AgentConnection:
        """The connection to a running agent that has answered every prompt."""
        assert self._chat is not None
        if self._pending is not None:
            with anyio.move_on_after(CANCELLED_S):
                await self._pending.done.wait()
            if not self._pending.done.is_set():
                logger.warning(
                    "an agent ignored a cancel and is started again", extra={"engine": self._agent.name}
                )
                await self.close()
            self._pending = None
        if self._connection is not None and not self._connection.ended.is_set():
            return self._connection
        await self.close()
        self._connection = await open_connection(
            self._tasks,
            self._agent,
            self._folder(),
            self._environ,
            with_files=self._chat.project_path is not None,
        )
        return self._connection

    async def _resume(self, connection: AgentConnection, known: str) -> str | None:
        """Resume a session by the ways that the agent offers; None when none of them works."""
        offered = connection.capabilities.get("sessionCapabilities")
        methods = (
            ["session/resume"] if isinstance(offered, dict) and offered.get("resume") is not None else []
        )
        methods += ["session/load"] if connection.capabilities.get("loadSession") else []
        # Before it answers, an agent that loads a session sends all of it again; nobody listens yet.
        connection.session_id = known
        for method in methods:
            params = {"sessionId": known, **self._setup()}
            try:
                resumed = await self._ask_logged_in(connection, method, params)
            except RpcError as error:
                logger.info(
                    "an agent did not resume", extra={"engine": self._agent.name, "error": error.message}
                )
                continue
            await self._choose_mode(connection, known, resumed)
            return known
        connection.session_id = None
        return None

    async def _create(self, connection: AgentConnection) -> str:
        connection.session_id = None
        try:
            made = await self._ask_logged_in(connection, "session/new", self._setup())
        except RpcError as error:
            raise refusal(self._agent, error) from error
        session = made.get("sessionId")
        if not isinstance(session, str) or not session:
            raise Failure("provider_error", f"{self._agent.title} made no session", reason="agent_refused")
        connection.session_id = session
        await self._choose_mode(connection, session, made)
        await self._choose_model(connection, session, made)
        return session

    async def _ask_logged_in(
        self, connection: AgentConnection, method: str, params: Mapping[str, Any]
    ) -> JsonObject:
        """Ask, and once more after a login when the agent wants one and we know which."""
        with anyio.move_on_after(self._agent.start_s):
            try:
                return await connection.request(method, params)
            except RpcError as error:
                if error.code != AUTH_REQUIRED or not self._can_log_in(connection):
                    raise
            await connection.request("authenticate", {"methodId": self._agent.method})
            return await connection.request(method, params)
        raise Failure(
            "provider_error",
            f"{self._agent.title} did not answer {method} within {self._agent.start_s:g} s",
            reason="agent_start",
            retryable=True,
            action="retry",
        )

    def _can_log_in(self, connection: AgentConnection) -> bool:
        agent = self._agent
        variable = agent.method_variable
        has_key = variable is None or bool(dict(agent.variables).get(variable) or self._environ.get(variable))
        return (
            agent.method is not None
            and has_key
            and agent.method in {method.get("id") for method in connection.auth_methods}
        )

    async def _choose_mode(self, connection: AgentConnection, session: str, made: JsonObject) -> None:
        """Set the mode in which the agent asks, where its own default decides without the user."""
        wanted, modes = self._agent.mode, _object(made.get("modes"))
        offered = modes.get("availableModes")
        if wanted is None or not isinstance(offered, list) or modes.get("currentModeId") == wanted:
            return
        names = [str(mode.get("id")) for mode in offered if isinstance(mode, dict)]
        try:
            if wanted not in names:
                raise RpcError(-32602, f"it has {', '.join(names)}")
            await connection.request("session/set_mode", {"sessionId": session, "modeId": wanted})
        except RpcError as error:
            # Without it the agent may act where the user expects to be asked.
            raise Failure(
                "provider_error",
                f"{self._agent.title} has no mode {wanted!r}: {error.message}",
                reason="agent_refused",
                hint=f"Set `engines.{self._agent.name}.mode` to one of its modes",
            ) from error

    async def _choose_model(self, connection: AgentConnection, session: str, made: JsonObject) -> None:
        """Set the model that the settings name, by the option of the agent that offers it."""
        wanted = self._agent.model
        if wanted is None:
            return
        options = made.get("configOptions")
        option = next(
            (
                one
                for one in (options if isinstance(options, list) else [])
                if isinstance(one, dict) and one.get("category") == "model"
            ),
            None,
        )
        try:
            if option is not None:
                params = {"sessionId": session, "configId": option.get("id"), "value": wanted}
                await connection.request("session/set_config_option", params)
            else:
                await connection.request("session/set_model", {"sessionId": session, "modelId": wanted})
        except RpcError as error:
            raise Failure(
                "provider_error",
                f"{self._agent.title} has no model {wanted!r}: {error.message}",
                reason="model_unknown",
                action="choose_model",
            ) from error

    def _setup(self) -> JsonObject:
        return {"cwd": self._folder(), "mcpServers": []}

    def _folder(self) -> str:
        """The project; for a chat without one an empty folder of its own, always the same."""
        assert self._chat is not None
        if self._chat.project_path is not None:
            return self._chat.project_path
        name = hashlib.sha256(self._chat.session_id.encode()).hexdigest()[:16]
        folder = os.path.join(
            tempfile.gettempdir(), f"sidecar-{os.getuid() if hasattr(os, 'getuid') else 0}-{name}"
        )
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if hasattr(os, "getuid") and os.lstat(folder).st_uid != os.getuid():
            raise Failure("precondition_failed", f"{folder} belongs to somebody else", reason="agent_start")
        return folder

    async def _answer(
        self, connection: AgentConnection, host: EngineHost, background: str, prompt: list[Block], sink: Sink
    ) -> tuple[EndReason, str]:
        """Send one prompt and report the answer; returns how it ended, and what was said."""
        session = connection.session_id
        params: JsonObject = {
            "sessionId": session,
            "prompt": prompt_blocks(
                background, prompt, host.media, _object(connection.capabilities.get("promptCapabilities"))
            ),
        }
        cancel = partial(connection.notify, "session/cancel", {"sessionId": session})
        try:
            async with anyio.create_task_group() as tasks:
                listening = AgentTurn(self._agent.name, host, sink, tasks, cancel)
                connection.listener = listening
                try:
                    result = await self._prompt(connection, params, listening)
                    await listening.finish()
                finally:
                    await listening.close()
                    connection.listener = None
        except ExceptionGroup as group:
            raise innermost_error(group) from group
        await sink.step_ended(_usage(result.get("usage")))
        reason = _REASONS.get(result.get("stopReason"), "end_turn")
        return reason, "".join(listening.said)

    async def _prompt(
        self, connection: AgentConnection, params: JsonObject, listening: AgentTurn
    ) -> JsonObject:
        pending = self._pending = _PendingPrompt()
        # Not in the turn's tasks: a cancelled prompt is answered too, and the next one must not overtake that.
        self._tasks.start_soon(self._await_answer, connection, params, pending)
        try:
            await pending.done.wait()
        except anyio.get_cancelled_exc_class():
            connection.notify("session/cancel", {"sessionId": params["sessionId"]})
            listening.cancel_requests()
            with anyio.move_on_after(CANCEL_S, shield=True):
                await pending.done.wait()
            raise
        self._pending = None
        if pending.failure is not None:
            raise pending.failure
        return pending.result or {}

    async def _await_answer(
        self, connection: AgentConnection, params: JsonObject, pending: _PendingPrompt
    ) -> None:
        try:
            pending.result = await connection.request("session/prompt", params)
        except RpcError as error:
            pending.failure = refusal(self._agent, error)
        except Failure as failure:
            pending.failure = failure
        finally:
            pending.done.set()


def _usage(given: Any) -> TokenUsage:
    """What an agent says of tokens in its answer: an extension that several have."""
    found = _object(given)

    def number(*names: str) -> int | None:
        return next((value for name in names if isinstance(value := found.get(name), int)), None)

    return TokenUsage(
        input=number("inputTokens", "input_tokens"),
        output=number("outputTokens", "output_tokens"),
        cached=number("cachedReadTokens", "cachedInputTokens", "cached_input_tokens"),
    )


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
