"""Windsurf."""

from __future__ import annotations

from .base import Adapter, HookFile, ServerFile
from .hook_formats import ExitCodeFormat, HookEvent, first_text, output_text, tool_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class WindsurfFormat(ExitCodeFormat):
    """What a tool does is in the event's name, and all else in `tool_info`. It takes no text for the model."""

    events = {
        "pre_read_code": "before_tool",
        "pre_run_command": "before_tool",
        "post_run_command": "after_tool",
        "post_write_code": "after_tool",
        "post_mcp_tool_use": "after_tool",
        "pre_user_prompt": "prompt",
        "post_cascade_response": "answer",
    }
    context_events = ()

    def entry(self, event: str, command: str) -> dict[str, Any]:
        return {"command": command, "show_output": False}

    def read(self, event: str, payload: dict[str, Any]) -> HookEvent:
        info = tool_input(payload.get("tool_info"))
        given = {
            name: info[found]
            for name, found in (("command", "command_line"), ("file_path", "file_path"))
            if isinstance(info.get(found), str)
        }
        tools = {"pre_read_code": "read", "post_write_code": "write"}
        return HookEvent(
            self.events[event],
            session=first_text(payload, "trajectory_id"),
            project=first_text(info, "cwd"),
            text=first_text(info, "user_prompt", "response")
            or output_text(info.get("mcp_result"))
            or output_text(info.get("output")),
            tool=first_text(info, "mcp_tool_name") or tools.get(event, "shell"),
            input=given or tool_input(info.get("mcp_tool_arguments")),
            id=first_text(payload, "execution_id"),
        )


ADAPTER = Adapter(
    name="windsurf",
    title="Windsurf",
    clients=("windsurf-client",),
    checked="documentation of November 2026",
    servers=ServerFile(user=".codeium/windsurf/mcp_config.json", project=None),
    hooks=HookFile(
        user=".codeium/windsurf/hooks.json",
        project=".windsurf/hooks.json",
        format=WindsurfFormat(),
    ),
    program="windsurf",
    instructions="AGENTS.md",
    user_instructions=".codeium/windsurf/memories/global_rules.md",
    cannot=(
        "Windsurf takes no text of a hook for the model: a session does not start with what earlier ones were"
        " about; the model finds it with the tools.",
        "It reads MCP servers for all projects only.",
    ),
)
