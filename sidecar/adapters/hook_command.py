"""`sidecar hook --platform NAME EVENT`: what a coding agent runs at the points of its session.

Standard library only, and no database: an agent waits for it. What happens is put into a folder, from which the MCP
server stores it; the text for a new session is a file that the server has written. A failure never stops the agent.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time

from ..system.lazy import lazy_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..settings import files as settings_files
else:
    settings_files = lazy_module("sidecar.settings.files")

MAX_PAYLOAD = 8 * 1024 * 1024
"""Bytes of an event that are read; an agent sends a tool's whole output."""

MAX_TEXT = 256 * 1024
"""Characters of one text that are kept."""

MAX_WAITING = 5_000
"""Events that wait to be stored; with more, nobody has stored any for long, and new ones are dropped."""

LARGE_FILE = 128 * 1024
"""A file of this size fills a third of a usual context window."""

KINDS = {
    "PreToolUse": "before_tool",
    "BeforeTool": "before_tool",
    "preToolUse": "before_tool",
    "PostToolUse": "after_tool",
    "AfterTool": "after_tool",
    "postToolUse": "after_tool",
    "UserPromptSubmit": "prompt",
    "BeforeAgent": "prompt",
    "userPromptSubmitted": "prompt",
    "SessionStart": "session_start",
    "sessionStart": "session_start",
    "Stop": "answer",
    "AfterAgent": "answer",
    "agentStop": "answer",
}
"""What an agent's event is for us. Others, such as Gemini's PreCompress, which comes before every request to the model,
do nothing.
"""

FETCH_TOOLS = ("WebFetch", "web_fetch", "fetch", "webfetch")
SHELL_TOOLS = ("Bash", "bash", "run_shell_command", "shell", "exec_command")
READ_TOOLS = ("Read", "read_file", "read", "view")


def main(argv: list[str]) -> int:
    """Handle one event; the answer goes to stdout."""
    try:
        platform, event = _arguments(argv)
    except ValueError as error:
        sys.stderr.write(f"sidecar hook: {error}\n  usage: sidecar hook --platform NAME EVENT\n")
        return 2
    try:
        kind = KINDS.get(event)
        if kind is None:
            return 0
        answer = _handle(platform, event, kind, json.loads(sys.stdin.buffer.read(MAX_PAYLOAD) or b"{}"))
        if answer:
            sys.stdout.write(json.dumps(answer))
    except Exception as error:  # an agent must go on whatever is wrong here
        sys.stderr.write(f"sidecar hook: {type(error).__name__}: {error}\n")
    return 0


def _arguments(argv: list[str]) -> tuple[str, str]:
    words = list(argv)
    if "--platform" not in words[:-1]:
        raise ValueError("--platform NAME is missing")
    at = words.index("--platform")
    platform = words[at + 1]
    rest = words[:at] + words[at + 2 :]
    if len(rest) != 1 or not platform:
        raise ValueError("one EVENT is needed")
    return platform, rest[0]


def _handle(platform: str, event: str, kind: str, payload: dict[str, Any]) -> dict[str, Any] | None:
    session = _first(payload, "session_id", "sessionId")
    project = os.path.realpath(_first(payload, "cwd") or os.getcwd())
    folder = os.path.join(data_dir(), "agents")
    tool, given = _first(payload, "tool_name", "toolName"), _tool_input(payload)
    if kind == "session_start":
        _mark(folder, session, "context")
        return _context(platform, event, _read(context_file(folder, project)))
    if kind == "before_tool":
        reason = _better_way(folder, session, tool, given, project)
        return _denied(platform, event, reason) if reason else None
    if not session or "sidecar" in tool:
        return None
    record: dict[str, Any] = {
        "platform": platform,
        "session": session,
        "project": project,
        "kind": kind,
        "ts": time.time_ns() // 1_000_000,
    }
    if kind == "prompt":
        record["text"] = _first(payload, "prompt")[:MAX_TEXT]
    elif kind == "answer":
        record["text"] = _first(payload, "last_assistant_message", "prompt_response")[:MAX_TEXT]
    else:
        record |= {"tool": tool, "input": given, "text": _output(payload)[:MAX_TEXT]}
    if record["text"] or kind == "after_tool":
        _put(os.path.join(folder, "events"), record)
    # Some agents start a session without the event for it: then its first prompt brings the context.
    if kind == "prompt" and record["text"] and _mark(folder, session, "context"):
        return _context(platform, event, _read(context_file(folder, project)))
    return None


def data_dir() -> str:
    """The folder of the database, by the same rule as for every other command."""
    given = os.environ.get("SIDECAR_DATA_DIR")
    if given:
        return given
    if sys.platform == "linux":
        home = os.environ.get("XDG_DATA_HOME", "").strip() or os.path.join(
            os.path.expanduser("~"), ".local/share"
        )
        return os.path.join(home, "sidecar")
    return settings_files.default_data_dir()


def context_file(folder: str, project: str) -> str:
    """The file with the text for a new session in this project."""
    return os.path.join(folder, "context", hashlib.sha256(project.encode()).hexdigest()[:24] + ".md")


def _better_way(folder: str, session: str, tool: str, given: dict[str, Any], project: str) -> str | None:
    """Why a call should be made by another tool; None when it is fine, or when the model insists on it."""
    reason = _reason(tool, given, project)
    if reason is None:
        return None
    if not _mark(folder, session, tool, given):
        return None
    return f"{reason} If you need it all the same, make the same call again."


def _mark(folder: str, *what: Any) -> bool:
    """Note that this happened; False when it had happened before."""
    marks = os.path.join(folder, "marks")
    name = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:24]
    os.makedirs(marks, mode=0o700, exist_ok=True)
    try:
        os.close(os.open(os.path.join(marks, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def _reason(tool: str, given: dict[str, Any], project: str) -> str | None:
    command = str(given.get("command") or "")
    if tool in FETCH_TOOLS:
        return (
            "Use sidecar's fetch_url: the page stays out of your context, and its passages can be searched."
        )
    if tool in SHELL_TOOLS and command.split(" ", 1)[0] in ("curl", "wget") and "://" in command:
        return "Use sidecar's fetch_url instead of curl or wget: the page stays out of your context."
    if tool in READ_TOOLS and not (given.get("offset") or given.get("limit")):
        path = str(given.get("file_path") or given.get("path") or given.get("absolute_path") or "")
        size = _size(os.path.join(project, path)) if path else 0
        if size > LARGE_FILE:
            return (
                f"The file has {size // 1024} KiB. Read a part of it, or use sidecar's index_path and search_context,"
                " or run_code to extract what you need."
            )
    return None


def _context(platform: str, event: str, text: str) -> dict[str, Any] | None:
    if not text:
        return None
    if platform == "copilot":
        return {"additionalContext": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _denied(platform: str, event: str, reason: str) -> dict[str, Any]:
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    if platform == "copilot":
        return decision
    if platform == "gemini-cli":
        return {"decision": "deny", "reason": reason}
    return {"hookSpecificOutput": {"hookEventName": event, **decision}}


def _tool_input(payload: dict[str, Any]) -> dict[str, Any]:
    given = payload.get("tool_input", payload.get("toolArgs"))
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = {"text": given}
    return given if isinstance(given, dict) else {}


def _output(payload: dict[str, Any]) -> str:
    """The text of a tool's result, in the forms that agents send."""
    found = payload.get("tool_response", payload.get("toolResult"))
    if isinstance(found, dict):
        parts = [
            found.get(name)
            for name in ("stdout", "stderr", "textResultForLlm", "llmContent", "content", "output")
        ]
        texts = [part for part in parts if isinstance(part, str) and part]
        return "\n".join(texts) or json.dumps(found, ensure_ascii=False)
    if isinstance(found, list):
        return "\n".join(str(part.get("text", "")) for part in found if isinstance(part, dict))
    return found if isinstance(found, str) else ""


def _put(folder: str, record: dict[str, Any]) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if len(os.listdir(folder)) >= MAX_WAITING:
        return
    name = f"{time.time_ns():020d}-{os.getpid()}"
    temporary = os.path.join(folder, f".{name}")
    with open(temporary, "x", encoding="utf-8", errors="replace") as file:
        json.dump(record, file)
    os.rename(temporary, os.path.join(folder, f"{name}.json"))


def _first(payload: dict[str, Any], *names: str) -> str:
    return next((payload[name] for name in names if isinstance(payload.get(name), str)), "")


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(MAX_TEXT)
    except OSError:
        return ""


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
