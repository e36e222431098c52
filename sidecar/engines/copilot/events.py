"""Events of the Copilot runtime as updates of an agent, and its permission requests as calls. Pure; knows no SDK.

An event is what the runtime sends: `{"type": …, "data": {…}}` with the names of the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model import JsonObject
from ...providers.base import TokenUsage

_KINDS = {
    "bash": "execute",
    "powershell": "execute",
    "shell": "execute",
    "view": "read",
    "read": "read",
    "read_file": "read",
    "create": "edit",
    "edit": "edit",
    "str_replace_editor": "edit",
    "apply_patch": "edit",
    "grep": "search",
    "glob": "search",
    "web_fetch": "fetch",
    "fetch": "fetch",
    "think": "think",
}

_SILENT = frozenset(
    (
        *("session.start", "session.resume", "session.idle", "session.error", "session.usage_info"),
        *("session.skills_loaded", "session.mcp_servers_loaded", "session.mcp_server_status_changed"),
        *("session.tools_updated", "session.context_changed", "session.custom_agents_updated"),
        *("session.background_tasks_changed", "session.extensions_loaded", "session.model_change"),
        *("user.message", "system.message", "pending_messages.modified", "abort"),
        *("assistant.turn_start", "assistant.turn_end", "assistant.message_start", "assistant.message"),
        *("assistant.streaming_delta", "assistant.reasoning", "assistant.tool_call_delta", "assistant.idle"),
        *("assistant.usage", "assistant.intent", "model.call_start", "model.call_finished"),
        *("permission.requested", "permission.completed", "user_input.requested", "user_input.completed"),
        *("tool.user_requested", "tool.execution_progress", "tool.shell_output", "hook.start", "hook.end"),
    )
)
"""Events that say nothing that a turn reports: what they announce comes in another one. `assistant.streaming_delta`
has the text of `assistant.message_delta` a second time.
"""


def updates_of(event: Mapping[str, Any]) -> list[JsonObject]:
    """The updates of the turn that an event means; one of an unknown kind is kept as it is."""
    kind, data = str(event.get("type")), _object(event.get("data"))
    if kind == "assistant.message_delta":
        return [_chunk("agent_message_chunk", data.get("deltaContent"))]
    if kind == "assistant.reasoning_delta":
        return [_chunk("agent_thought_chunk", data.get("deltaContent"))]
    if kind == "tool.execution_start":
        return [_started(data)]
    if kind == "tool.execution_partial_result":
        return []
    if kind == "tool.execution_complete":
        return [_completed(data)]
    if kind in _SILENT or kind.startswith("model."):
        return []
    return [{"sessionUpdate": kind, **data}]


def usage_of(event: Mapping[str, Any]) -> TokenUsage | None:
    """The tokens of one request to the model, of `assistant.usage`."""
    if event.get("type") != "assistant.usage":
        return None
    data = _object(event.get("data"))
    return TokenUsage(
        input=_number(data.get("inputTokens")),
        output=_number(data.get("outputTokens")),
        cached=_number(data.get("cacheReadTokens")),
    )


def window_of(event: Mapping[str, Any]) -> tuple[int, int] | None:
    """How full the runtime's context window is, of `session.usage_info`."""
    data = _object(event.get("data"))
    used, limit = _number(data.get("currentTokens")), _number(data.get("tokenLimit"))
    return (used, limit) if event.get("type") == "session.usage_info" and used is not None and limit else None


def call_of(request: Mapping[str, Any], number: int) -> JsonObject:
    """A permission request as the call that it is for."""
    kind = request.get("kind")
    call: JsonObject = {"toolCallId": request.get("toolCallId") or f"permission-{number}"}
    if kind == "shell":
        command = request.get("fullCommandText") or ""
        return call | {"kind": "execute", "title": command, "rawInput": {"command": command}}
    if kind == "write":
        path = request.get("resolvedPath") or request.get("fileName") or ""
        diff = {"type": "diff", "path": path, "oldText": None, "newText": request.get("newFileContents")}
        shown = [diff] if request.get("newFileContents") is not None else []
        given = {"path": path, "diff": request.get("diff")}
        return call | {"kind": "edit", "title": f"Write {path}", "rawInput": given, "content": shown}
    if kind == "read":
        path = request.get("resolvedPath") or request.get("path") or ""
        return call | {"kind": "read", "title": f"Read {path}", "rawInput": {"path": path}}
    if kind == "url":
        return call | {
            "kind": "fetch",
            "title": f"Fetch {request.get('url')}",
            "rawInput": {"url": request.get("url")},
        }
    if kind == "mcp":
        name = f"{request.get('serverName')}/{request.get('toolName')}"
        return call | {"kind": "other", "title": name, "rawInput": _object(request.get("args"))}
    name = str(request.get("toolName") or kind)
    return call | {"kind": "other", "title": name, "rawInput": _object(request.get("args"))}


def _started(data: Mapping[str, Any]) -> JsonObject:
    name = str(data.get("toolName"))
    given = data.get("arguments")
    given = given if isinstance(given, dict) else {} if given is None else {"input": given}
    command, path = given.get("command"), given.get("path") or given.get("filePath")
    title = command if isinstance(command, str) else f"{name} {path}" if path else name
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": data.get("toolCallId"),
        "title": data.get("toolTitle") or title,
        "kind": _KINDS.get(name, "other"),
        "status": "in_progress",
        "rawInput": given,
        "_meta": {"copilot": {"toolName": name}},
    }


def _completed(data: Mapping[str, Any]) -> JsonObject:
    result, error = _object(data.get("result")), _object(data.get("error"))
    text = result.get("detailedContent") or result.get("content") or error.get("message") or ""
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": data.get("toolCallId"),
        "status": "completed" if data.get("success") else "failed",
        "content": [{"type": "content", "content": {"type": "text", "text": str(text)}}],
    }


def _chunk(update: str, text: Any) -> JsonObject:
    content = {"type": "text", "text": text if isinstance(text, str) else ""}
    return {"sessionUpdate": update, "content": content}


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
