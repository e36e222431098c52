"""What a tool call of an agent intends, in the words of our policy: a path, a command line, an address, or the tool."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from ...model.failures import Failure
from ...policy.rules import PermissionKind
from ...tools.base import Edit, Intent, ToolContext, ToolError, ToolKind
from ...workspace.writing import read_current

KINDS: Mapping[str, ToolKind] = {
    "read": "read",
    "edit": "edit",
    "delete": "delete",
    "move": "move",
    "search": "search",
    "execute": "execute",
    "think": "think",
    "fetch": "fetch",
}
"""The protocol's kinds that we have by the same name; every other is `other`."""

_POLICY_KINDS: Mapping[str, PermissionKind] = {
    "read": "read",
    "search": "read",
    "edit": "edit",
    "delete": "edit",
    "move": "edit",
    "execute": "run",
    "fetch": "fetch",
}

MAX_SHOWN_BYTES = 1024 * 1024
"""Bytes of a file whose change is shown in a permission request."""

_OUTSIDE = "it is outside of the project"


def intent_of(engine: str, call: Mapping[str, Any], context: ToolContext) -> Intent:
    """The intent of a call as the agent describes it. What names neither file, command nor address is a tool of the
    agent, as `mcp(ENGINE/TOOL)` in rules.
    """
    kind = _POLICY_KINDS.get(str(call.get("kind")), "mcp")
    title = str(call.get("title") or call.get("kind") or "tool")
    own = Intent("mcp", f"{engine}/{title}")
    if kind == "run":
        command = command_of(call)
        return Intent("run", command) if command else own
    if kind == "fetch":
        address = next(_texts(call, ("url", "uri", "address")), None)
        return Intent("fetch", address) if address and "://" in address else own
    if kind in ("read", "edit"):
        path = next(paths_of(call), None)
        if path is None:
            return own
        try:
            shown = context.workspace.resolve(path).shown
        except (Failure, ToolError):
            return Intent("mcp", f"{engine}/{title} {path}", always_asks=_OUTSIDE)
        return Intent(kind, shown, shown=_edits(call, context) if kind == "edit" else ())
    return own


def command_of(call: Mapping[str, Any]) -> str | None:
    """The command line of a call that runs one."""
    given = _input(call).get("command")
    if isinstance(given, list) and all(isinstance(word, str) for word in given):
        # Of `bash -lc LINE` the line says what is run.
        if (
            len(given) == 3
            and os.path.basename(given[0]) in ("bash", "sh", "zsh")
            and given[1] in ("-c", "-lc")
        ):
            return str(given[2])
        return shlex.join(given)
    return given if isinstance(given, str) and given.strip() else None


def paths_of(call: Mapping[str, Any]) -> Iterator[str]:
    """The files that a call names: where it is, what it changes, and members of its input with such a name."""
    for part in (call.get("locations") or (), call.get("content") or ()):
        for entry in part if isinstance(part, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("path"), str) and entry["path"]:
                yield entry["path"]
    yield from _texts(call, ("file_path", "path", "filePath", "abs_path", "filename"))


def names_path(call: Mapping[str, Any], path: str) -> bool:
    """Whether a call names this file."""
    return any(
        os.path.normpath(path).endswith(os.path.normpath(found).lstrip("/")) for found in paths_of(call)
    )


def _edits(call: Mapping[str, Any], context: ToolContext) -> tuple[Edit, ...]:
    """The changes that the call shows, as whole files where the old text is found in the file once."""
    edits: list[Edit] = []
    for entry in call.get("content") or ():
        if not isinstance(entry, dict) or entry.get("type") != "diff":
            continue
        new, old, path = entry.get("newText"), entry.get("oldText"), entry.get("path")
        if not isinstance(new, str) or not isinstance(path, str):
            continue
        try:
            shown = context.workspace.resolve(path).shown
            before = read_current(context.workspace, shown, MAX_SHOWN_BYTES)
        except (Failure, ToolError):
            continue
        after = new.encode(errors="replace")
        if before is not None and isinstance(old, str) and old.encode(errors="replace") != before:
            piece = old.encode(errors="replace")
            if not piece or before.count(piece) != 1:
                continue
            after = before.replace(piece, after)
        edits.append(Edit(shown, before, after))
    return tuple(edits)


def _texts(call: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    given = _input(call)
    return (value for name in names if isinstance(value := given.get(name), str) and value)


def _input(call: Mapping[str, Any]) -> Mapping[str, Any]:
    found = call.get("rawInput")
    return found if isinstance(found, dict) else {}
