"""Codex."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile

ADAPTER = Adapter(
    name="codex",
    title="Codex",
    clients=("codex-mcp-client",),
    session_meta=("x-codex-turn-metadata", "session_id"),
    servers=ServerFile(
        user=".codex/config.toml",
        project=".codex/config.toml",
        container=("mcp_servers",),
        entry="toml",
        home_variable="CODEX_HOME",
    ),
    hooks=HookFile(
        user=".codex/hooks.json",
        project=".codex/hooks.json",
        events=("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Stop"),
        home_variable="CODEX_HOME",
    ),
    program="codex",
    instructions="AGENTS.md",
    verified=True,
    notes=(
        "Codex runs no hook that you have not trusted: it asks when it starts, or use /hooks in it.",
        "Codex reads `.codex/config.toml` of a project only when the project is trusted.",
    ),
)
