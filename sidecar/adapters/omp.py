"""Oh My Pi."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="omp",
    title="Oh My Pi",
    clients=("omp-coding-agent",),
    servers=ServerFile(user=".omp/agent/mcp.json", project=".omp/mcp.json"),
    program="omp",
    instructions="AGENTS.md",
)
