"""All servers of the process: who wants which, and the one place that ends them. Knows no chat."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from ...system import redact
from ..base import Tool
from .config import ServerConfig
from .connection import Connection
from .state import ServerState
from .tool import mounted

MAX_CONNECTIONS = 64
"""In the process. The one that was not wanted for the longest time makes room."""

CLOSE_S = 0.5
"""For an orderly end of all of them together; the whole way out has two seconds."""

_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_SECRET = re.compile(r"key|token|secret|password|passwd|auth|credential", re.IGNORECASE)


class Servers:
    """`changed` is told a server's name and state whenever it has a new one."""

    def __init__(
        self,
        tasks: TaskGroup,
        environ: Mapping[str, str],
        changed: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._tasks = tasks
        self._environ = environ
        self._changed = changed
        self._connections: dict[bytes, Connection] = {}
        self._closed = False

    def want(self, configs: Sequence[ServerConfig]) -> None:
        """See to it that these are connected or being connected; returns at once."""
        for _ in self._wanted(configs):
            pass

    async def tools(self, configs: Sequence[ServerConfig], wait_s: float) -> list[Tool]:
        """The tools of those that are connected, after up to `wait_s` for those that are being connected."""
        connections = list(self._wanted(configs))
        with anyio.move_on_after(wait_s):
            for connection in connections:
                await connection.settled()
        return list(mounted(connections))

    def states(self, configs: Sequence[ServerConfig] | None = None) -> list[ServerState]:
        """How the servers are: all, or those that these configurations name."""
        keys = self._connections if configs is None else [config.key for config in configs]
        return [self._connections[key].state for key in keys if key in self._connections]

    def kill_all(self) -> None:
        """End all of them now, without waiting for anything; no other is started."""
        self._closed = True
        links = [one.link for one in self._connections.values() if one.link is not None]
        marks = {link.mark for link in links if link.mark is not None}
        for connection in self._connections.values():
            connection.kill()
        if marks:
            from .stdio import kill_marked

            kill_marked(marks)

    async def close(self) -> None:
        """Let all of them end in order for a moment, then end what is left."""
        self._closed = True
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_S):
            for connection in self._connections.values():
                connection.stop()
            for connection in self._connections.values():
                await connection.over.wait()
        self.kill_all()

    def _wanted(self, configs: Sequence[ServerConfig]) -> Iterable[Connection]:
        for config in configs:
            if config.enabled and not self._closed:
                connection = self._connections.get(config.key)
                if connection is None or connection.over.is_set():
                    connection = self._start(config)
                connection.touch()
                yield connection

    def _start(self, config: ServerConfig) -> Connection:
        redact.learn(_secrets(config))
        self._make_room()
        connection = Connection(config, self._environ, self._tell)
        self._connections[config.key] = connection
        self._tasks.start_soon(connection.run, name=f"mcp {config.name}")
        return connection

    def _make_room(self) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            key = min(self._connections, key=lambda each: self._connections[each].last_wanted)
            self._connections.pop(key).kill()

    def _tell(self, state: ServerState) -> None:
        self._changed(state.name, msgspec.to_builtins(state))


def _secrets(config: ServerConfig) -> Iterable[str]:
    """What a configuration may hold of secrets: most headers, and variables by their names."""
    for name, value in config.headers.items():
        if name.lower() not in _HARMLESS:
            yield value
            yield value.rpartition(" ")[2]
    for name, value in config.env.items():
        if _SECRET.search(name):
            yield value
