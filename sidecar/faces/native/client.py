"""The client as a turn may ask it something: requests that go the other way over the same pipe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sidecar_protocol import messages as m
from sidecar_protocol.errors import RpcError

from ...chat.apps import Capability, Offered
from ...model.failures import Failure, invalid

MAX_TOOLS = 128
"""More than a model can choose from; providers refuse little more."""

KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other")

Request = Callable[[str, Any], Awaitable[Any]]


class Client:
    """What `chat` knows as the app. `request` asks over the wire and waits."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._capabilities = m.ClientCapabilities()
        self._tools: list[Offered] = []

    def greeted(self, params: m.InitializeParams) -> None:
        self._capabilities = params.capabilities
        self._tools = checked_tools(params.tools)

    def offer(self, tools: Sequence[m.OfferedTool]) -> int:
        """These are the app's tools from the next turn on."""
        self._tools = checked_tools(tools)
        return len(self._tools)

    def can(self, capability: Capability) -> bool:
        return bool(getattr(self._capabilities, capability))

    @property
    def tools(self) -> list[Offered]:
        return self._tools

    async def ask_permission(self, request: dict[str, Any]) -> dict[str, Any]:
        return await self._ask("permission/request", request)

    async def ask_input(self, request: dict[str, Any]) -> dict[str, Any]:
        return await self._ask("input/request", request)

    async def call_tool(self, request: dict[str, Any]) -> dict[str, Any]:
        return await self._ask("tool/call", request)

    async def read_buffer(self, request: dict[str, Any]) -> dict[str, Any]:
        return await self._ask("fs/readBuffer", request)

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await self._request(method, params)
        except RpcError as error:
            raise Failure(
                "internal_error", f"The app answered {method} with an error: {error.message}"
            ) from error
        if not isinstance(answer, dict):
            raise Failure("internal_error", f"The app answered {method} with something that is no object")
        return answer


def checked_tools(tools: Sequence[m.OfferedTool]) -> list[Offered]:
    """The app's tools, if every provider could be told of them."""
    if len(tools) > MAX_TOOLS:
        raise invalid("tools", f"at most {MAX_TOOLS} tools")
    names: set[str] = set(_ours()) if tools else set()
    for place, tool in enumerate(tools):
        field = f"tools[{place}]"
        plain = tool.name.replace("_", "").replace("-", "")
        if not (1 <= len(tool.name) <= 64 and plain.isascii() and plain.isalnum()):
            raise invalid(f"{field}.name", "1 to 64 letters, digits, `_` and `-`")
        if tool.name in names:
            raise invalid(f"{field}.name", f"a name of its own; there is a tool {tool.name!r} already")
        if tool.kind not in KINDS:
            raise invalid(f"{field}.kind", f"one of {', '.join(KINDS)}")
        if tool.timeout_ms is not None and tool.timeout_ms < 1:
            raise invalid(f"{field}.timeoutMs", "a positive number")
        names.add(tool.name)
    return [
        Offered(tool.name, tool.description, tool.input_schema, tool.kind, tool.timeout_ms)  # type: ignore[arg-type]
        for tool in tools
    ]


def _ours() -> list[str]:
    from ...tools.builtin import builtin
    from ...tools.fetch_url import FetchUrl

    return [tool.spec.name for tool in builtin("off", (), ())] + [FetchUrl.spec.name]
