"""Qwen Code."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile

ADAPTER = Adapter(
    name="qwen-code",
    title="Qwen Code",
    clients=("qwen-cli-mcp-client-*",),
    marks=("QWEN_CODE_SESSION_ID",),
    session_variable="QWEN_CODE_SESSION_ID",
    servers=ServerFile(user=".qwen/settings.json", project=".qwen/settings.json"),
    hooks=HookFile(
        user=".qwen/settings.json",
        project=".qwen/settings.json",
        events=("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Stop"),
        shape="qwen",
    ),
    program="qwen",
    instructions="AGENTS.md",
    verified=True,
    notes=("Qwen Code hides MCP tools behind its tool search unless `tools.toolSearch.enabled` is false.",),
)
