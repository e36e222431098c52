"""Which tools a chat's model can call, where each comes from, and how often it was called."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..tools.base import Tool
from .chats import Chats
from .desk import Desk, ours
from .identity import Address

Source = Literal["builtin", "app", "mcp"]


class ToolEntry(msgspec.Struct, frozen=True):
    name: str
    description: str
    kind: str
    source: Source
    enabled: bool
    calls: int
    server: str | None
    input_schema: dict[str, Any]


class ServerEntry(msgspec.Struct, frozen=True):
    name: str
    state: str
    tools: int
    attempts: int
    error: str | None = None
    left_out: tuple[str, ...] = ()


class Inventory(msgspec.Struct, frozen=True):
    tools: list[ToolEntry]
    servers: list[ServerEntry]


async def tools(chats: Chats, address: Address) -> Inventory:
    """The tools of a chat that exists; without one, those that a chat of the project would have."""
    found = await chats.find(address)
    if found is None or found.deleted:
        return Inventory(await _in_general(chats, await chats.store.tool_uses(None)), _servers(chats, None))
    session = await chats.known(address)
    calls = await chats.store.tool_uses(session.chat.id)
    enabled = {spec.name for spec in (await session.desk.toolbox()).specs}
    entries = [
        _entry(tool, tool.spec.name in enabled, calls.get(tool.spec.name, 0), chats)
        for tool in await session.desk.tools(0)
    ]
    return Inventory(entries, _servers(chats, session.desk))


async def _in_general(chats: Chats, calls: dict[str, int]) -> list[ToolEntry]:
    tools = await ours(chats.workshop, chats.workshop.settings(None))
    return [_entry(tool, True, calls.get(tool.spec.name, 0), chats) for tool in tools]


def _entry(tool: Tool, enabled: bool, calls: int, chats: Chats) -> ToolEntry:
    name = tool.spec.name
    server = name.split("__")[1] if name.startswith("mcp__") and name.count("__") > 1 else None
    offered = {tool.name for tool in chats.workshop.app.tools}
    source: Source = "mcp" if server else "app" if name in offered else "builtin"
    return ToolEntry(
        name, tool.spec.description, tool.kind, source, enabled, calls, server, tool.spec.input_schema
    )


def _servers(chats: Chats, desk: Desk | None) -> list[ServerEntry]:
    """How the chat's servers are; those of a project that is not trusted do not run."""
    if desk is None:
        return []
    wanted = desk.mcp_servers()
    if not wanted:
        return []
    return [
        ServerEntry(state.name, state.state, state.tools, state.attempts, state.error, state.left_out)
        for state in chats.workshop.servers().states(wanted)
    ]
