"""One turn of an agent: its updates become events of the turn, and its requests calls of our tools.

The connection calls `on_update` in the agent's order, and `answer` concurrently. Knows neither frames nor processes.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Literal

import anyio
import msgspec
from anyio.abc import TaskGroup
from sidecar_protocol.errors import RpcError as RpcError

from ...model import JsonObject
from ...providers.base import ToolCall
from ...tools.base import PlanEntry, Tool, ToolInput, ToolKind, ToolOutcome
from ...tools.people.ask_user import ANSWERS, AskUser
from ...tools.toolbox import CallResult
from ..base import EngineHost, Sink
from .content import result_text, text_of
from .intents import KINDS, names_path
from .tools import AgentTool, ReadRequest, TerminalRequest, WriteRequest

MAX_INPUT_BYTES = 64 * 1024
"""Bytes of a call's input in the journal; the content of a file that is written is in the ledger."""

MAX_RESULT = 32 * 1024
"""Characters of a result in the journal."""

MAX_CALLS = 10_000
"""Calls of one turn: an agent that announces more is no longer listened to about new ones."""

MAX_TERMINALS = 64
"""Terminals of one turn that the agent has not released."""

_INVALID_PARAMS, _METHOD_NOT_FOUND, _NOT_FOUND, _INTERNAL = -32602, -32601, -32002, -32603

_KNOWN_SILENT = (
    "user_message_chunk",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
)
"""Updates that change nothing of a turn."""

Decision = Literal["allowed", "denied", "cancelled"]


class _AgentCall:
    """A tool call of the agent, merged from its updates."""

    def __init__(self, id: str) -> None:
        self.described: JsonObject = {}
        self.call = ToolCall(id, "tool", {})
        self.tool: AgentTool | None = None
        self.decision: Decision | None = None
        self.decided = anyio.Event()
        self.ended = False
        self.parts = 0
        """Requests of the agent that run as parts of this call."""
        self.outcome: ToolOutcome | None = None
        """How it ended, while parts of it still run."""

    def decide(self, decision: Decision) -> None:
        if self.decision is None:
            self.decision = decision
            self.decided.set()

    @property
    def kind(self) -> ToolKind:
        return KINDS.get(str(self.described.get("kind")), "other")

    @property
    def title(self) -> str:
        return str(self.described.get("title") or self.described.get("kind") or "tool")


class AgentTurn:
    """Listens to the agent for one turn. `stop` is called when the user denies and stops the turn."""

    def __init__(
        self, engine: str, host: EngineHost, sink: Sink, tasks: TaskGroup, stop: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._host = host
        self._sink = sink
        self._tasks = tasks
        self._stop = stop
        self._calls: dict[str, _AgentCall] = {}
        self._terminals: dict[str, TerminalRequest] = {}
        self._lock = anyio.Lock()
        self._is_over = False
        self.said: list[str] = []

    async def on_update(self, update: JsonObject) -> None:
        # The lock: nothing may be reported of a turn whose end is committed.
        async with self._lock:
            if not self._is_over:
                await self._report(update)

    async def answer(self, method: str, params: JsonObject) -> Any:
        handlers = {
            "session/request_permission": self._request_permission,
            "fs/read_text_file": self._read_file,
            "fs/write_text_file": self._write_file,
            "terminal/create": self._create_terminal,
            "terminal/output": self._terminal_output,
            "terminal/wait_for_exit": self._wait_for_exit,
            "terminal/kill": self._kill_terminal,
            "terminal/release": self._release_terminal,
        }
        handler = handlers.get(method)
        if handler is None:
            raise RpcError(_METHOD_NOT_FOUND, f"There is no method {method[:80]!r} here")
        return await handler(params)

    async def ask_user(self, question: str, choices: Any, free_text: bool) -> str:
        """Ask the user a question of the agent; returns the answer, or that there is none."""
        tool = AskUser()
        call = ToolCall(f"own-{secrets.token_hex(6)}", tool.spec.name, {"question": question})
        if isinstance(choices, list) and choices:
            call = ToolCall(call.id, call.name, {**call.input, "choices": choices, "free_text": free_text})
        await self._sink.tool_started(call, tool.title(ToolInput(call.input)), tool.kind)
        result = await self._in_tasks(partial(self._host.run_own, tool, call))
        await self._sink.tool_ended(call, result)
        return result.outcome.text.removeprefix(ANSWERS)

    async def finish(self) -> None:
        """End what the agent has left open, because it has answered the prompt."""
        for terminal in self._terminals.values():
            terminal.kill()
        async with self._lock:
            for call in self._calls.values():
                if not call.ended and call.tool is not None:
                    call.decide("cancelled")
                    await self._end(call, ToolOutcome(result_text(call.described, {})))

    async def close(self) -> None:
        """Report nothing any more; every request that waits is answered as cancelled."""
        for call in self._calls.values():
            call.decide("cancelled")
        for terminal in self._terminals.values():
            terminal.kill()
        with anyio.CancelScope(shield=True):
            async with self._lock:
                self._is_over = True

    def cancel_requests(self) -> None:
        """Answer every open permission request as cancelled, as the protocol asks of a client that cancels."""
        for call in self._calls.values():
            call.decide("cancelled")

    async def _report(self, update: JsonObject) -> None:
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            text = text_of(update.get("content"))
            self.said.append(text)
            await self._sink.text(text)
        elif kind == "agent_thought_chunk":
            await self._sink.thought(text_of(update.get("content")))
        elif kind in ("tool_call", "tool_call_update"):
            await self._merge_call(update)
        elif kind == "plan":
            await self._sink.plan(_plan(update.get("entries")))
        elif kind == "usage_update":
            used, size = update.get("used"), update.get("size")
            if isinstance(used, int) and isinstance(size, int):
                self._sink.set_window(used, size)
        elif kind not in _KNOWN_SILENT:
            # Kept, because a newer protocol may say something that the user should know.
            await self._sink.notice("engine_event", {"engine": self._engine, "event": _bounded(update)})

    async def _merge_call(self, update: JsonObject) -> _AgentCall | None:
        id = update.get("toolCallId")
        if not isinstance(id, str) or (id not in self._calls and len(self._calls) >= MAX_CALLS):
            return None
        call = self._calls.get(id)
        is_new = call is None
        call = call or self._calls.setdefault(id, _AgentCall(f"{id}"))
        if call.ended or call.outcome is not None:
            return call
        call.described |= {name: value for name, value in update.items() if value is not None}
        call.call = ToolCall(call.call.id, _name(call.described), _input(call.described))
        if is_new:
            await self._sink.tool_started(call.call, call.title, call.kind)
        else:
            await self._sink.tool_changed(call.call, call.title)
        if update.get("status") in ("completed", "failed"):
            outputs = {id: terminal.output() for id, terminal in self._terminals.items()}
            text = result_text(call.described, outputs)
            await self._end(call, ToolOutcome(text, failed=update["status"] == "failed"))
        return call

    async def _end(self, call: _AgentCall, outcome: ToolOutcome) -> None:
        """End a call; one of which parts still run ends with the last of them."""
        if call.ended:
            return
        if call.parts:
            call.outcome = outcome
            return
        call.ended = True
        if call.tool is not None and call.decision == "allowed":
            call.tool.end(outcome)  # its own task reports the end, after hooks
        elif call.tool is None:
            await self._sink.tool_ended(call.call, _cut(outcome))

    async def _request_permission(self, params: JsonObject) -> JsonObject:
        described, options = params.get("toolCall"), params.get("options")
        if not isinstance(described, dict) or not isinstance(options, list):
            raise RpcError(_INVALID_PARAMS, "`toolCall` must be an object and `options` a list")
        async with self._lock:
            call = None if self._is_over else await self._merge_call(described)
            if call is not None and call.tool is None and not call.ended:
                call.tool = AgentTool(
                    self._engine, call.call.name, call.kind, call.title, dict(call.described)
                )
                self._tasks.start_soon(self._run_call, call, call.tool)
        if call is None or (call.ended and call.decision is None):
            return _outcome("cancelled", options)
        await call.decided.wait()
        if self._sink.stopped():
            self._stop()
            return _outcome("cancelled", options)
        return _outcome(call.decision or "cancelled", options)

    async def _run_call(self, call: _AgentCall, tool: AgentTool) -> None:
        """Ask for permission, let the agent run the call, and report its end."""
        async with anyio.create_task_group() as watching:

            async def pass_permission() -> None:
                await tool.allowed.wait()
                call.decide("allowed")

            watching.start_soon(pass_permission)
            result = await self._host.run_own(tool, call.call)
            watching.cancel_scope.cancel()
        call.decide("allowed" if tool.allowed.is_set() else "denied")
        call.ended = True
        await self._sink.tool_ended(call.call, result)

    async def _run_part(self, tool: Tool, call: _AgentCall | None) -> CallResult:
        """Run a request of the agent as a part of its call, or as a call of its own."""
        if call is not None:
            call.parts += 1
            try:
                return await self._host.run_own(tool, call.call)
            finally:
                call.parts -= 1
                if not call.parts and call.outcome is not None:
                    outcome, call.outcome = call.outcome, None
                    with anyio.CancelScope(shield=True):
                        await self._end(call, outcome)
        own = ToolCall(f"own-{secrets.token_hex(6)}", tool.spec.name, {"request": tool.spec.description})
        await self._sink.tool_started(own, tool.spec.description, tool.kind)
        result = await self._host.run_own(tool, own)
        await self._sink.tool_ended(own, result)
        return result

    async def _in_turn(self, tool: Tool, call: _AgentCall | None) -> CallResult:
        return await self._in_tasks(partial(self._run_part, tool, call))

    async def _in_tasks(self, work: Callable[[], Awaitable[CallResult]]) -> CallResult:
        """Run a request in the turn's tasks, so that a cancelled turn ends it."""
        done = anyio.Event()
        results: list[CallResult] = []

        async def run() -> None:
            try:
                results.append(await work())
            finally:
                done.set()

        if self._is_over:
            raise RpcError(_INTERNAL, "The turn has ended")
        self._tasks.start_soon(run)
        await done.wait()
        if not results:
            raise RpcError(_INTERNAL, "The turn was cancelled")
        return results[0]

    def _call_for(self, path: str | None, kinds: tuple[ToolKind, ...]) -> _AgentCall | None:
        """The open call that a request belongs to: the newest that names the file, or is of the kind."""
        open_calls = [one for one in reversed(self._calls.values()) if not one.ended and one.outcome is None]
        if path is not None:
            return next((one for one in open_calls if names_path(one.described, path)), None)
        return next((one for one in open_calls if one.kind in kinds), None)

    async def _read_file(self, params: JsonObject) -> JsonObject:
        path = _text(params, "path")
        tool = ReadRequest(path, _number(params, "line"), _number(params, "limit"))
        result = await self._in_turn(tool, self._call_for(path, ("read",)))
        if tool.text is None:
            raise RpcError(_NOT_FOUND, result.outcome.text)
        return {"content": tool.text}

    async def _write_file(self, params: JsonObject) -> JsonObject:
        path = _text(params, "path")
        call = self._call_for(path, ("edit",))
        allowed = call is not None and call.decision == "allowed"
        result = await self._in_turn(
            WriteRequest(path, _text(params, "content"), allowed_before=allowed), call
        )
        if result.outcome.failed or result.outcome.denied:
            raise RpcError(_INTERNAL, result.outcome.text)
        return {}

    async def _create_terminal(self, params: JsonObject) -> JsonObject:
        _text(params, "command")
        if len(self._terminals) >= MAX_TERMINALS:
            raise RpcError(_INTERNAL, f"{MAX_TERMINALS} terminals are open already; release some")
        call = self._call_for(None, ("execute",))
        allowed = call is not None and call.decision == "allowed"
        terminal = TerminalRequest(await self._host.runner(), params, allowed_before=allowed)
        refused = anyio.Event()
        results: list[CallResult] = []

        async def run() -> None:
            try:
                results.append(await self._run_part(terminal, call))
            finally:
                terminal.ended.set()
                refused.set()

        if self._is_over:
            raise RpcError(_INTERNAL, "The turn has ended")
        self._tasks.start_soon(run)
        await _first(terminal.started, refused)
        if not terminal.started.is_set():
            raise RpcError(_INTERNAL, results[0].outcome.text if results else "The turn was cancelled")
        id = f"term-{secrets.token_hex(6)}"
        self._terminals[id] = terminal
        return {"terminalId": id}

    async def _terminal_output(self, params: JsonObject) -> JsonObject:
        return self._terminal(params).state()

    async def _wait_for_exit(self, params: JsonObject) -> JsonObject:
        terminal = self._terminal(params)
        await terminal.ended.wait()
        return terminal.exit_status()

    async def _kill_terminal(self, params: JsonObject) -> JsonObject:
        self._terminal(params).kill()
        return {}

    async def _release_terminal(self, params: JsonObject) -> JsonObject:
        self._terminal(params).kill()
        del self._terminals[_text(params, "terminalId")]
        return {}

    def _terminal(self, params: JsonObject) -> TerminalRequest:
        found = self._terminals.get(_text(params, "terminalId"))
        if found is None:
            raise RpcError(_NOT_FOUND, "There is no such terminal")
        return found


def _outcome(decision: Decision, options: list[Any]) -> JsonObject:
    """The answer to a permission request. An allowed call is allowed once: rules for more are ours."""
    wanted = {"allowed": ("allow_once", "allow_always"), "denied": ("reject_once", "reject_always")}
    given = [
        option for option in options if isinstance(option, dict) and isinstance(option.get("optionId"), str)
    ]
    for kind in wanted.get(decision, ()):
        # Some agents offer several of a kind; the first is the narrowest.
        for option in given:
            if option.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
    return {"outcome": {"outcome": "cancelled"}}


def _name(described: Mapping[str, Any]) -> str:
    """The name of the agent's tool, where it says it; else the kind of the call."""
    meta = described.get("_meta")
    for extension in meta.values() if isinstance(meta, dict) else ():
        name = extension.get("toolName") if isinstance(extension, dict) else None
        if isinstance(name, str) and name:
            return name
    return str(described.get("kind") or "tool")


def _input(described: Mapping[str, Any]) -> JsonObject:
    raw = described.get("rawInput")
    return _bounded(raw) if isinstance(raw, dict) else {} if raw is None else _bounded({"input": raw})


def _bounded(value: JsonObject) -> JsonObject:
    """The value, or the beginning of its text when it is too long for the journal."""
    encoded = msgspec.json.encode(value)
    if len(encoded) <= MAX_INPUT_BYTES:
        return value
    return {"truncated": encoded[:MAX_INPUT_BYTES].decode(errors="ignore")}


def _cut(outcome: ToolOutcome) -> CallResult:
    if len(outcome.text) <= MAX_RESULT:
        return CallResult(outcome)
    return CallResult(
        msgspec.structs.replace(outcome, text=f"{outcome.text[:MAX_RESULT]}\n…"), truncated=True
    )


def _plan(entries: Any) -> list[PlanEntry]:
    found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [
        PlanEntry(
            str(entry.get("content", "")),
            entry["status"] if entry.get("status") in ("in_progress", "completed") else "pending",
        )
        for entry in found
    ]


def _text(params: JsonObject, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(_INVALID_PARAMS, f"`{name}` must be text")
    return value


def _number(params: JsonObject, name: str) -> int | None:
    value = params.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


async def _first(*events: anyio.Event) -> None:
    """Wait for any of these."""
    async with anyio.create_task_group() as tasks:

        async def wait(event: anyio.Event) -> None:
            await event.wait()
            tasks.cancel_scope.cancel()

        for event in events:
            tasks.start_soon(wait, event)
