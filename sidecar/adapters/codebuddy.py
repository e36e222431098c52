"""CodeBuddy."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile
from .hook_formats import HookFormat

ADAPTER = Adapter(
    name="codebuddy",
    title="CodeBuddy",
    clients=("codebuddy*",),
    checked="documentation of November 2026",
    servers=ServerFile(user=".codebuddy.json", project=".mcp.json"),
    hooks=HookFile(user=".codebuddy/settings.json", project=".codebuddy/settings.json", format=HookFormat()),
    program="codebuddy",
    instructions="CODEBUDDY.md",
)
