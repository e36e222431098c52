"""What the tests of mounted servers share: servers of their own, the states that are reported, and their processes."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio

from sidecar.tools.base import Tool, ToolOutcome
from sidecar.tools.mcp import ServerConfig, Servers, ServerState, parse_servers
from sidecar.workspace.paths import Workspace
from tests.support.patience import PATIENCE_S
from tests.unit.tools.context import FolderContext, carry_out

HERE = Path(__file__).parent


class Mount:
    """Servers in a task group of the test's own; `told` is every state that was announced."""

    def __init__(self, servers: Servers, context: FolderContext) -> None:
        self.servers = servers
        self.context = context
        self.told: list[dict[str, Any]] = []
        self._news = anyio.Event()

    def hear(self, name: str, state: dict[str, Any]) -> None:
        assert state["name"] == name
        self.told.append(state)
        self._news.set()
        self._news = anyio.Event()

    async def until(self, condition: Callable[[ServerState], bool]) -> ServerState:
        """The state of the first server, once it is as wanted."""
        with anyio.fail_after(PATIENCE_S):
            while not condition(self.servers.states()[0]):
                await self._news.wait()
        return self.servers.states()[0]

    async def reaches(self, state: str) -> ServerState:
        return await self.until(lambda found: found.state == state)

    async def tools(self, *configs: ServerConfig) -> dict[str, Tool]:
        return {tool.spec.name: tool for tool in await self.servers.tools(configs, PATIENCE_S)}

    async def call(self, tool: Tool, **input: Any) -> ToolOutcome:
        with anyio.fail_after(PATIENCE_S):
            return await carry_out(tool, input, self.context)


@asynccontextmanager
async def mounting(tmp_path: Path, environ: dict[str, str] | None = None) -> AsyncIterator[Mount]:
    """Servers that are closed at the end, which leaves nothing behind."""
    async with anyio.create_task_group() as tasks:
        context = FolderContext(Workspace(str(tmp_path)))
        mount: Mount
        servers = Servers(
            tasks, dict(os.environ if environ is None else environ), lambda *news: mount.hear(*news)
        )
        mount = Mount(servers, context)
        try:
            yield mount
        finally:
            await servers.close()


def plain(*words: str, name: str = "plain", **more: Any) -> ServerConfig:
    """The server without the SDK, with a command line like no other."""
    return _config(name, "plain_server.py", ["-S", "-E"], words, more)


def by_sdk(*words: str, name: str = "sdk", **more: Any) -> ServerConfig:
    return _config(name, "sdk_server.py", [], words, more)


def token_of(config: ServerConfig) -> str:
    return next(word for word in config.args if word.startswith("token-"))


def processes(token: str) -> set[int]:
    """Those whose command line holds the token; one that only waits to be reaped has none."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def _config(
    name: str, script: str, flags: list[str], words: tuple[str, ...], more: dict[str, Any]
) -> ServerConfig:
    args = [*flags, str(HERE / script), f"token-{uuid4().hex}", *words]
    entry = {"name": name, "command": sys.executable, "args": args, **more}
    return parse_servers([entry], "mcpServers")[0]
