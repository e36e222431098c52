"""All MCP servers of the process: which chat needs which, and the only place that ends them. Knows no chat."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import msgspec
from anyio.abc import TaskGroup

from ...model import JsonObject
from ...system import redact
from ...system.lazy import lazy_module
from ..base import Tool
from .config import ServerConfig
from .connection import ServerConnection
from .state import ServerState
from .tool import mount_tools

if TYPE_CHECKING:
    from . import stdio
else:
    stdio = lazy_module("sidecar.tools.mcp.stdio")

MAX_CONNECTIONS = 64
"""Servers in the process. The least recently used one is stopped for a new one."""

CLOSE_S = 0.5
"""Seconds for an orderly end of all of them together; the whole shutdown has two seconds."""

_PUBLIC_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_SECRET = re.compile(r"key|token|secret|pass|pwd|auth|credential|cookie|dsn|private|jwt|_pat$", re.IGNORECASE)
_CREDENTIAL = re.compile(
    r"(?=.*[0-9])(?=.*[A-Za-z])[^\s/\\]{20,}|[a-z][a-z0-9+.-]*://[^/\s]*:[^/\s]*@.*", re.DOTALL
)
"""A long word of letters and digits, or a URL with credentials."""


class Servers:
    """`changed` is called with the name and state of a server whenever the state changes."""

    def __init__(
        self,
        tasks: TaskGroup,
        environ: Mapping[str, str],
        changed: Callable[[str, JsonObject], None],
    ) -> None:
        self._tasks = tasks
        self._environ = environ
        self._changed = changed
        self._connections: dict[bytes, ServerConnection] = {}
        self._closed = False

    def want(self, configs: Sequence[ServerConfig]) -> None:
        """Make sure that these are connected or connecting; return at once."""
        for _ in self._connections_for(configs):
            pass

    async def tools(self, configs: Sequence[ServerConfig], wait_s: float) -> list[Tool]:
        """Return the tools of connected servers, after up to `wait_s` for those that are connecting."""
        connections = list(self._connections_for(configs))
        with anyio.move_on_after(wait_s):
            for connection in connections:
                await connection.wait_until_settled()
        return list(mount_tools(connections))

    def states(self, configs: Sequence[ServerConfig] | None = None) -> list[ServerState]:
        """Return the states of all servers, or of those that these configurations name."""
        keys = self._connections if configs is None else [config.key for config in configs]
        return [self._connections[key].state for key in keys if key in self._connections]

    def kill_all(self) -> None:
        """Kill all of them now, without waiting; no other is started."""
        self._closed = True
        # Taken before the kills, which clear the links.
        links = [one.link for one in self._connections.values() if one.link is not None]
        marks = {link.mark for link in links if link.mark is not None}
        for connection in self._connections.values():
            connection.kill()
        if marks:
            stdio.kill_marked(marks)

    async def close(self) -> None:
        """Let all of them end in an orderly way for a short time, then kill the rest."""
        self._closed = True
        # Shielded, or a cancelled shutdown would skip the orderly end; bounded, because a server may hang.
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_S):
            for connection in self._connections.values():
                connection.stop()
            for connection in self._connections.values():
                await connection.over.wait()
        self.kill_all()

    def _connections_for(self, configs: Sequence[ServerConfig]) -> Iterable[ServerConnection]:
        for config in configs:
            if config.enabled and not self._closed:
                connection = self._connections.get(config.key)
                if connection is None or connection.over.is_set():
                    connection = self._start(config)
                connection.touch()
                yield connection

    def _start(self, config: ServerConfig) -> ServerConnection:
        # Before the process starts: its first error message may quote the environment.
        redact.add_secrets(_secrets(config))
        self._kill_least_recent()
        connection = ServerConnection(config, self._environ, self._report_state)
        self._connections[config.key] = connection
        self._tasks.start_soon(connection.run, name=f"mcp {config.name}")
        return connection

    def _kill_least_recent(self) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            key = min(self._connections, key=lambda each: self._connections[each].last_wanted)
            self._connections.pop(key).kill()

    def _report_state(self, state: ServerState) -> None:
        self._changed(state.name, msgspec.to_builtins(state))


def _secrets(config: ServerConfig) -> Iterable[str]:
    """Return the possible secrets of a configuration: most headers, a query, and variables by name or by form."""
    for name, value in config.headers.items():
        if name.lower() not in _PUBLIC_HEADERS:
            yield value
            yield value.rpartition(" ")[2]
    for name, value in config.env.items():
        if _SECRET.search(name) or _CREDENTIAL.fullmatch(value):
            yield value
    if config.url is not None:
        for pair in urlsplit(config.url).query.split("&"):
            yield pair.partition("=")[2] or pair
