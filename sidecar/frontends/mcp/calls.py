"""`tools/call`: runs a call to its result, with questions to the host's user and progress on the way.

Whatever goes wrong with a tool is a result with the reason; only a call that is no call gets an error.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup
from sidecar_protocol.errors import CODES, RpcError
from sidecar_protocol.peer import Peer

from ...chat.actions.agent_calls import run_agent_call
from ...chat.sessions.chats import Chats
from ...model.failures import Failure, out_of_memory
from ...text.suggest import did_you_mean
from ...tools.base import ToolInput
from ..base import Host
from .agent import Agents
from .agent_events import store_events
from .arguments import read_arguments
from .eras import Caller, complete
from .messages import CallToolParams, McpResult, McpToolResult, TextContent
from .questions import AgentApp, ElicitedForm, Form, FormAnswer, new_state, read_answer
from .tool_table import SANDBOX_TOOLS, TOOLS, AgentTool
from .views import VIEWS, ToolFailed, ViewContext

logger = logging.getLogger(__name__)

MAX_WAITING = 32
"""Calls that wait for answers of the newer protocol; the oldest is denied when there are more."""

ANSWER_S = 600.0
"""How long a call waits for the client to bring its answer; it may never come back."""

PROGRESS_S = 0.5
"""The least time between two progress notifications of a call."""

STORE_EVENTS_S = 5.0
"""How often the events of hooks are stored while no tool is called; a session may end at any time."""

QUESTION = "question"
"""The name of the one question of an `input_required` result."""


class ToolCalls:
    """Runs calls for all requests of the connection, and keeps those that wait for an answer."""

    def __init__(self, agents: Agents, host: Host, peer: Peer, tasks: TaskGroup) -> None:
        self._agents = agents
        self._host = host
        self._peer = peer
        self._tasks = tasks
        self._waiting: dict[str, _RunningCall] = {}
        self._storing = anyio.Lock()

    async def run(self, caller: Caller, params: CallToolParams) -> McpResult:
        """Run the call, or continue one that waits for the answers that these parameters bring."""
        running = self._resume(params) if params.request_state is not None else self._begin(caller, params)
        try:
            await running.wait()
        except BaseException:
            running.cancel()
            raise
        if running.question is not None:
            return self._ask(running)
        return complete(caller, running.require_result())

    def _begin(self, caller: Caller, params: CallToolParams) -> _RunningCall:
        tool = TOOLS.get(params.name)
        if tool is None:
            near = did_you_mean(params.name[:64], TOOLS)
            remedy = f"; did you mean {near[0]}?" if near else "; tools/list has them all"
            raise RpcError(CODES["invalid_params"], f"`name`: there is no tool {params.name[:64]!r}{remedy}")
        running = _RunningCall()
        elicit = None
        if caller.can_elicit:
            elicit = running.ask if caller.is_modern else self._elicit
        progress = _Progress(self._peer, caller.meta.get("progressToken"))
        self._tasks.start_soon(
            running.run, lambda: self._result(caller, tool, params, AgentApp(elicit), progress)
        )
        return running

    def _resume(self, params: CallToolParams) -> _RunningCall:
        running = self._waiting.pop(params.request_state or "", None)
        if running is None:
            raise RpcError(
                CODES["invalid_params"], "`requestState`: no call waits under it; send the call without it"
            )
        answer = (params.input_responses or {}).get(QUESTION)
        running.answer(read_answer(answer))
        return running

    def _ask(self, running: _RunningCall) -> McpResult:
        """The interim result that asks the client to bring the answer to the call's question."""
        question, state = running.question, new_state()
        assert question is not None
        while len(self._waiting) >= MAX_WAITING:
            self._waiting.pop(next(iter(self._waiting))).cancel()
        self._waiting[state] = running
        self._tasks.start_soon(self._expire, state)
        params = {"mode": "form", "message": question.message, "requestedSchema": question.schema}
        return {
            "resultType": "input_required",
            "inputRequests": {QUESTION: {"method": "elicitation/create", "params": params}},
            "requestState": state,
        }

    async def store_events_forever(self) -> None:
        """Store what the hooks of agents have left, also while no tool is called."""
        while True:
            try:
                await self._store_agent_events(await self._host.opened_chats())
            except Failure as failure:
                logger.info("events of agents wait", extra={"error": failure.message})
            except Exception:
                # A bug here must not end the server.
                logger.exception("events of agents could not be stored")
            await anyio.sleep(STORE_EVENTS_S)

    async def _store_agent_events(self, chats: Chats) -> None:
        """Store what waits now, so that a call finds it. One task at a time does it."""
        if not self._storing.locked():
            async with self._storing:
                while await store_events(chats):
                    pass

    async def _expire(self, state: str) -> None:
        await anyio.sleep(ANSWER_S)
        running = self._waiting.pop(state, None)
        if running:
            running.cancel()

    async def _elicit(self, message: str, schema: Form) -> FormAnswer:
        """Ask by a request to the client, as the versions with a handshake do."""
        try:
            answer = await self._peer.request(
                "elicitation/create", {"message": message, "requestedSchema": schema}
            )
        except RpcError as error:
            raise Failure("internal_error", f"The host did not answer: {error.message}") from error
        return read_answer(answer)

    async def _result(
        self, caller: Caller, tool: AgentTool, params: CallToolParams, app: AgentApp, progress: _Progress
    ) -> McpToolResult:
        arguments = read_arguments(params.arguments, tool.schema)
        if arguments is None:
            return _error_result("`arguments` must be an object.")
        missing = [name for name in tool.required if name not in arguments]
        if missing:
            return _error_result(
                f"`{missing[0]}` is missing; {tool.name} takes {', '.join(tool.properties)}."
            )
        chats = await self._host.opened_chats()
        refused = self._refusal(caller, tool)
        if refused:
            return _error_result(refused)
        await self._store_agent_events(chats)
        session = await self._agents.session(caller)
        if tool.own:
            if tool.name == "search_context":
                arguments = {"scope": "project", **arguments}
            result = await run_agent_call(
                chats,
                session,
                tool.name,
                arguments,
                app,
                progress.show,
                found_by_search=tool.effect != "reads",
            )
            outcome = result.outcome
            return _texts(
                outcome.text, failed=outcome.failed or outcome.denied or outcome.not_run is not None
            )
        context = ViewContext(chats, session, self._host, app)
        return _texts(await VIEWS[tool.name](context, ToolInput(arguments)))

    def _refusal(self, caller: Caller, tool: AgentTool) -> str | None:
        """Why the settings do not let this agent use the tool."""
        name, chosen = self._agents.adapter(caller).name, self._agents.chosen(caller)
        if not chosen.enabled:
            return f"Sidecar is switched off for this agent: `adapters.{name}.enabled` in its settings."
        if tool.name in SANDBOX_TOOLS and not chosen.sandbox_tools:
            return f"{tool.name} is switched off: `adapters.{name}.sandbox_tools` in Sidecar's settings."
        return None


class _RunningCall:
    """A call in progress: it has a result, or waits for the answer to a question."""

    def __init__(self) -> None:
        self.question: ElicitedForm | None = None
        self._result: McpToolResult | None = None
        self._scope = anyio.CancelScope()
        self._changed = anyio.Event()

    async def run(self, make: Callable[[], Awaitable[McpToolResult]]) -> None:
        result = _error_result("Cancelled.")
        try:
            with self._scope:
                result = await make()
        except (Failure, MemoryError) as error:
            failure = error if isinstance(error, Failure) else out_of_memory()
            result = _error_result(f"{failure.message}. {failure.hint}." if failure.hint else failure.message)
        except ToolFailed as error:
            result = _error_result(str(error))
        except Exception:
            # A bug ends its call, never the server: this runs in the task group of the process.
            logger.exception("a call failed")
            result = _error_result("The call failed inside the sidecar; its log says why.")
        finally:
            self._result = result
            self._changed.set()

    async def wait(self) -> None:
        """Wait for the result or a question."""
        await self._changed.wait()

    def require_result(self) -> McpToolResult:
        assert self._result is not None
        return self._result

    def cancel(self) -> None:
        self._scope.cancel()

    async def ask(self, message: str, schema: Form) -> FormAnswer:
        """Put a question, which ends the current request; wait for the answer that a later one brings."""
        self.question = question = ElicitedForm(message, schema)
        self._changed.set()
        return await question.wait()

    def answer(self, answer: FormAnswer) -> None:
        question, self.question = self.question, None
        self._changed = anyio.Event()
        if question is not None:
            question.answer(answer)


class _Progress:
    """Reports what a call prints, for a request that wants to know."""

    def __init__(self, peer: Peer, token: Any) -> None:
        self._peer = peer
        self._token = token if isinstance(token, str | int) else None
        self._characters = 0
        self._sent = 0.0

    async def show(self, text: str) -> None:
        self._characters += len(text)
        now = anyio.current_time()
        if self._token is None or now - self._sent < PROGRESS_S:
            return
        self._sent = now
        line = text.rstrip().rpartition("\n")[2][:200]
        params = {"progressToken": self._token, "progress": self._characters, "message": line}
        self._peer.notify("notifications/progress", params)


def _texts(text: str, *, failed: bool = False) -> McpToolResult:
    content: list[TextContent] = [{"type": "text", "text": text}]
    return {"content": content, "isError": True} if failed else {"content": content}


def _error_result(message: str) -> McpToolResult:
    return _texts(message, failed=True)
