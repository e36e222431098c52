"""Kilo."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="kilo",
    title="Kilo",
    clients=("kilo*",),
    servers=ServerFile(
        user=".config/kilo/kilo.json", project="kilo.json", container=("mcp",), entry="opencode"
    ),
    program="kilo",
    instructions="AGENTS.md",
)
