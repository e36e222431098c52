"""The keys of a chat's configuration, as types.

`chat/open`, `chat/configure` and `config.updated` carry them as a plain object, whose keys the sidecar checks itself;
the schemas and the reference have these types.
"""

from __future__ import annotations

from typing import Any, Literal

from .base import Wire
from .prompts import Gate

__all__ = ["Budgets", "ChatConfig", "CompactionConfig", "GateSwitches", "McpServer", "ToolChoice"]


class ToolChoice(Wire, kw_only=True, frozen=True):
    """Which tools the model may call."""

    allow: list[str] | None = None
    """Only these, by name; all when absent or empty."""
    deny: list[str] | None = None
    """None of these."""


class GateSwitches(Wire, kw_only=True, frozen=True):
    """Switches for the blocks of context of every prompt of the chat."""

    open_files: Gate | None = None
    """The open files."""
    patches: Gate | None = None
    """What was changed lately."""
    git_diff: Gate | None = None
    """The state of the working tree."""
    retrieval: Gate | None = None
    """What was found in the index and in older turns."""


class Budgets(Wire, kw_only=True, frozen=True):
    """The most tokens that blocks of context may have."""

    per_file: int | None = None
    """Of one open file."""
    open_files: int | None = None
    """Of all open files."""
    diffs: int | None = None
    """Of the diffs of recorded changes."""
    git_diff: int | None = None
    """Of git's diff."""
    retrieval: int | None = None
    """Of what was found in the index and in older turns."""


class CompactionConfig(Wire, kw_only=True, frozen=True):
    """When old turns are replaced by a summary."""

    enabled: bool | None = None
    """Whether the chat is compacted without being asked."""
    background: float | None = None
    """The share of the budget from which it is compacted in the background."""
    blocking: float | None = None
    """The share from which a turn waits for that."""
    postponed_until: int | None = None
    """It is not compacted before it has so many turns."""


class McpServer(Wire, kw_only=True, frozen=True):
    """An MCP server of the chat: one of `command` and `url`."""

    name: str
    """1 to 64 letters, digits, `_` or `-`; its tools are called `mcp__NAME__TOOL`."""
    command: str | None = None
    """The program of a server to start."""
    args: list[str] | None = None
    """Its arguments."""
    env: dict[str, str] | None = None
    """Variables of its environment; shown as `(set)`."""
    cwd: str | None = None
    """The folder in which it is started."""
    url: str | None = None
    """The address of a server to reach."""
    headers: dict[str, str] | None = None
    """Headers of each request to it; shown as `(set)`."""
    timeout_ms: int | None = None
    """Maximum duration of a call."""
    start_timeout_ms: int | None = None
    """Maximum duration of its start."""
    enabled: bool | None = None
    """Whether it is used."""


class ChatConfig(Wire, kw_only=True, frozen=True):
    """The configuration of a chat. A key that the chat has not set has its value from the settings, and null clears
    it."""

    model: str | None = None
    """`provider:model`."""
    engine: str | None = None
    """What runs the turns."""
    effort: str | None = None
    """How hard the model should think; one of its `efforts` in `models/list`."""
    instructions: str | None = None
    """Instructions for the model that are sent with every prompt of the chat."""
    project_path: str | None = None
    """The folder that the chat works in, an absolute path."""
    mode: Literal["ask", "accept-edits", "read-only", "auto"] | None = None
    """What needs no permission."""
    window: int | None = None
    """The context window in tokens, in place of the model's."""
    output_reserve: int | None = None
    """Tokens that are reserved for the answer."""
    max_steps: int | None = None
    """How many requests to the model a turn may make."""
    tools: ToolChoice | None = None
    """Which tools the model may call."""
    gates: GateSwitches | None = None
    """Switches for blocks of context. Keys that are absent keep their value."""
    exclude: list[str] | None = None
    """Kinds, ids or labels of blocks that are never sent."""
    budgets: Budgets | None = None
    """The most tokens of blocks. Keys that are absent keep their value."""
    compaction: CompactionConfig | None = None
    """When old turns are replaced by a summary. Keys that are absent keep their value."""
    mcp_servers: list[McpServer] | None = None
    """MCP servers of this chat alone."""
    extra_folders: list[str] | None = None
    """Folders besides the project in which tools may work, absolute paths."""
    meta: Any = None
    """The app's own data: JSON of at most `maxMetaBytes`."""
