"""GitHub Copilot CLI."""

from __future__ import annotations

from .base import Adapter, Connected, HookFile, ServerFile, plain_entry
from .hook_formats import LIMIT_S, HookFormat, Reply, first_text, parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Problem


def _entry(command: list[str]) -> dict[str, Any]:
    return {"type": "local", **plain_entry(command), "tools": ["*"]}


class CopilotFormat(HookFormat):
    """A flat list per event, and names in camel case."""

    events = {
        "preToolUse": "before_tool",
        "postToolUse": "after_tool",
        "userPromptSubmitted": "prompt",
        "sessionStart": "session_start",
        "preCompact": "before_compaction",
        "agentStop": "answer",
    }
    context_events = ("sessionStart", "userPromptSubmitted")

    def entry(self, event: str, command: str) -> dict[str, Any]:
        # Copilot denies a tool whose hook fails: one that is no longer installed must not.
        return {"type": "command", "bash": f"{command} || true", "timeoutSec": LIMIT_S}

    def deny(self, event: str, reason: str) -> Reply:
        return Reply({"permissionDecision": "deny", "permissionDecisionReason": reason})

    def add_context(self, event: str, text: str) -> Reply | None:
        return Reply({"additionalContext": text}) if event in self.context_events else None

    def transcript(self, event: str, payload: dict[str, Any]) -> str:
        """Copilot does not send the answer to its hooks."""
        return first_text(payload, "transcriptPath") if event == "agentStop" else ""

    def answer_in(self, transcript: str) -> str:
        for line in reversed(transcript.splitlines()):
            found = parse_json(line) if '"assistant.message"' in line else None
            data = found.get("data") if isinstance(found, dict) else None
            text = first_text(data, "content") if isinstance(data, dict) else ""
            if text.strip():
                return text
        return ""


def _problems(connected: Connected) -> list[Problem]:
    found: list[Problem] = []
    folder = f"{connected.home}/.copilot"
    trusted = connected.value(f"{folder}/config.json", "trustedFolders") or ()
    if connected.scope == "project" and connected.hooks and connected.project not in trusted:
        found.append(
            ("Copilot runs no hooks of a folder that is not trusted", "Start it there and trust the folder")
        )
    if connected.hooks and connected.value(f"{folder}/settings.json", "disableAllHooks") is True:
        found.append(("Copilot runs no hooks", f"Remove `disableAllHooks` from {folder}/settings.json"))
    return found


ADAPTER = Adapter(
    name="copilot",
    title="GitHub Copilot CLI",
    clients=("copilot-cli",),
    checked="1.0.102",
    marks=("COPILOT_AGENT_SESSION_ID",),
    hook_marks=("COPILOT_HOOK_DIR",),
    session_variable="COPILOT_AGENT_SESSION_ID",
    project_variable="COPILOT_PROJECT_DIR",
    servers=ServerFile(
        user=".copilot/mcp-config.json",
        project=".mcp.json",
        entry=_entry,
        moved=("COPILOT_HOME", "mcp-config.json"),
    ),
    hooks=HookFile(
        user=".copilot/hooks/sidecar.json",
        project=".github/hooks/sidecar.json",
        format=CopilotFormat(),
        own=True,
        moved=("COPILOT_HOME", "hooks/sidecar.json"),
        shared={"project": ".claude/settings.json"},
    ),
    program="copilot",
    instructions="AGENTS.md",
    notes=("Copilot runs hooks of a project only when you have trusted the folder.",),
    problems=_problems,
)
