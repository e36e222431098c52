"""OpenCode."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="opencode",
    title="OpenCode",
    clients=("opencode",),
    marks=("OPENCODE",),
    servers=ServerFile(
        user=".config/opencode/opencode.json",
        project="opencode.json",
        container=("mcp",),
        entry="opencode",
    ),
    program="opencode",
    instructions="AGENTS.md",
    verified=True,
)
