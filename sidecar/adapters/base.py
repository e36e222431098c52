"""What Sidecar must know of a coding agent to serve it. Plain values: an adapter does nothing by itself."""

from __future__ import annotations

from typing import Literal

import msgspec

EntryFormat = Literal["plain", "stdio", "local", "opencode", "toml"]
"""How an agent writes a server: `command` and `args` alone; with `type` stdio or local; one list; a TOML table."""


class ServerFile(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent reads its MCP servers from. `user` is relative to the home, `project` to the project; None where
    there is no such file. `home_variable` names a folder that replaces the first part of `user`.
    """

    user: str | None
    project: str | None
    container: tuple[str, ...] = ("mcpServers",)
    entry: EntryFormat = "plain"
    home_variable: str | None = None


HookShape = Literal["claude", "qwen", "gemini", "copilot"]
"""How an agent writes hooks: groups with a matcher and a limit in seconds; the same in milliseconds; with names too; a
list per event.
"""


class HookFile(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent reads its hooks from, and for which of its events ours is registered. `own`: the file holds
    nothing else.
    """

    user: str
    project: str
    events: tuple[str, ...]
    shape: HookShape = "claude"
    own: bool = False
    home_variable: str | None = None


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """One coding agent.

    `clients` are the names by which it introduces itself over MCP; one that ends with `*` is a prefix.
    `session_variable` holds the id of its session in the environment of its MCP servers; `session_meta` is the path of
    the id in the `_meta` of its requests.
    """

    name: str
    title: str
    clients: tuple[str, ...]
    marks: tuple[str, ...] = ()
    """Environment variables that only this agent sets."""
    session_variable: str | None = None
    session_meta: tuple[str, ...] = ()
    servers: ServerFile | None = None
    hooks: HookFile | None = None
    program: str | None = None
    """The command by which it is found on PATH."""
    instructions: str | None = None
    """The file of a project that it reads as instructions."""
    verified: bool = False
    """Whether `connect` was tried with the agent itself; otherwise it follows the agent's documentation."""
    notes: tuple[str, ...] = ()
    """What the user must know besides, in sentences."""
