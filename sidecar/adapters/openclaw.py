"""OpenClaw."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="openclaw",
    title="OpenClaw",
    clients=("openclaw-bundle-mcp",),
    checked="2026.9.6",
    servers=ServerFile(user=".openclaw/openclaw.json", project=None, container=("mcp", "servers")),
    program="openclaw",
    user_instructions=".openclaw/workspace/AGENTS.md",
    cannot=(
        "OpenClaw's hooks are plugins that its registry installs: `connect` adds the tools and a block of"
        " instructions.",
        "It has no settings of a project, and gives its MCP servers no session id.",
    ),
)
