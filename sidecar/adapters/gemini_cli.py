"""Gemini CLI."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile

ADAPTER = Adapter(
    name="gemini-cli",
    title="Gemini CLI",
    clients=("gemini-cli-mcp-client",),
    marks=("GEMINI_CLI",),
    session_variable="GEMINI_SESSION_ID",
    servers=ServerFile(user=".gemini/settings.json", project=".gemini/settings.json"),
    hooks=HookFile(
        user=".gemini/settings.json",
        project=".gemini/settings.json",
        events=("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionStart"),
        shape="gemini",
    ),
    program="gemini",
    instructions="GEMINI.md",
    verified=True,
)
