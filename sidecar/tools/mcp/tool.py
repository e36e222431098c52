"""A tool of a server as one of the chat's own: its name for the model, the leave it needs, the call."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...providers.base import ToolSpec
from ..base import Hands, Kind, Need, Outcome, Ready

if TYPE_CHECKING:
    from .connection import Connection
    from .offers import Offer

MAX_NAME = 64
"""Of a tool, by the strictest provider."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


class MountedTool:
    """Goes through the server's connection of the moment, so it works again when the server was started again."""

    def __init__(self, name: str, offer: Offer, connection: Connection) -> None:
        self.spec = ToolSpec(name, offer.description, offer.input_schema)
        self.kind: Kind = "read" if offer.reads_only else "other"
        self.alone = not offer.reads_only
        self._offer = offer
        self._connection = connection

    def title(self, input: dict[str, Any]) -> str:
        return f"{self._connection.name}: {self._offer.title}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        subject = f"{self._connection.name}/{self._offer.name}"

        async def run() -> Outcome:
            return await self._connection.call(self._offer.name, input, hands.show)

        return Ready(Need("mcp", subject, reads_only=self._offer.reads_only), run)


def mounted(connections: Iterable[Connection]) -> list[MountedTool]:
    """All tools of these, each under a name of its own, which does not depend on the order they are offered in."""
    tools: dict[str, MountedTool] = {}
    for connection in connections:
        for offer in connection.offers:
            name = _name(connection.name, offer.name)
            if name in tools:
                name = _marked(name, connection.name, offer.name)
            tools[name] = MountedTool(name, offer, connection)
    return list(tools.values())


def _name(server: str, tool: str) -> str:
    plain = f"mcp__{server}__{tool}"
    name = _FOREIGN.sub("_", plain)
    return name if name == plain and len(name) <= MAX_NAME else _marked(name, server, tool)


def _marked(name: str, server: str, tool: str) -> str:
    """The name cut, with what tells it from all others that are cut or spelled to the same."""
    mark = sha256(f"{server}\0{tool}".encode(errors="replace")).hexdigest()[:8]
    return f"{name[: MAX_NAME - 9]}_{mark}"
