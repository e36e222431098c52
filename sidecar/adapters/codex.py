"""Codex."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile
from .hook_formats import HookFormat

ADAPTER = Adapter(
    name="codex",
    title="Codex",
    clients=("codex-mcp-client",),
    checked="0.169.0",
    session_meta=("x-codex-turn-metadata", "session_id"),
    servers=ServerFile(
        user=".codex/config.toml",
        project=".codex/config.toml",
        container=("mcp_servers",),
        syntax="toml",
        moved=("CODEX_HOME", "config.toml"),
    ),
    hooks=HookFile(
        user=".codex/hooks.json",
        project=".codex/hooks.json",
        format=HookFormat(),
        moved=("CODEX_HOME", "hooks.json"),
    ),
    program="codex",
    instructions="AGENTS.md",
    notes=(
        "Codex runs no hook that you have not trusted: it asks when it starts, or use /hooks in it.",
        "Codex reads `.codex/` of a project only when the project is trusted.",
    ),
)
