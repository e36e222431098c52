"""Lists the tools that a chat's model can call, their origin, and how often each was called."""

from __future__ import annotations

from typing import Literal

import msgspec

from ...model import JsonObject
from ...tools.base import Tool
from ..journal.identity import ChatAddress
from ..sessions.chats import Chats
from ..tool_calls.environment import ToolEnvironment, own_tools

ToolSource = Literal["builtin", "app", "mcp"]


class ToolEntry(msgspec.Struct, frozen=True):
    name: str
    description: str
    kind: str
    source: ToolSource
    enabled: bool
    calls: int
    server: str | None
    input_schema: JsonObject


class ServerEntry(msgspec.Struct, frozen=True):
    name: str
    state: str
    tools: int
    attempts: int
    error: str | None = None
    left_out: tuple[str, ...] = ()


class ToolList(msgspec.Struct, frozen=True):
    tools: list[ToolEntry]
    servers: list[ServerEntry]


async def tools(chats: Chats, address: ChatAddress) -> ToolList:
    """The tools of an existing chat; without one, those that a chat of the project would have."""
    found = await chats.find(address)
    if found is None or found.deleted:
        return ToolList(await _default_tools(chats, await chats.store.tool_call_counts(None)), [])
    session = await chats.existing_session(address)
    calls = await chats.store.tool_call_counts(session.chat.id)
    enabled = {spec.name for spec in (await session.environment.toolbox()).specs}
    entries = [
        _entry(tool, tool.spec.name in enabled, calls.get(tool.spec.name, 0), chats)
        for tool in await session.environment.tools(0)
    ]
    return ToolList(entries, await _servers(chats, session.environment))


async def _default_tools(chats: Chats, calls: dict[str, int]) -> list[ToolEntry]:
    tools = await own_tools(chats.services, chats.services.settings(None))
    return [_entry(tool, True, calls.get(tool.spec.name, 0), chats) for tool in tools]


def _entry(tool: Tool, enabled: bool, calls: int, chats: Chats) -> ToolEntry:
    name = tool.spec.name
    server = name.split("__")[1] if name.startswith("mcp__") and name.count("__") > 1 else None
    offered = {tool.name for tool in chats.services.app.tools}
    source: ToolSource = "mcp" if server else "app" if name in offered else "builtin"
    return ToolEntry(
        name, tool.spec.description, tool.kind, source, enabled, calls, server, tool.spec.input_schema
    )


async def _servers(chats: Chats, environment: ToolEnvironment) -> list[ServerEntry]:
    """The state of the chat's MCP servers; those of an untrusted project do not run."""
    entries = [
        ServerEntry(
            name, "failed", 0, 0, f"no value is stored for {', '.join(missing)}: send `mcpServers` with it"
        )
        for name, missing in (await environment.unset_secrets()).items()
    ]
    wanted = await environment.mcp_servers()
    if not wanted:
        return entries
    return entries + [
        ServerEntry(state.name, state.state, state.tools, state.attempts, state.error, state.left_out)
        for state in chats.services.servers().states(wanted)
    ]
