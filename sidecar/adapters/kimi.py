"""Kimi Code."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="kimi",
    title="Kimi Code",
    clients=("kimi-code",),
    servers=ServerFile(user=".kimi-code/mcp.json", project=None),
    program="kimi",
    instructions="AGENTS.md",
)
