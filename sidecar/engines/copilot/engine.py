"""The Copilot engine: the SDK's client, its session under our id, and the turns that it answers.

A session is resumed when the runtime knows it, and created only under an id that it does not know: a session that is
created over an existing one starts with an empty thread, without an error.
"""

from __future__ import annotations

import importlib
import logging
import os
import secrets
import sys
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from ...model import JsonObject
from ...model.content import EndReason
from ...model.failures import Failure
from ...providers.base import TokenUsage
from ...system import supervisor
from ...tools.mcp.links import innermost_error
from ..acp.content import prompt_blocks
from ..acp.presets import AgentCommand
from ..acp.process import agent_environment
from ..acp.turn import AgentTurn, RpcError
from ..base import Attached, EngineChat, EngineHost, Sink, TurnRequest
from . import guard
from .events import call_of, updates_of, usage_of, window_of
from .runtime import find_runtime, has_sdk, missing

logger = logging.getLogger(__name__)

NAME = "copilot"

REQUEST_S = 30.0
"""How long the runtime may take to look a session up, to resume or to create one."""

CANCEL_S = 0.3
"""How long a cancelled turn waits until the runtime says that it is idle."""

STOP_S = 0.35
"""How long the runtime may take to stop; then it is killed."""

ALIVE_S = 0.5
"""How often the runtime is asked whether it lives during a turn: the SDK reports its death only to a request."""

MAX_EVENTS = 100_000
"""Events that wait to be journalled; a runtime that sends more, faster than the disk takes them, ends the turn."""

_OPTIONS = [
    {"optionId": "once", "kind": "allow_once", "name": "Allow"},
    {"optionId": "no", "kind": "reject_once", "name": "Deny"},
]

T = TypeVar("T")


class CopilotEngine:
    """Runs the turns of one chat by Copilot."""

    def __init__(self, agent: AgentCommand, environ: Mapping[str, str]) -> None:
        self._agent = agent
        self._environ = agent_environment(agent, environ)
        self._chat: EngineChat | None = None
        self._sdk: Any = None
        self._client: Any = None
        self._session: Any = None
        self._turn: _CopilotTurn | None = None
        self._has_answered = False
        self._requests = 0
        self._runtime = ""
        self._pipe: tuple[int, int] | None = None

    async def open(self, chat: EngineChat) -> None:
        """Look for the SDK and the runtime; `attach` starts it."""
        self._chat = chat
        sdk = has_sdk()
        runtime = await anyio.to_thread.run_sync(find_runtime, self._environ, self._agent.command or None)
        if failure := missing(sdk, runtime):
            raise failure
        assert runtime is not None
        self._runtime = runtime

    async def attach(self, known: str | None, model: str) -> Attached:
        client = await self._connected()
        if known is not None and self._session is not None and known == self._session.session_id:
            # One that was created for a prompt which failed has nothing of the chat yet.
            return Attached(known, resumed=self._has_answered)
        self._session, self._has_answered = None, False
        if known is not None and await self._exists(client, known):
            session = await self._ask(client.resume_session(known, **self._options()), "resume the session")
            if await self._has_thread(session):
                self._session, self._has_answered = session, True
                return Attached(known, resumed=True)
            # The runtime knows the id and has lost what was said: the history goes into a new session.
            logger.warning("a session of Copilot is empty", extra={"session": known})
            with suppress(Exception):
                await session.disconnect()
            known = None
        id = await self._free_id(client, known)
        self._session = await self._ask(
            client.create_session(session_id=id, **self._options()), "create a session"
        )
        return Attached(id, resumed=False)

    async def run(self, turn: TurnRequest, sink: Sink) -> EndReason:
        if self._session is None or turn.host is None:
            raise ValueError("a turn of Copilot needs `attach` before, and `host`")
        prompt, background = turn.prompt, turn.host.background
        with anyio.move_on_after(turn.limits.seconds) as limit:
            while True:
                blocks = prompt_blocks(background, prompt, {}, {})
                text = "\n\n".join(str(block.get("text") or block.get("uri") or "") for block in blocks)
                said = await self._answer(text, turn.host, sink)
                self._has_answered = True
                more = [] if sink.stopped() else await sink.before_stop(said)
                if not more:
                    return "cancelled" if sink.stopped() else "end_turn"
                prompt, background = [block for message in more for block in message.content], ""
        assert limit.cancelled_caught
        await sink.limit_reached("time")
        return "max_steps"

    async def close(self) -> None:
        client, self._client, self._session = self._client, None, None
        pipe, self._pipe = self._pipe, None
        if client is not None:
            with anyio.move_on_after(STOP_S, shield=True), suppress(Exception, ExceptionGroup):
                await client.stop()
        for descriptor in pipe or ():
            os.close(descriptor)
        if client is not None:
            with anyio.move_on_after(STOP_S, shield=True), suppress(Exception, ExceptionGroup):
                await client.force_stop()

    async def _connected(self) -> Any:
        if self._client is not None and await self._is_alive(self._client):
            return self._client
        await self.close()
        if self._sdk is None:
            # In a thread: the import takes a second, in which no other chat would stream.
            self._sdk = await anyio.to_thread.run_sync(importlib.import_module, "copilot")
            # It logs a traceback for each failed request; what fails here is reported by the turn.
            logging.getLogger("copilot").setLevel(logging.CRITICAL + 1)
        program, arguments = self._guarded_command()
        client = self._sdk.CopilotClient(
            connection=self._sdk.RuntimeConnection.for_stdio(path=program, args=arguments),
            env=dict(self._environ),
            use_logged_in_user=self._provider() is None,
            working_directory=self._chat.project_path if self._chat else None,
        )
        self._client = client
        try:
            await self._ask(client.start(), "start")
        except BaseException:
            await self.close()
            raise
        return client

    def _guarded_command(self) -> tuple[str, Sequence[str]]:
        """The runtime beneath our supervisor, which ends all that it has started, also when we are killed."""
        if sys.platform != "linux":
            return self._runtime, self._agent.args
        self._pipe = os.pipe()
        pipe = f"/proc/{os.getpid()}/fd/{self._pipe[0]}"
        words = ["-I", "-S", guard.__file__, pipe, supervisor.__file__, self._runtime, *self._agent.args]
        return sys.executable, words

    async def _exists(self, client: Any, id: str) -> bool:
        """Whether the runtime knows the session. A failure to find out is a failure: nothing is created then."""
        return await self._ask(client.get_session_metadata(id), "look the session up") is not None

    async def _free_id(self, client: Any, known: str | None) -> str:
        """An id that the runtime does not know: the chat's own, unless a session of that name is there."""
        assert self._chat is not None
        wanted = known or self._chat.session_id
        while await self._exists(client, wanted):
            wanted = f"{self._chat.session_id}-{secrets.token_hex(4)}"
        return wanted

    async def _has_thread(self, session: Any) -> bool:
        events = await self._ask(session.get_events(), "read the session")
        return any(_raw(event).get("type") == "user.message" for event in events)

    async def _ask(self, request: Awaitable[T], what: str) -> T:
        """Wait for the runtime; every failure is one of the turn, in the runtime's words."""
        try:
            with anyio.fail_after(max(REQUEST_S, self._agent.start_s)):
                return await request
        except TimeoutError as error:
            await self.close()
            raise _failed(f"Copilot did not {what} in time", "agent_start") from error
        except Failure:
            raise
        except Exception as error:
            raise _failed(f"Copilot could not {what}: {error}", "agent_refused") from error

    def _options(self) -> dict[str, Any]:
        assert self._chat is not None
        provider = self._provider()
        return {
            "model": self._agent.model or self._environ.get("COPILOT_MODEL"),
            "streaming": True,
            "working_directory": self._chat.project_path,
            "on_permission_request": self._on_permission,
            "on_user_input_request": self._on_question,
            "on_event": self._on_event,
            "infinite_sessions": {
                "enabled": True,
                "background_compaction_threshold": 0.80,
                "buffer_exhaustion_threshold": 0.95,
            },
            **({"provider": provider} if provider else {}),
        }

    def _provider(self) -> dict[str, Any] | None:
        """A provider of the user's own, by the variables of the Copilot CLI; None for the user's Copilot."""
        environ = self._environ
        address = environ.get("COPILOT_PROVIDER_BASE_URL")
        if not address:
            return None
        limit = environ.get("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "")
        found = {
            "type": environ.get("COPILOT_PROVIDER_TYPE") or "openai",
            "wire_api": environ.get("COPILOT_PROVIDER_WIRE_API") or "completions",
            "base_url": address,
            "api_key": environ.get("COPILOT_PROVIDER_API_KEY"),
            "bearer_token": environ.get("COPILOT_PROVIDER_BEARER_TOKEN"),
            # Without it the runtime does not know when to compact.
            "max_prompt_tokens": int(limit) if limit.isdecimal() else self._agent.window,
        }
        return {name: value for name, value in found.items() if value is not None}

    def _on_event(self, event: Any) -> None:
        if self._turn is not None:
            self._turn.put(_raw(event))

    async def _on_permission(self, request: Any, invocation: Any) -> Any:
        turn = self._turn
        self._requests += 1
        if turn is not None:
            call = call_of(_raw(request), self._requests)
            with suppress(RpcError, Failure):
                params: JsonObject = {"toolCall": call, "options": _OPTIONS}
                answer = await turn.listening.answer("session/request_permission", params)
                if answer["outcome"].get("optionId") == "once":
                    return self._rpc().PermissionDecisionApproveOnce()
        return self._rpc().PermissionDecisionReject(feedback="The user did not allow this.")

    async def _on_question(self, request: Any, invocation: Any) -> Any:
        if self._turn is None:
            raise RuntimeError("no turn runs")
        answer = await self._turn.listening.ask_user(
            str(request.get("question", "")), request.get("choices"), bool(request.get("allowFreeform", True))
        )
        return {"answer": answer, "wasFreeform": answer not in (request.get("choices") or ())}

    def _rpc(self) -> Any:
        return importlib.import_module("copilot.rpc")

    async def _answer(self, text: str, host: EngineHost, sink: Sink) -> str:
        """Send one prompt and report all that follows; returns what was said."""
        try:
            async with anyio.create_task_group() as tasks:
                listening = AgentTurn(NAME, host, sink, tasks, self._abort_soon(tasks))
                turn = self._turn = _CopilotTurn(listening, sink)
                try:
                    await self._ask(self._session.send(text), "take the prompt")
                    tasks.start_soon(self._watch, turn)
                    await turn.follow()
                    await listening.finish()
                except anyio.get_cancelled_exc_class():
                    listening.cancel_requests()
                    await self._abort(turn)
                    raise
                finally:
                    await listening.close()
                    self._turn = None
                tasks.cancel_scope.cancel()
        except ExceptionGroup as group:
            raise innermost_error(group) from group
        return "".join(listening.said)

    def _abort_soon(self, tasks: Any) -> Any:
        return lambda: tasks.start_soon(self._abort_quietly)

    async def _abort_quietly(self) -> None:
        with suppress(Exception):
            await self._session.abort()

    async def _abort(self, turn: _CopilotTurn) -> None:
        """End the runtime's turn; what it still says belongs to it."""
        with anyio.move_on_after(CANCEL_S, shield=True):
            await self._abort_quietly()
            with suppress(Failure):
                await turn.follow()
            return
        # It did not stop: another prompt would be queued behind the one that the user has cancelled.
        await self.close()

    async def _is_alive(self, client: Any) -> bool:
        try:
            with anyio.fail_after(REQUEST_S):
                await client.ping()
        except Exception:
            return False
        return True

    async def _watch(self, turn: _CopilotTurn) -> None:
        client = self._client
        while client is not None and await self._is_alive(client):  # noqa: ASYNC110  the SDK has no event for it
            await anyio.sleep(ALIVE_S)
        turn.fail(
            Failure(
                "provider_error",
                "The Copilot runtime has ended",
                reason="agent_ended",
                retryable=True,
                action="retry",
                hint="It is started again by the next prompt",
            )
        )


class _CopilotTurn:
    """The events of one turn, in order, from the SDK's callback to the sink."""

    def __init__(self, listening: AgentTurn, sink: Sink) -> None:
        self.listening = listening
        self._sink = sink
        self._events: deque[JsonObject] = deque()
        self._wake = anyio.Event()
        self._failure: Failure | None = None

    def put(self, event: JsonObject) -> None:
        if len(self._events) >= MAX_EVENTS:
            self.fail(_failed("Copilot sends events faster than they can be stored", "agent_refused"))
        else:
            self._events.append(event)
            self._wake.set()

    def fail(self, failure: Failure) -> None:
        self._failure = self._failure or failure
        self._wake.set()

    async def follow(self) -> None:
        """Report events until the runtime is idle. Raises the failure that it reports."""
        while True:
            while self._events:
                event = self._events.popleft()
                kind = event.get("type")
                if kind == "session.idle":
                    return
                if kind == "session.error":
                    raise _session_error(event.get("data"))
                await self._report(event)
            if self._failure is not None:
                raise self._failure
            self._wake = anyio.Event()
            await self._wake.wait()

    async def _report(self, event: JsonObject) -> None:
        if (window := window_of(event)) is not None:
            self._sink.set_window(*window)
        usage: TokenUsage | None = usage_of(event)
        if usage is not None:
            await self._sink.step_ended(usage)
        for update in updates_of(event):
            await self.listening.on_update(update)


def _raw(value: Any) -> JsonObject:
    """An event or a request of the SDK, as it was on the wire."""
    found = value if isinstance(value, dict) else value.to_dict()
    raw = getattr(value, "raw_type", None)
    return found | {"type": raw} if raw else found


def _session_error(data: Any) -> Failure:
    found = data if isinstance(data, dict) else {}
    status, message = found.get("statusCode"), found.get("message") or "The runtime reported an error"
    kind = str(found.get("errorType") or "")
    if kind == "authentication" or status in (401, 403):
        return Failure(
            "provider_error",
            f"Copilot wants a login: {message}. Run `copilot` once and type /login",
            reason="no_key",
            action="enter_key",
        )
    return _failed(f"Copilot: {message}", "agent_refused")


def _failed(message: str, reason: str) -> Failure:
    return Failure("provider_error", message[:2000], reason=reason, retryable=True, action="retry")
