"""JetBrains."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="jetbrains",
    title="JetBrains",
    clients=("JetBrains*", "IntelliJ IDEA*", "PyCharm*"),
    checked="documentation of November 2026",
    servers=ServerFile(user=".junie/mcp/mcp.json", project=".junie/mcp/mcp.json"),
    instructions="AGENTS.md",
    cannot=("Junie has no hooks: it gets the tools, and with `--project` a block of instructions.",),
    notes=("This file is that of Junie. In AI Assistant, add the server under Settings, MCP.",),
)
