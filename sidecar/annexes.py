"""Rooms that are built when somebody first asks for them: most processes end without one of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anyio.abc import TaskGroup

from .in_force import InForce
from .store import Store
from .work_settings import index_settings

if TYPE_CHECKING:
    from .index import Index
    from .tools.mcp import Servers
    from .tools.web.pages import Web


class Annexes:
    """`tell` sends a status to the client."""

    def __init__(
        self, tasks: TaskGroup, in_force: InForce, tell: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self._tasks = tasks
        self._in_force = in_force
        self._tell = tell
        self.store: Store | None = None
        """Set once the database is open; nobody asks before."""
        self.built_servers: Servers | None = None
        self._index: Index | None = None
        self._web: Web | None = None

    def index(self) -> Index:
        """What is kept out of the windows."""
        if self._index is None:
            from .index import Index

            assert self.store is not None
            self._index = Index(
                self.store.index, self._tasks, lambda: index_settings(self._in_force.checked(None))
            )
            self._index.start()
        return self._index

    def servers(self) -> Servers:
        """The MCP servers of all chats."""
        if self.built_servers is None:
            from .tools.mcp import Servers

            self.built_servers = Servers(
                self._tasks, os.environ, lambda name, state: self._tell("mcp", {"name": name, **state})
            )
        return self.built_servers

    def web(self) -> Web:
        """The pages of the web, for all chats: identical requests share one, and there is one cache."""
        if self._web is None:
            from .tools.web.pages import Web

            assert self.store is not None
            self._web = Web(self.store)
        return self._web

    def kill_servers(self) -> None:
        if self.built_servers:
            self.built_servers.kill_all()
