"""The hooks of a chat, a project or the user: which there are, what is wrong with one, and how they went."""

from __future__ import annotations

from typing import Literal

from .base import Wire

__all__ = ["HookInfo", "HooksListResult"]


class HookInfo(Wire, kw_only=True, frozen=True):
    id: str
    """Names the entry, for as long as it stands as it does."""
    file: str
    """The file that has it."""
    scope: Literal["user", "project"]
    """Whose file that is."""
    event: str
    """What it is asked about, such as PreToolUse; empty when the file as a whole cannot be read."""
    matcher: str
    """The names that it is for; empty for all."""
    command: str
    """What is run."""
    timeout_ms: int
    """How long it may take."""
    claude: bool
    """Whether it is told of calls in Claude Code's names."""
    trusted: bool
    """Whether it runs: the user's always, a project's once `project/trust` has said so."""
    runs: int
    """How often it has run, in all chats."""
    problem: str | None = None
    """What is wrong with it. Before a tool, such a hook asks."""
    last_result: Literal["none", "allow", "ask", "deny", "failed"] | None = None
    """How its last run went."""
    last_ms: int | None = None
    """How long that took."""
    last_at: int | None = None
    """When that was, in milliseconds since 1970."""


class HooksListResult(Wire, kw_only=True, frozen=True):
    items: list[HookInfo]
    """The hooks, the user's files first, each file's in its order."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""
