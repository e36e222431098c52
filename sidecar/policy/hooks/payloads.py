"""The input of a hook: one JSON object, with the fields of Claude Code. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...model import JsonObject
from .hook import Hook
from .naming import ClaudeCall, claude_calls, matcher_names

MAX_RESPONSE = 256 * 1024
"""Characters of a tool's output that a hook gets; the rest is in the journal."""

_MODES = {"ask": "default", "accept-edits": "acceptEdits", "read-only": "plan", "auto": "bypassPermissions"}


HookPayload = Mapping[str, object]
"""What a hook reads on its stdin; only encoded here."""


class HookContext(msgspec.Struct, frozen=True):
    """The context of an event: the chat, the working folder of hooks, and the mode of the chat."""

    session_id: str
    folder: str
    mode: str
    transcript: str = ""


class ToolUse(msgspec.Struct, frozen=True):
    """A tool call in our names; `output` is its result, once it has ended."""

    id: str
    tool: str
    input: JsonObject
    output: str | None = None
    exit_code: int | None = None


def common_fields(event: str, scene: HookContext) -> HookPayload:
    return {
        "session_id": scene.session_id,
        "transcript_path": scene.transcript,
        "cwd": scene.folder,
        "permission_mode": _MODES.get(scene.mode, "default"),
        "hook_event_name": event,
    }


def event_payload(event: str, scene: HookContext, **fields: object) -> HookPayload:
    """Return the payload of an event outside of a tool call."""
    return {**common_fields(event, scene), **fields}


def calls_for_hook(hook: Hook, name: str, use: ToolUse, folder: str) -> list[ClaudeCall]:
    """Return the call as this hook expects it: in our names when its matcher names our tool, else in Claude Code's."""
    aliases = matcher_names(use.tool)[1:]
    if name in aliases:
        return claude_calls(name, use.tool, use.input, folder)
    if hook.claude and aliases:
        return claude_calls(aliases[0], use.tool, use.input, folder)
    return [ClaudeCall(use.tool, use.input)]


def tool_payload(event: str, scene: HookContext, use: ToolUse, view: ClaudeCall) -> HookPayload:
    made = {
        **common_fields(event, scene),
        "tool_name": view.tool,
        "tool_input": view.input,
        "tool_use_id": use.id,
    }
    return made if use.output is None else {**made, "tool_response": _response(use, view)}


def _response(use: ToolUse, view: ClaudeCall) -> HookPayload:
    text = (use.output or "")[:MAX_RESPONSE]
    path = view.input.get("file_path")
    if view.tool == "Bash":
        return {
            "stdout": text,
            "stderr": "",
            "interrupted": False,
            "isImage": False,
            "exitCode": use.exit_code,
        }
    if view.tool in ("Write", "Edit", "MultiEdit"):
        return {"filePath": path, "success": True}
    if view.tool == "Read":
        return {"type": "text", "file": {"filePath": path, "content": text}}
    return {"content": text}
