"""Our tools by the names and parameters of Claude Code, and back. Pure.

One call may be several there: a patch of three files is three edits, a batch of commands as many commands. A guard that
was written for one of them must see each, or the model would get past it by another tool. What such a view says can be
read, but not be written back.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgspec

from ...workspace.unidiff import FilePatch, PatchFailed, parse

Json = dict[str, Any]

MAX_VIEWS = 50
"""Of one call: each is a run of every hook that it selects."""


class View(msgspec.Struct, frozen=True):
    """A call as Claude Code would make it. `whole` says that it stands for the call alone, and may be changed."""

    tool: str
    input: Json
    whole: bool = True


class TooMany(Exception):
    """The call stands for more of them than a hook can be asked about."""


def names_of(tool: str) -> tuple[str, ...]:
    """The names that a matcher may select this tool by, ours first."""
    return (tool, *_ALIASES.get(tool, ()))


def views(alias: str, tool: str, input: Json, project: str) -> list[View]:
    """The call in Claude Code's names, under one of its names there; at least one view."""
    if tool == "patch_file":
        return _patched(alias, input, project)
    if tool == "run_batch":
        return _batch(alias, input)
    if tool == "run_code":
        return [View(alias, {"command": _script(input)}, whole=False)]
    if tool == "insert_line":
        given = {"file_path": _absolute(input.get("path"), project), "old_string": ""}
        return [View(alias, {**given, "new_string": input.get("text", "")}, whole=False)]
    return [View(alias, _SPELLED[tool](input, project) if tool in _SPELLED else input)]


def back(tool: str, changed: Json, before: Json, project: str) -> Json | None:
    """A changed input in our names; None when it has no meaning here. What there is no name for stays as it was."""
    taken = _BACK.get(tool)
    return taken(changed, before, project) if taken else None


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
    inside = path.startswith(f"{project.rstrip('/')}/")
    return os.path.relpath(path, project) if inside else path


def _spelled_command(input: Json, project: str) -> Json:
    made = {"command": input.get("command", ""), "description": ""}
    return {**made, "timeout": input["timeout_ms"]} if "timeout_ms" in input else made


def _spelled_read(input: Json, project: str) -> Json:
    made: Json = {"file_path": _absolute(input.get("path"), project)}
    start, end = input.get("start_line"), input.get("end_line")
    if isinstance(start, int):
        made["offset"] = start
    if isinstance(end, int):
        made["limit"] = end - (start if isinstance(start, int) else 1) + 1
    return made


def _spelled_file(input: Json, project: str) -> Json:
    rest = {name: value for name, value in input.items() if name != "path"}
    return {"file_path": _absolute(input.get("path"), project), **rest}


_GREP = {"ignore_case": "-i", "context": "-C", "output": "output_mode"}
_OUTPUTS = {"lines": "content", "files": "files_with_matches", "count": "count"}


def _spelled_grep(input: Json, project: str) -> Json:
    made = {_GREP.get(name, name): value for name, value in input.items()}
    made["output_mode"] = _OUTPUTS.get(made.get("output_mode", "lines"), "content")
    return _in_folder(made, project)


def _in_folder(input: Json, project: str) -> Json:
    return {**input, "path": _absolute(input["path"], project)} if "path" in input else input


def _spelled_plan(input: Json, project: str) -> Json:
    plan = input.get("plan")
    steps = [step for step in plan if isinstance(step, dict)] if isinstance(plan, list) else []
    return {
        "todos": [
            {"content": step.get("step"), "status": step.get("status"), "activeForm": step.get("step")}
            for step in steps
        ]
    }


_SPELLED: dict[str, Callable[[Json, str], Json]] = {
    "run_command": _spelled_command,
    "read_file": _spelled_read,
    "write_file": _spelled_file,
    "edit_file": _spelled_file,
    "glob": _in_folder,
    "grep": _spelled_grep,
    "list_dir": _in_folder,
    "update_plan": _spelled_plan,
}


def _patched(alias: str, input: Json, project: str) -> list[View]:
    """A view a file, each with the text that goes and the text that comes."""
    patch, path = input.get("patch"), input.get("path")
    try:
        files = parse(patch) if isinstance(patch, str) else []
    except PatchFailed:
        files = []
    if len(files) > MAX_VIEWS:
        raise TooMany(f"it changes {len(files)} files at once")
    if not files:  # it will be refused; a guard sees the words all the same
        given = {"file_path": _absolute(path, project), "old_string": "", "new_string": str(patch)}
        return [View(alias, given, whole=False)]
    return [_patch_view(alias, file, path, project) for file in files]


def _patch_view(alias: str, file: FilePatch, path: object, project: str) -> View:
    named = path if isinstance(path, str) else file.new_path or file.old_path
    edits = [
        {"old_string": _side(hunk.lines, "+"), "new_string": _side(hunk.lines, "-")} for hunk in file.hunks
    ]
    given: Json = {"file_path": _absolute(named, project)}
    if alias == "MultiEdit":
        return View(alias, {**given, "edits": edits}, whole=False)
    joined = {side: "\n".join(edit[side] for edit in edits) for side in ("old_string", "new_string")}
    return View(alias, {**given, **joined}, whole=False)


def _side(lines: tuple[tuple[str, str], ...], without: str) -> str:
    return "\n".join(text.rstrip("\n") for sign, text in lines if sign != without)


def _batch(alias: str, input: Json) -> list[View]:
    commands = input.get("commands")
    listed = commands if isinstance(commands, list) else []
    if len(listed) > MAX_VIEWS:
        raise TooMany(f"it runs {len(listed)} commands at once")
    found = [one.get("command") if isinstance(one, dict) else one for one in listed]
    return [View(alias, {"command": str(one)}, whole=False) for one in found] or [
        View(alias, {"command": ""}, whole=False)
    ]


def _script(input: Json) -> str:
    """The code as a command line: a shell's own, or handed to the language."""
    code, language = str(input.get("code", "")), str(input.get("language", ""))
    return code if language in ("shell", "bash", "sh") else f"{language} <<'CODE'\n{code}\nCODE"


def _back_command(changed: Json, before: Json, project: str) -> Json | None:
    if not isinstance(changed.get("command"), str):
        return None
    made = {**before, "command": changed["command"]}
    return {**made, "timeout_ms": changed["timeout"]} if "timeout" in changed else made


def _back_read(changed: Json, before: Json, project: str) -> Json | None:
    made: Json = {"path": _relative(changed.get("file_path"), project)}
    start, limit = changed.get("offset"), changed.get("limit")
    if isinstance(start, int):
        made["start_line"] = max(1, start)
    if isinstance(limit, int):
        made["end_line"] = made.get("start_line", 1) + limit - 1
    return made if isinstance(made["path"], str) else None


def _back_file(changed: Json, before: Json, project: str) -> Json | None:
    made = {name: value for name, value in changed.items() if name != "file_path"}
    path = _relative(changed.get("file_path"), project)
    return {"path": path, **made} if isinstance(path, str) and "edits" not in changed else None


def _back_grep(changed: Json, before: Json, project: str) -> Json | None:
    ours = {theirs: name for name, theirs in _GREP.items()}
    outputs = {theirs: name for name, theirs in _OUTPUTS.items()}
    made = {ours.get(name, name): value for name, value in changed.items()}
    if "output" in made:
        made["output"] = outputs.get(made["output"], "lines")
    return _back_folder(made, before, project)


def _back_folder(changed: Json, before: Json, project: str) -> Json | None:
    return {**changed, "path": _relative(changed["path"], project)} if "path" in changed else changed


def _back_plan(changed: Json, before: Json, project: str) -> Json | None:
    todos = changed.get("todos")
    if not isinstance(todos, list) or not all(isinstance(todo, dict) for todo in todos):
        return None
    return {"plan": [{"step": todo.get("content"), "status": todo.get("status")} for todo in todos]}


def _back_url(changed: Json, before: Json, project: str) -> Json | None:
    return {**before, "url": changed["url"]} if isinstance(changed.get("url"), str) else None


_BACK: dict[str, Callable[[Json, Json, str], Json | None]] = {
    "run_command": _back_command,
    "read_file": _back_read,
    "write_file": _back_file,
    "edit_file": _back_file,
    "glob": _back_folder,
    "grep": _back_grep,
    "list_dir": _back_folder,
    "fetch_url": _back_url,
    "update_plan": _back_plan,
}
