"""GitHub Copilot CLI."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile

ADAPTER = Adapter(
    name="copilot",
    title="GitHub Copilot CLI",
    clients=("copilot-cli",),
    marks=("COPILOT_AGENT_SESSION_ID",),
    session_variable="COPILOT_AGENT_SESSION_ID",
    servers=ServerFile(
        user=".copilot/mcp-config.json",
        project=".mcp.json",
        entry="local",
        home_variable="COPILOT_HOME",
    ),
    hooks=HookFile(
        user=".copilot/hooks/sidecar.json",
        project=".github/hooks/sidecar.json",
        events=("preToolUse", "postToolUse", "userPromptSubmitted", "sessionStart"),
        shape="copilot",
        own=True,
        home_variable="COPILOT_HOME",
    ),
    program="copilot",
    instructions="AGENTS.md",
    verified=True,
)
