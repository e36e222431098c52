"""Claude Code."""

from __future__ import annotations

from .base import Adapter, Connected, HookFile, ServerFile, stdio_entry
from .hook_formats import HookFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base import Problem


def _problems(connected: Connected) -> list[Problem]:
    found: list[Problem] = []
    project = [f"{connected.project}/.claude/{name}" for name in ("settings.json", "settings.local.json")]
    for path in (f"{connected.home}/.claude/settings.json", *project):
        if connected.hooks and connected.value(path, "disableAllHooks") is True:
            found.append(("Claude Code runs no hooks", f"Remove `disableAllHooks` from {path}"))
        if connected.scope == "project" and connected.lists(path, "disabledMcpjsonServers"):
            found.append(("The server is switched off", f"Remove it from `disabledMcpjsonServers` in {path}"))
    return found


ADAPTER = Adapter(
    name="claude-code",
    title="Claude Code",
    clients=("claude-code",),
    checked="2.1.328",
    marks=("CLAUDECODE",),
    session_variable="CLAUDE_CODE_SESSION_ID",
    project_variable="CLAUDE_PROJECT_DIR",
    servers=ServerFile(
        user=".claude.json",
        project=".mcp.json",
        entry=stdio_entry,
        moved=("CLAUDE_CONFIG_DIR", ".claude.json"),
    ),
    hooks=HookFile(
        user=".claude/settings.json",
        project=".claude/settings.json",
        format=HookFormat(),
        moved=("CLAUDE_CONFIG_DIR", "settings.json"),
    ),
    program="claude",
    instructions="CLAUDE.md",
    notes=("Claude Code asks once whether to use the servers of a project's `.mcp.json`.",),
    problems=_problems,
)
