"""JetBrains."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="jetbrains",
    title="JetBrains",
    clients=("JetBrains Client", "IntelliJ IDEA", "PyCharm"),
    servers=ServerFile(user=".junie/mcp/mcp.json", project=".junie/mcp/mcp.json"),
    instructions="AGENTS.md",
    notes=("This file is that of Junie. In AI Assistant, add the server under Settings, MCP.",),
)
