"""What a hook reads: one JSON object, with the fields that Claude Code gives it. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from .hook import Hook
from .naming import View, names_of, views

Json = dict[str, Any]

MAX_RESPONSE = 256 * 1024
"""Characters of a tool's output that a hook is given; the rest is in the journal."""

_MODES = {"ask": "default", "accept-edits": "acceptEdits", "read-only": "plan", "auto": "bypassPermissions"}


class Scene(msgspec.Struct, frozen=True):
    """Where something happens: the chat, the folder that hooks run in, and the chat's mode."""

    session_id: str
    folder: str
    mode: str
    transcript: str = ""


class ToolUse(msgspec.Struct, frozen=True):
    """A call of a tool, by our names; `output` is what came out of it, once it has ended."""

    id: str
    tool: str
    input: Json
    output: str | None = None
    exit_code: int | None = None


def common(event: str, scene: Scene) -> Json:
    return {
        "session_id": scene.session_id,
        "transcript_path": scene.transcript,
        "cwd": scene.folder,
        "permission_mode": _MODES.get(scene.mode, "default"),
        "hook_event_name": event,
    }


def told(event: str, scene: Scene, **fields: Any) -> Json:
    """What happens outside of a tool's call."""
    return {**common(event, scene), **fields}


def spelled(hook: Hook, name: str, use: ToolUse, folder: str) -> list[View]:
    """The call as this hook knows it: in our names when its matcher names our tool, else in Claude Code's."""
    aliases = names_of(use.tool)[1:]
    if name in aliases:
        return views(name, use.tool, use.input, folder)
    if hook.claude and aliases:
        return views(aliases[0], use.tool, use.input, folder)
    return [View(use.tool, use.input)]


def of_tool(event: str, scene: Scene, use: ToolUse, view: View) -> Json:
    made = {
        **common(event, scene),
        "tool_name": view.tool,
        "tool_input": view.input,
        "tool_use_id": use.id,
    }
    return made if use.output is None else {**made, "tool_response": _response(use, view)}


def _response(use: ToolUse, view: View) -> Json:
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
