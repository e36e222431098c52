"""Windsurf."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="windsurf",
    title="Windsurf",
    clients=("windsurf-client",),
    servers=ServerFile(user=".codeium/windsurf/mcp_config.json", project=None),
    program="windsurf",
    instructions="AGENTS.md",
)
