"""Cursor."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile
from .hook_formats import LIMIT_S, HookEvent, HookFormat, Reply, first_text, output_text, parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_formats import Kind


class CursorFormat(HookFormat):
    """A flat list per event. A session is a conversation, and the project the first folder of the window."""

    events = {
        "preToolUse": "before_tool",
        "postToolUse": "after_tool",
        "beforeSubmitPrompt": "prompt",
        "sessionStart": "session_start",
        "preCompact": "before_compaction",
        "afterAgentResponse": "answer",
    }
    context_events = ("sessionStart",)

    def entry(self, event: str, command: str) -> dict[str, Any]:
        return {"command": command, "timeout": LIMIT_S}

    def read(self, event: str, payload: dict[str, Any]) -> HookEvent:
        found = super().read(event, payload)
        found.session = first_text(payload, "conversation_id") or found.session
        roots = payload.get("workspace_roots")
        if isinstance(roots, list) and roots and isinstance(roots[0], str):
            found.project = roots[0]
        return found

    def deny(self, event: str, reason: str) -> Reply:
        return Reply({"permission": "deny", "agent_message": reason, "user_message": reason})

    def add_context(self, event: str, text: str) -> Reply | None:
        return Reply({"additional_context": text}) if event in self.context_events else None

    def _text(self, kind: Kind, payload: dict[str, Any]) -> str:
        if kind == "answer":
            return first_text(payload, "text")
        if kind == "after_tool":
            found = payload.get("tool_output")
            return output_text(parse_json(found) or found) if isinstance(found, str) else output_text(found)
        return super()._text(kind, payload)


ADAPTER = Adapter(
    name="cursor",
    title="Cursor",
    clients=("cursor-vscode",),
    checked="documentation of November 2026",
    hook_marks=("cursor_version",),
    servers=ServerFile(user=".cursor/mcp.json", project=".cursor/mcp.json"),
    hooks=HookFile(
        user=".cursor/hooks.json",
        project=".cursor/hooks.json",
        format=CursorFormat(),
    ),
    program="cursor",
    instructions="AGENTS.md",
    cannot=(
        "Cursor takes no text for the model at a prompt: after a compaction the model looks things up with the"
        " tools.",
    ),
)
