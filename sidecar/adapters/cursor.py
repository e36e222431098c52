"""Cursor."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="cursor",
    title="Cursor",
    clients=("cursor-vscode",),
    servers=ServerFile(user=".cursor/mcp.json", project=".cursor/mcp.json"),
    program="cursor",
    instructions="AGENTS.md",
)
