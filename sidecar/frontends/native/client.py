"""Requests from the server to the client, over the same pipe: permissions, input, buffers and tools of the app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, get_args

import msgspec
from sidecar_protocol import limits
from sidecar_protocol import messages as m
from sidecar_protocol.errors import RpcError

from ...chat.services.client_app import (
    AppToolCall,
    BufferRequest,
    BufferWrite,
    Capability,
    InputAnswer,
    InputRequest,
    OfferedTool,
    PermissionAnswer,
    PermissionRequest,
)
from ...model import JsonObject
from ...model.content import GivenBlock, UserDecision
from ...model.failures import Failure, invalid_param
from ...tools.base import ToolOutcome
from ...tools.names import BUILT_IN
from . import greeting
from .wire import with_changes

DECISIONS: tuple[UserDecision, ...] = get_args(UserDecision)

SendRequest = Callable[[str, Any], Awaitable[Any]]


class NativeClientApp:
    """Implements `ClientApp` for `chat`. `request` sends a request over the wire and waits for its answer."""

    def __init__(self, request: SendRequest) -> None:
        self._request = request
        self._capabilities = m.ClientCapabilities()
        self._tools: list[OfferedTool] = []

    def on_initialize(self, params: m.InitializeParams) -> None:
        self._capabilities = params.capabilities
        self._tools = checked_tools(params.tools)

    def offer(self, tools: Sequence[m.OfferedTool]) -> int:
        """Set the app's tools, from the next turn on."""
        self._tools = checked_tools(tools)
        return len(self._tools)

    def can(self, capability: Capability) -> bool:
        return bool(getattr(self._capabilities, capability, False))

    @property
    def tools(self) -> list[OfferedTool]:
        return self._tools

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        # As its event has them: with every member that the contract requires of a change.
        params = with_changes(msgspec.to_builtins(request))
        return _permission_answer(await self._ask("permission/request", params))

    async def ask_input(self, request: InputRequest) -> InputAnswer:
        return _input_answer(await self._ask("input/request", request))

    async def call_tool(self, request: AppToolCall) -> ToolOutcome:
        return _app_outcome(await self._ask("tool/call", request))

    async def read_buffer(self, request: BufferRequest) -> str | None:
        text = (await self._ask("fs/readBuffer", request)).get("text")
        return text if isinstance(text, str) else None

    async def write_buffer(self, request: BufferWrite) -> None:
        raise Failure("internal_error", "The wire contract has no request that writes a buffer")

    async def _ask(self, method: str, request: msgspec.Struct | JsonObject) -> JsonObject:
        try:
            answer = await self._request(method, request)
        except RpcError as error:
            raise Failure(
                "internal_error", f"The app answered {method} with an error: {error.message}"
            ) from error
        if not isinstance(answer, dict):
            raise Failure("internal_error", f"The app answered {method} with something that is not an object")
        return answer


def _permission_answer(answer: JsonObject) -> PermissionAnswer:
    decision = answer.get("decision")
    if decision not in DECISIONS:
        raise Failure(
            "invalid_params", f"`decision`: {str(decision)[:80]!r} is not one of {', '.join(DECISIONS)}"
        )
    feedback, then = answer.get("feedback"), answer.get("then")
    return PermissionAnswer(
        decision, feedback if isinstance(feedback, str) else None, "stop" if then == "stop" else None
    )


def _input_answer(answer: JsonObject) -> InputAnswer:
    action = answer.get("action")
    if action not in ("accept", "decline", "cancel"):
        raise Failure(
            "invalid_params", f"`action`: {str(action)[:80]!r} is not one of accept, decline, cancel"
        )
    values = answer.get("values")
    return InputAnswer(action, values if isinstance(values, dict) else None)


def _app_outcome(answer: JsonObject) -> ToolOutcome:
    given = answer.get("content")
    blocks = [block for block in (given if isinstance(given, list) else []) if isinstance(block, dict)]
    texts = [block.get("text") or f"[{block.get('type', 'content')}]" for block in blocks]
    media = tuple(_medium(block) for block in blocks if block.get("type") in ("image", "audio"))
    failed = answer.get("isError") is True
    return ToolOutcome("\n".join(map(str, texts)) or "(no output)", failed=failed, media=media)


def _medium(block: JsonObject) -> GivenBlock:
    """An image or audio of the app; a member of a wrong type counts as absent."""
    names = ("data", "path", "blobId", "name")
    given = {name: block[name] for name in names if isinstance(block.get(name), str)}
    return msgspec.convert({"type": block["type"], **given}, GivenBlock)


def checked_tools(tools: Sequence[m.OfferedTool]) -> list[OfferedTool]:
    """Validate the app's tools: names and schemas that every provider accepts."""
    if len(tools) > greeting.MAX_TOOLS:
        raise invalid_param("tools", f"at most {greeting.MAX_TOOLS} tools")
    names = {*BUILT_IN}
    for place, tool in enumerate(tools):
        field = f"tools[{place}]"
        if not greeting.is_tool_name(tool.name):
            raise invalid_param(f"{field}.name", "1 to 64 letters, digits, `_` and `-`")
        if tool.name in names:
            raise invalid_param(f"{field}.name", f"a name of its own; there is a tool {tool.name!r} already")
        if tool.kind not in limits.TOOL_KINDS:
            raise invalid_param(f"{field}.kind", f"one of {', '.join(limits.TOOL_KINDS)}")
        if tool.timeout_ms is not None and tool.timeout_ms < 1:
            raise invalid_param(f"{field}.timeoutMs", "a positive number")
        names.add(tool.name)
    return [
        OfferedTool(tool.name, tool.description, tool.input_schema, tool.kind, tool.timeout_ms)  # type: ignore[arg-type]
        for tool in tools
    ]
