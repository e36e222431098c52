"""Claude Code."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile, stdio_entry
from .hook_formats import HookFormat

ADAPTER = Adapter(
    name="claude-code",
    title="Claude Code",
    clients=("claude-code",),
    checked="2.1.327",
    marks=("CLAUDECODE",),
    session_variable="CLAUDE_CODE_SESSION_ID",
    project_variable="CLAUDE_PROJECT_DIR",
    servers=ServerFile(
        user=".claude.json",
        project=".mcp.json",
        entry=stdio_entry,
        moved=("CLAUDE_CONFIG_DIR", ".claude.json"),
    ),
    hooks=HookFile(
        user=".claude/settings.json",
        project=".claude/settings.json",
        format=HookFormat(),
        moved=("CLAUDE_CONFIG_DIR", "settings.json"),
    ),
    program="claude",
    instructions="CLAUDE.md",
    notes=("Claude Code asks once whether to use the servers of a project's `.mcp.json`.",),
)
