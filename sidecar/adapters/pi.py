"""Pi."""

from __future__ import annotations

from .base import Adapter

ADAPTER = Adapter(
    name="pi",
    title="Pi",
    clients=("pi-coding-agent",),
    program="pi",
    instructions="AGENTS.md",
    notes=(
        "Pi has no settings for MCP servers; an extension of Pi that adds them takes the command `sidecar mcp`.",
    ),
)
