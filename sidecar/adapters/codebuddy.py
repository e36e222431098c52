"""CodeBuddy."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="codebuddy",
    title="CodeBuddy",
    clients=("codebuddy*",),
    servers=ServerFile(user=".codebuddy.json", project=".mcp.json"),
    program="codebuddy",
    instructions="CODEBUDDY.md",
)
