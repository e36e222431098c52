"""A tool of an MCP server as a tool of the chat: its name for the model, the permission it needs, the call."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

from ...providers.base import ToolSpec
from ..base import Intent, PlannedCall, ToolContext, ToolInput, ToolKind, ToolOutcome

if TYPE_CHECKING:
    from .connection import ServerConnection
    from .offers import ToolOffer

MAX_NAME = 64
"""Characters of a tool name, by the strictest provider."""

_DISALLOWED = re.compile(r"[^A-Za-z0-9_-]")


class MountedTool:
    """Calls through the current connection of the server, so it works again after a restart of the server."""

    def __init__(self, name: str, offer: ToolOffer, connection: ServerConnection) -> None:
        self.spec = ToolSpec(name, offer.description, offer.input_schema)
        self.kind: ToolKind = "read" if offer.reads_only else "other"
        self.runs_alone = not offer.reads_only
        self._offer = offer
        self._connection = connection

    def title(self, input: ToolInput) -> str:
        return f"{self._connection.name}: {self._offer.title}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        subject = f"{self._connection.name}/{self._offer.name}"

        async def run() -> ToolOutcome:
            return await self._connection.call(self._offer.name, input.values, context.show)

        return PlannedCall(Intent("mcp", subject, reads_only=self._offer.reads_only), run)


def mount_tools(connections: Iterable[ServerConnection]) -> list[MountedTool]:
    """Return all tools of these servers under unique names, which do not depend on the order of the offers."""
    tools: dict[str, MountedTool] = {}
    for connection in connections:
        for offer in connection.offers:
            name = _tool_name(connection.name, offer.name)
            if name in tools:
                name = _hashed_name(name, connection.name, offer.name)
            tools[name] = MountedTool(name, offer, connection)
    return list(tools.values())


def _tool_name(server: str, tool: str) -> str:
    plain = f"mcp__{server}__{tool}"
    name = _DISALLOWED.sub("_", plain)
    return name if name == plain and len(name) <= MAX_NAME else _hashed_name(name, server, tool)


def _hashed_name(name: str, server: str, tool: str) -> str:
    """Return the shortened name, with a hash that tells it from others that are shortened or spelled the same."""
    mark = sha256(f"{server}\0{tool}".encode(errors="replace")).hexdigest()[:8]
    return f"{name[: MAX_NAME - 9]}_{mark}"
