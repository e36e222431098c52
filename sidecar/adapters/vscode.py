"""VS Code."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="vscode",
    title="VS Code",
    clients=("Visual-Studio-Code",),
    servers=ServerFile(
        user=".config/Code/User/mcp.json",
        project=".vscode/mcp.json",
        container=("servers",),
        entry="stdio",
    ),
    program="code",
    instructions="AGENTS.md",
)
