"""Handlers of `tools/*` and `commands/list`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Empty
from sidecar_protocol.peer import Call

from ...chat.actions import engine_list, tool_list
from ...chat.actions.commands import COMMANDS
from ...chat.sessions.chats import Chats
from ...rpc.dispatch import Handler
from .client import NativeClientApp
from .wire import address_of, as_wire


class ToolHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]], client: NativeClientApp) -> None:
        self._chats = ready
        self._client = client

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "tools/list": self._list,
            "tools/offer": self._offer,
            "commands/list": self._commands,
            "engines/list": self._engines,
        }

    async def _list(self, call: Call, params: m.ToolsListParams) -> m.ToolsListResult:
        found = await tool_list.tools(await self._chats(), address_of(params))
        return m.ToolsListResult(
            items=[as_wire(entry, m.ToolInfo) for entry in found.tools],
            servers=[as_wire(server, m.ToolServer) for server in found.servers],
        )

    async def _engines(self, call: Call, params: Empty) -> m.EnginesListResult:
        found = await engine_list.engines(await self._chats())
        return m.EnginesListResult(items=[as_wire(state, m.EngineInfo) for state in found])

    async def _offer(self, call: Call, params: m.ToolsOfferParams) -> m.ToolsOfferResult:
        return m.ToolsOfferResult(count=self._client.offer(params.tools))

    async def _commands(self, call: Call, params: m.CommandsListParams) -> m.CommandsListResult:
        items = [
            m.CommandInfo(name=command.name, arguments=command.arguments, description=command.description)
            for command in COMMANDS.values()
        ]
        return m.CommandsListResult(items=items)
