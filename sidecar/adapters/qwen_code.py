"""Qwen Code."""

from __future__ import annotations

from .base import Adapter, Connected, HookFile, ServerFile
from .hook_formats import LIMIT_S, HookFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Problem


class QwenFormat(HookFormat):
    """Claude Code's format with milliseconds."""

    def entry(self, event: str, command: str) -> dict[str, Any]:
        group = super().entry(event, command)
        group["hooks"][0]["timeout"] = LIMIT_S * 1000
        return group


def _problems(connected: Connected) -> list[Problem]:
    path = connected.servers
    found = connected.unlisted("mcp", "excluded", "allowed")
    if connected.value(path, "tools", "toolSearch", "enabled") is not False:
        action = f"Set `tools.toolSearch.enabled` to false in {path}"
        found.append(("The model sees the tools only after it has searched for them", action))
    if connected.hooks and connected.value(path, "disableAllHooks") is True:
        found.append(("Qwen Code runs no hooks", f"Remove `disableAllHooks` from {path}"))
    return found


ADAPTER = Adapter(
    name="qwen-code",
    title="Qwen Code",
    clients=("qwen-cli-mcp-client-*",),
    checked="0.24.4",
    marks=("QWEN_CODE_SESSION_ID",),
    session_variable="QWEN_CODE_SESSION_ID",
    project_variable="QWEN_PROJECT_DIR",
    servers=ServerFile(user=".qwen/settings.json", project=".qwen/settings.json"),
    hooks=HookFile(user=".qwen/settings.json", project=".qwen/settings.json", format=QwenFormat()),
    program="qwen",
    instructions="AGENTS.md",
    notes=("Qwen Code hides MCP tools behind its tool search unless `tools.toolSearch.enabled` is false.",),
    problems=_problems,
)
