"""Kiro."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile
from .hook_formats import LIMIT_S, ExitCodeFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class KiroFormat(ExitCodeFormat):
    """One list of hooks, each with its trigger."""

    events = {
        "PreToolUse": "before_tool",
        "PostToolUse": "after_tool",
        "UserPromptSubmit": "prompt",
        "SessionStart": "session_start",
    }

    def entry(self, event: str, command: str) -> dict[str, Any]:
        action = {"type": "command", "command": command}
        return {"name": f"sidecar-{event}", "trigger": event, "action": action, "timeout": LIMIT_S}


ADAPTER = Adapter(
    name="kiro",
    title="Kiro",
    clients=("Kiro CLI", "Kiro*"),
    checked="documentation of November 2026 (IDE 1.x, CLI 3)",
    servers=ServerFile(user=".kiro/settings/mcp.json", project=".kiro/settings/mcp.json"),
    hooks=HookFile(
        user=".kiro/hooks/sidecar.json",
        project=".kiro/hooks/sidecar.json",
        format=KiroFormat(),
        syntax="list",
        own=True,
    ),
    program="kiro-cli",
    instructions=".kiro/steering/sidecar.md",
    cannot=(
        "Kiro CLI 2 reads hooks from the files of its agents only; `kiro-cli agent migrate` moves to the files of"
        " version 3, which `connect` writes.",
        "Kiro has no hook for compactions, and does not send its answers to hooks.",
    ),
)
