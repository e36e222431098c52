"""The hooks of a chat, a project or the user: their state, their problems, and their last runs."""

from __future__ import annotations

from typing import Literal

from .base import Wire

__all__ = ["HookInfo", "HooksListResult"]


class HookInfo(Wire, kw_only=True, frozen=True):
    id: str
    """Names the entry until it is changed."""
    file: str
    """The file that contains it."""
    scope: Literal["user", "project"]
    """Whose file that is."""
    event: str
    """Its event, such as PreToolUse; empty when the whole file cannot be read."""
    matcher: str
    """The names that it is for; empty for all."""
    command: str
    """What is run."""
    timeout_ms: int
    """Its maximum duration."""
    claude: bool
    """Whether it gets calls by Claude Code's names."""
    trusted: bool
    """Whether it runs: the user's always, a project's only if the project is trusted (`project/trust`)."""
    runs: int
    """How often it has run, in all chats."""
    problem: str | None = None
    """What is wrong with it, in English. Before a tool, such a hook asks."""
    problem_code: (
        Literal["malformed", "unreadable", "unknown_event", "unsupported_event", "matcher", "too_many"] | None
    ) = None
    """The same by name, to translate: an entry or the file is not as it must be, the file cannot be read, there is no
    such event, Claude Code has the event and Sidecar does not, the matcher is not a regular expression that can be
    used, or the file has more hooks than are read."""
    last_result: Literal["none", "allow", "ask", "deny", "failed"] | None = None
    """The outcome of its last run."""
    last_ms: int | None = None
    """How long that took."""
    last_at: int | None = None
    """When that was, in milliseconds since 1970."""


class HooksListResult(Wire, kw_only=True, frozen=True):
    items: list[HookInfo]
    """The hooks, the user's files first, each file's in its order."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""
