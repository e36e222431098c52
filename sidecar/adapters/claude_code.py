"""Claude Code."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile

ADAPTER = Adapter(
    name="claude-code",
    title="Claude Code",
    clients=("claude-code",),
    marks=("CLAUDECODE",),
    session_variable="CLAUDE_CODE_SESSION_ID",
    servers=ServerFile(user=".claude.json", project=".mcp.json", entry="stdio"),
    hooks=HookFile(
        user=".claude/settings.json",
        project=".claude/settings.json",
        events=("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Stop"),
    ),
    program="claude",
    instructions="CLAUDE.md",
    verified=True,
)
