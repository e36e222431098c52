"""Services that are built on first use: most processes end without using all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from anyio.abc import TaskGroup

from ..store import Store
from ..system.lazy import lazy_module
from .settings_cache import EffectiveSettings

if TYPE_CHECKING:
    from .. import index as text_index
    from ..tools import mcp
    from ..tools.web import pages
else:
    text_index = lazy_module("sidecar.index")
    mcp = lazy_module("sidecar.tools.mcp")
    pages = lazy_module("sidecar.tools.web.pages")


class LazyServices:
    """The index, MCP servers and page fetcher of the process. `send_status` sends a status to the client."""

    def __init__(
        self,
        tasks: TaskGroup,
        in_force: EffectiveSettings,
        send_status: Callable[[str, Mapping[str, object]], None],
    ) -> None:
        self._tasks = tasks
        self._settings_cache = in_force
        self._send_status = send_status
        self.store: Store | None = None
        """Set once the database is open; nothing uses it before."""
        self.built_servers: mcp.Servers | None = None
        self._index: text_index.Index | None = None
        self._web: pages.PageFetcher | None = None

    def index(self) -> text_index.Index:
        """The index of tool output, files and texts of the app."""
        if self._index is None:
            assert self.store is not None
            self._index = text_index.Index(
                self.store.index, self._tasks, lambda: self._settings_cache.require(None).index
            )
            self._index.start()
        return self._index

    def servers(self) -> mcp.Servers:
        """The MCP servers of all chats."""
        if self.built_servers is None:
            self.built_servers = mcp.Servers(
                self._tasks, os.environ, lambda name, state: self._send_status("mcp", {"name": name, **state})
            )
        return self.built_servers

    def web(self) -> pages.PageFetcher:
        """The page fetcher of all chats: concurrent identical requests share one fetch, and there is one cache."""
        if self._web is None:
            assert self.store is not None
            self._web = pages.PageFetcher(self.store)
        return self._web

    def kill_servers(self) -> None:
        if self.built_servers:
            self.built_servers.kill_all()
