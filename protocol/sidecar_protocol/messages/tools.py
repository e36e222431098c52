"""What a model can call and a user can type: tools of every source, and commands. Also the calls that go to the
app: its own tools, and the unsaved text of its editor."""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Json, Key, Params, Wire, always
from .connection import OfferedTool

__all__ = [
    "CommandInfo",
    "CommandsListParams",
    "CommandsListResult",
    "ReadBufferRequest",
    "ReadBufferResult",
    "ToolCallRequest",
    "ToolCallResult",
    "ToolInfo",
    "ToolServer",
    "ToolsListParams",
    "ToolsListResult",
    "ToolsOfferParams",
    "ToolsOfferResult",
]


class ToolCallRequest(ChatRef, kw_only=True, frozen=True):
    """The model calls a tool of the app."""

    turn_id: str
    """The turn that waits."""
    item_id: str
    """The item of the call."""
    name: str
    """The tool, as it was offered."""
    arguments: Json
    """The arguments from the model."""


class ToolCallResult(Wire, kw_only=True, frozen=True):
    content: list[Json]
    """The output of the tool, as content blocks; the model gets the text of `text` and `resource`, and `image` and
    `audio` (by `data`, `path` or `blobId`) if it takes them."""
    is_error: bool = False
    """Whether it failed; the model gets the error and may try again."""


class ReadBufferRequest(ChatRef, kw_only=True, frozen=True):
    """A tool is about to read a file that may be open in the app's editor."""

    path: str
    """The file's absolute path."""


class ReadBufferResult(Wire, kw_only=True, frozen=True):
    text: str | None
    """The text as the user sees it; null when there is no unsaved change."""


class ToolsListParams(Key, kw_only=True, frozen=True):
    """Which chat, as elsewhere; without any of them, what every chat has."""


class ToolInfo(Wire, kw_only=True, frozen=True):
    name: str
    """The name that the model calls."""
    description: str
    """The description that the model gets."""
    kind: str
    """read, edit, delete, move, search, execute, think, fetch or other."""
    source: Literal["builtin", "app", "mcp"]
    """Whose it is."""
    enabled: bool
    """Whether the model is offered it in this chat."""
    calls: int
    """How often it was called in this chat."""
    server: str | None = None
    """The MCP server that has it."""
    input_schema: Json | None = None
    """JSON Schema of its arguments."""


class ToolServer(Wire, kw_only=True, frozen=True):
    """An MCP server of the configuration or of the chat."""

    name: str
    """Its name in the configuration."""
    state: Literal["idle", "starting", "ready", "retrying", "failed", "stopped", "untrusted"]
    """`idle` until its tools are needed; `retrying` after its connection was lost; `failed` until it is tried again;
    `untrusted` until its project is trusted."""
    tools: int
    """How many tools it has; 0 until it is ready."""
    attempts: int
    """How often it failed in a row."""
    error: str | None = None
    """Why it failed, in English."""
    left_out: list[str] = always([])
    """Tools of it that cannot be offered, such as for their names."""


class ToolsListResult(Wire, kw_only=True, frozen=True):
    items: list[ToolInfo]
    """The available tools."""
    servers: list[ToolServer]
    """The MCP servers, those that failed included."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""


class ToolsOfferParams(Params, kw_only=True, frozen=True):
    """Replaces what `initialize` or an earlier offer brought."""

    tools: list[OfferedTool]
    """All tools of the app; an empty list removes them."""


class ToolsOfferResult(Wire, kw_only=True, frozen=True):
    count: int
    """How many tools of the app the model may now call."""


class CommandsListParams(Key, kw_only=True, frozen=True):
    """Which chat, as elsewhere; without any of them, what every chat has."""


class CommandInfo(Wire, kw_only=True, frozen=True):
    """A command that a prompt may be."""

    name: str
    """Without its slash."""
    arguments: str
    """What may follow it, as a usage line; empty when nothing may."""
    description: str
    """What it does."""
    examples: list[str] = always([])
    """Complete examples."""


class CommandsListResult(Wire, kw_only=True, frozen=True):
    items: list[CommandInfo]
    """The commands, by name."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""
