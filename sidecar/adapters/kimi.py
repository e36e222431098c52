"""Kimi Code."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile
from .hook_formats import CLAUDE_EVENTS, LIMIT_S, HookFormat, Reply, output_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_formats import Kind


class KimiFormat(HookFormat):
    """Claude Code's events and fields as tables of TOML. Text for the model is the output at a prompt."""

    events = {event: kind for event, kind in CLAUDE_EVENTS.items() if kind != "answer"}
    context_events = ("UserPromptSubmit",)

    def entry(self, event: str, command: str) -> dict[str, Any]:
        return {"event": event, "command": command, "timeout": LIMIT_S}

    def add_context(self, event: str, text: str) -> Reply | None:
        return Reply(text=text) if event in self.context_events else None

    def _text(self, kind: Kind, payload: dict[str, Any]) -> str:
        if kind == "prompt":
            return output_text(payload.get("prompt"))  # a list of parts
        return super()._text(kind, payload)


ADAPTER = Adapter(
    name="kimi",
    title="Kimi Code",
    clients=("kimi-code",),
    checked="documentation of November 2026",
    servers=ServerFile(user=".kimi-code/mcp.json", project=None),
    hooks=HookFile(user=".kimi-code/config.toml", project=None, format=KimiFormat(), syntax="toml"),
    program="kimi",
    instructions="AGENTS.md",
    cannot=(
        "Kimi Code takes text for the model at a prompt only: what earlier sessions were about comes with the first"
        " prompt.",
        "It does not send its answers to hooks.",
    ),
)
