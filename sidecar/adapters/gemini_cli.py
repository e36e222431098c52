"""Gemini CLI."""

from __future__ import annotations

from .base import Adapter, Connected, HookFile, ServerFile
from .hook_formats import LIMIT_S, HookEvent, HookFormat, Reply, first_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Problem
    from .hook_formats import Kind


class GeminiFormat(HookFormat):
    """Claude Code's groups with a name and milliseconds, and other events."""

    events = {
        "BeforeTool": "before_tool",
        "AfterTool": "after_tool",
        "BeforeAgent": "prompt",
        "AfterAgent": "answer",
        "SessionStart": "session_start",
        "PreCompress": "before_compaction",
    }
    context_events = ("SessionStart", "BeforeAgent")

    def is_noise(self, event: str, payload: bytes) -> bool:
        """Gemini calls PreCompress before every request to the model; only `/compress` is surely a compaction."""
        return event == "PreCompress" and b'"manual"' not in payload

    def entry(self, event: str, command: str) -> dict[str, Any]:
        hook = {"type": "command", "name": "sidecar", "command": command, "timeout": LIMIT_S * 1000}
        return {"matcher": "*", "hooks": [hook]} if "Tool" in event else {"hooks": [hook]}

    def read(self, event: str, payload: dict[str, Any]) -> HookEvent:
        found = super().read(event, payload)
        if found.kind == "prompt" and found.text.startswith("/"):
            found.text = ""  # a command of Gemini itself
        return found

    def deny(self, event: str, reason: str) -> Reply:
        return Reply({"decision": "deny", "reason": reason})

    def _text(self, kind: Kind, payload: dict[str, Any]) -> str:
        if kind == "answer":
            return first_text(payload, "prompt_response").strip()
        return super()._text(kind, payload)


def _problems(connected: Connected) -> list[Problem]:
    path = connected.servers
    found = connected.unlisted("mcp", "excluded", "allowed")
    if connected.hooks and connected.value(path, "hooksConfig", "enabled") is False:
        found.append(("Gemini CLI runs no hooks", f"Remove `hooksConfig.enabled` from {path}"))
    if connected.hooks and connected.lists(path, "hooksConfig", "disabled"):
        found.append(("Our hooks are switched off", "Run `/hooks enable sidecar` in Gemini CLI"))
    return found


ADAPTER = Adapter(
    name="gemini-cli",
    title="Gemini CLI",
    clients=("gemini-cli-mcp-client",),
    checked="0.61.0",
    marks=("GEMINI_CLI",),
    project_variable="GEMINI_PROJECT_DIR",
    servers=ServerFile(
        user=".gemini/settings.json",
        project=".gemini/settings.json",
        moved=("GEMINI_CLI_HOME", ".gemini/settings.json"),
    ),
    hooks=HookFile(
        user=".gemini/settings.json",
        project=".gemini/settings.json",
        format=GeminiFormat(),
        moved=("GEMINI_CLI_HOME", ".gemini/settings.json"),
    ),
    program="gemini",
    instructions="GEMINI.md",
    cannot=(
        "Gemini CLI does not say when it compresses a conversation by itself, so only `/compress` brings back what"
        " was lost.",
        "It gives its MCP servers no session id: calls of the tools are in a chat of the project, beside those of"
        " the sessions.",
    ),
    problems=_problems,
)
