"""Translate our tool calls to the names and parameters of Claude Code, and back. Pure.

One call may be several there: a patch of three files is three edits, a batch is one command each. A hook that was
written for one of them must see each, or the model could bypass it with another tool. Such a partial view is
read-only.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from ...model import JsonObject
from ...workspace.unidiff import FilePatch, PatchFailed, parse_patch

MAX_CLAUDE_CALLS = 50
"""Views of one call: each is a run of every hook that it selects."""


class ClaudeCall(msgspec.Struct, frozen=True):
    """A call as Claude Code would make it. `whole` says that it represents the whole call, and may be changed."""

    tool: str
    input: JsonObject
    whole: bool = True


class TooManyCalls(Exception):
    """The call has more views than hooks can be run for."""


def matcher_names(tool: str) -> tuple[str, ...]:
    """Return the names by which a matcher may select this tool, ours first."""
    return (tool, *_ALIASES.get(tool, ()))


def claude_calls(alias: str, tool: str, input: JsonObject, project: str) -> list[ClaudeCall]:
    """Return the views of the call under Claude Code's names; at least one."""
    if tool == "patch_file":
        return _patch_calls(alias, input.get("patch"), input.get("path"), project)
    if tool == "run_batch":
        return _batch_calls(alias, input.get("commands"))
    if tool == "run_code":
        return [
            ClaudeCall(
                alias,
                {"command": _script_command(str(input.get("code", "")), str(input.get("language", "")))},
                whole=False,
            )
        ]
    if tool == "insert_line":
        given = {"file_path": _absolute(input.get("path"), project), "old_string": ""}
        return [ClaudeCall(alias, {**given, "new_string": input.get("text", "")}, whole=False)]
    return [ClaudeCall(alias, _to_claude(tool, input, project))]


def from_claude_input(tool: str, changed: JsonObject, before: JsonObject, project: str) -> JsonObject | None:
    """Translate a changed input to our names; None when it has no meaning here. Unknown parameters stay unchanged."""
    path = _relative(changed.get("file_path"), project)
    match tool:
        case "run_command" if isinstance(changed.get("command"), str):
            timeout = {"timeout_ms": changed["timeout"]} if "timeout" in changed else {}
            return {**before, "command": changed["command"], **timeout}
        case "read_file" if isinstance(path, str):
            return {"path": path, **_lines(changed.get("offset"), changed.get("limit"))}
        case "write_file" | "edit_file" if isinstance(path, str) and "edits" not in changed:
            return {"path": path, **{name: value for name, value in changed.items() if name != "file_path"}}
        case "glob" | "list_dir" | "grep":
            made = _with_path(changed, lambda path: _relative(path, project))
            return _from_claude_grep(made) if tool == "grep" else made
        case "fetch_url" if isinstance(changed.get("url"), str):
            return {**before, "url": changed["url"]}
        case "update_plan":
            todos = changed.get("todos")
            if isinstance(todos, list) and all(isinstance(todo, dict) for todo in todos):
                return {
                    "plan": [{"step": todo.get("content"), "status": todo.get("status")} for todo in todos]
                }
    return None


_ALIASES: dict[str, tuple[str, ...]] = {
    "run_command": ("Bash",),
    "run_batch": ("Bash",),
    "run_code": ("Bash",),
    "read_file": ("Read",),
    "write_file": ("Write",),
    "edit_file": ("Edit",),
    "insert_line": ("Edit",),
    "patch_file": ("Edit", "MultiEdit"),
    "glob": ("Glob",),
    "grep": ("Grep",),
    "list_dir": ("LS",),
    "fetch_url": ("WebFetch",),
    "update_plan": ("TodoWrite",),
    "ask_user": ("AskUserQuestion",),
}


def _absolute(path: object, project: str) -> str:
    return os.path.normpath(os.path.join(project, path if isinstance(path, str) else ""))


def _relative(path: object, project: str) -> object:
    if not isinstance(path, str):
        return path
    # A hook may answer with a path elsewhere; it stays absolute, and the policy decides about it.
    inside = path.startswith(f"{project.rstrip('/')}/")
    return os.path.relpath(path, project) if inside else path


_GREP = {"ignore_case": "-i", "context": "-C", "output": "output_mode"}
_OUTPUTS = {"lines": "content", "files": "files_with_matches", "count": "count"}


def _with_path(values: JsonObject, convert: Callable[[object], object]) -> JsonObject:
    return {**values, "path": convert(values["path"])} if "path" in values else values


def _to_claude(tool: str, input: JsonObject, project: str) -> JsonObject:
    match tool:
        case "run_command":
            timeout = {"timeout": input["timeout_ms"]} if "timeout_ms" in input else {}
            return {"command": input.get("command", ""), "description": "", **timeout}
        case "read_file":
            start, end = input.get("start_line"), input.get("end_line")
            first = start if isinstance(start, int) else 1
            return {
                "file_path": _absolute(input.get("path"), project),
                **({"offset": start} if isinstance(start, int) else {}),
                **({"limit": end - first + 1} if isinstance(end, int) else {}),
            }
        case "write_file" | "edit_file":
            rest = {name: value for name, value in input.items() if name != "path"}
            return {"file_path": _absolute(input.get("path"), project), **rest}
        case "glob" | "list_dir" | "grep":
            made = _with_path(input, lambda path: _absolute(path, project))
            if tool == "grep":
                made = {_GREP.get(name, name): value for name, value in made.items()}
                made["output_mode"] = _OUTPUTS.get(str(made.get("output_mode", "lines")), "content")
            return made
        case "update_plan":
            plan = input.get("plan")
            steps = [step for step in plan if isinstance(step, dict)] if isinstance(plan, list) else []
            return {"todos": [_todo(step.get("step"), step.get("status")) for step in steps]}
    return input


def _todo(step: object, status: object) -> dict[str, object]:
    return {"content": step, "status": status, "activeForm": step}


def _patch_calls(alias: str, patch: object, path: object, project: str) -> list[ClaudeCall]:
    """Return one view per file, each with the removed and the added text."""
    try:
        files = parse_patch(patch) if isinstance(patch, str) else []
    except PatchFailed:
        files = []
    if len(files) > MAX_CLAUDE_CALLS:
        raise TooManyCalls(f"it changes {len(files)} files at once")
    if not files:  # it will be refused, but a hook still sees the text
        given: JsonObject = {
            "file_path": _absolute(path, project),
            "old_string": "",
            "new_string": str(patch),
        }
        return [ClaudeCall(alias, given, whole=False)]
    return [_patch_call(alias, file, path, project) for file in files]


def _patch_call(alias: str, file: FilePatch, path: object, project: str) -> ClaudeCall:
    named = path if isinstance(path, str) else file.new_path or file.old_path
    edits = [
        {"old_string": _patch_side(hunk.lines, "+"), "new_string": _patch_side(hunk.lines, "-")}
        for hunk in file.hunks
    ]
    file_path = _absolute(named, project)
    if alias == "MultiEdit":
        return ClaudeCall(alias, {"file_path": file_path, "edits": edits}, whole=False)
    joined = {side: "\n".join(edit[side] for edit in edits) for side in ("old_string", "new_string")}
    return ClaudeCall(alias, {"file_path": file_path, **joined}, whole=False)


def _patch_side(lines: tuple[tuple[str, str], ...], without: str) -> str:
    return "\n".join(text.rstrip("\n") for sign, text in lines if sign != without)


def _batch_calls(alias: str, commands: object) -> list[ClaudeCall]:
    listed = commands if isinstance(commands, list) else []
    if len(listed) > MAX_CLAUDE_CALLS:
        raise TooManyCalls(f"it runs {len(listed)} commands at once")
    found = [one.get("command") if isinstance(one, dict) else one for one in listed]
    return [ClaudeCall(alias, {"command": str(one)}, whole=False) for one in found] or [
        ClaudeCall(alias, {"command": ""}, whole=False)
    ]


def _script_command(code: str, language: str) -> str:
    """Return the code as a command line: for the shell directly, or as an argument of the language."""
    return code if language in ("shell", "bash", "sh") else f"{language} <<'CODE'\n{code}\nCODE"


def _lines(offset: object, limit: object) -> dict[str, int]:
    start = {"start_line": max(1, offset)} if isinstance(offset, int) else {}
    end = {"end_line": start.get("start_line", 1) + limit - 1} if isinstance(limit, int) else {}
    return {**start, **end}


def _from_claude_grep(changed: JsonObject) -> JsonObject:
    ours = {theirs: name for name, theirs in _GREP.items()}
    outputs = {theirs: name for name, theirs in _OUTPUTS.items()}
    made = {ours.get(name, name): value for name, value in changed.items()}
    if "output" in made:
        made["output"] = outputs.get(str(made["output"]), "lines")
    return made
