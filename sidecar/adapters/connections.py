"""What connecting an agent changes in its files: the entry of the MCP server, and a short block of instructions.

Plans only, from the text of the files; the command reads and writes them. Text that is not valid is never changed.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ..model import FileScope, JsonObject
from ..system.lazy import lazy_module
from . import jsonc
from .base import Adapter, EntryFormat, HookShape, ServerFile

if TYPE_CHECKING:
    import tomlkit
    from tomlkit import exceptions as tomlkit_errors
else:
    tomlkit = lazy_module("tomlkit")
    tomlkit_errors = lazy_module("tomlkit.exceptions")

SERVER = "sidecar"
"""The name of the server in an agent's settings; agents put it before the names of the tools."""

HOOK_S = 10
"""Seconds after which an agent goes on without our hook; it takes some fifty milliseconds."""


T = TypeVar("T")

BEGIN, END = "<!-- sidecar: begin -->", "<!-- sidecar: end -->"

INSTRUCTIONS = """\
The MCP server `sidecar` keeps long output out of your context. Use its run_code and run_batch for
commands and scripts with much output, index_path and fetch_url for large files and pages, and
search_context to look up what was kept. search_chats finds what was said and decided in earlier
sessions.
"""

_BLOCK = re.compile(rf"\n?{re.escape(BEGIN)}\n.*?{re.escape(END)}\n", re.DOTALL)


class InvalidFile(Exception):
    """A file of the agent cannot be read as what it should be; the message names the line."""


class FileEdit(msgspec.Struct, frozen=True):
    """A file and its text before and after; None means that there is no file."""

    path: str
    before: str | None
    after: str | None

    @property
    def changes(self) -> bool:
        return self.before != self.after


def server_path(
    adapter: Adapter, scope: FileScope, home: str, project: str, environ: Mapping[str, str]
) -> str | None:
    """The file in which the agent reads its MCP servers; None when it has none in this scope."""
    servers = adapter.servers
    place = servers and (servers.user if scope == "user" else servers.project)
    if not servers or not place:
        return None
    if scope == "project":
        return os.path.join(project, place)
    moved = environ.get(servers.home_variable or "")
    return os.path.join(moved, place.partition("/")[2]) if moved else os.path.join(home, place)


def plan_connect(
    adapter: Adapter, command: Sequence[str], path: str, read: Callable[[str], str | None]
) -> FileEdit:
    """Add the server, or replace its entry."""
    assert adapter.servers is not None
    before = read(path)
    after = _edit(path, before or "", adapter.servers, _entry(adapter.servers.entry, command))
    return FileEdit(path, before, after)


def plan_disconnect(adapter: Adapter, path: str, read: Callable[[str], str | None]) -> FileEdit:
    """Remove the server's entry; a file that has nothing else is removed too."""
    assert adapter.servers is not None
    before = read(path)
    if before is None:
        return FileEdit(path, None, None)
    after: str | None = _edit(path, before, adapter.servers, None)
    return FileEdit(path, before, None if after != before and _is_empty(after or "") else after)


def is_connected(adapter: Adapter, text: str, path: str) -> bool:
    """Whether the file has an entry for the server."""
    assert adapter.servers is not None
    keys = (*adapter.servers.container, SERVER)
    if adapter.servers.entry == "toml":
        found: object = _toml(path, text)
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found is not None
    return _json(path, lambda: jsonc.find(text, keys)) is not None


def hook_path(
    adapter: Adapter, scope: FileScope, home: str, project: str, environ: Mapping[str, str]
) -> str | None:
    """The file in which the agent reads its hooks; None when it has none."""
    hooks = adapter.hooks
    if hooks is None:
        return None
    if scope == "project":
        return os.path.join(project, hooks.project)
    moved = environ.get(hooks.home_variable or "")
    return os.path.join(moved, hooks.user.partition("/")[2]) if moved else os.path.join(home, hooks.user)


def plan_hooks(
    adapter: Adapter, program: Sequence[str], path: str, text: str | None, *, remove: bool
) -> FileEdit:
    """Register our hook for the agent's events, or remove it; other hooks stay."""
    hooks = adapter.hooks
    assert hooks is not None
    before = text or ""

    def edit() -> str:
        after = before
        if hooks.own and not remove and jsonc.find(after, ("version",)) != 1:
            after = jsonc.set_value(after, ("version",), 1)
        for event in hooks.events:
            words = [*program, "hook", "--platform", adapter.name, event]
            wanted = [] if remove else [_hook(hooks.shape, event, shlex.join(words))]
            listed = jsonc.find(after, ("hooks", event))
            ours = [item for item in listed if _is_our_hook(item)] if isinstance(listed, list) else []
            if ours != wanted:
                after = jsonc.remove_items(after, ("hooks", event), _is_our_hook)
                after = jsonc.set_items(after, ("hooks", event), wanted) if wanted else after
        return _without_empty(after, ("hooks",)) if remove else after

    after = _json(path, edit)
    if remove and (hooks.own or (after != before and _is_empty(after))):
        return FileEdit(path, text, None)
    return FileEdit(path, text, after if text is not None or after else None)


def _hook(shape: HookShape, event: str, command: str) -> JsonObject:
    if shape == "copilot":
        return {"type": "command", "bash": command, "timeoutSec": HOOK_S}
    seconds = HOOK_S if shape == "claude" else HOOK_S * 1000
    named = {"name": SERVER} if shape == "gemini" else {}
    group: JsonObject = {"hooks": [{"type": "command", **named, "command": command, "timeout": seconds}]}
    # For other events a matcher would have to name what starts a session, and the like.
    return {"matcher": "*", **group} if "Tool" in event else group


def _is_our_hook(item: object) -> bool:
    """Whether an entry of an agent's hooks is ours alone."""
    if not isinstance(item, dict):
        return False
    inner = item.get("hooks")
    if isinstance(inner, list) and inner:
        return all(map(_is_our_hook, inner))
    command = item.get("command") or item.get("bash")
    return isinstance(command, str) and " hook --platform " in command and SERVER in command


def plan_instructions(path: str, before: str | None, *, remove: bool) -> FileEdit:
    """Write the block of instructions, or remove it; the rest of the file stays as it is."""
    text = before or ""
    without = _BLOCK.sub("", text)
    if remove:
        return FileEdit(
            path, before, None if before is not None and text and not without else before and without
        )
    separator = "" if not without or without.endswith("\n") else "\n"
    gap = "\n" if without else ""
    return FileEdit(path, before, f"{without}{separator}{gap}{BEGIN}\n{INSTRUCTIONS}{END}\n")


def _entry(kind: EntryFormat, command: Sequence[str]) -> JsonObject:
    program, *arguments = command
    plain: JsonObject = {"command": program, "args": arguments}
    match kind:
        case "stdio":
            return {"type": "stdio", **plain}
        case "local":
            return {"type": "local", **plain, "tools": ["*"]}
        case "opencode":
            return {"type": "local", "command": list(command), "enabled": True}
    return plain


def _edit(path: str, text: str, servers: ServerFile, entry: JsonObject | None) -> str:
    """The text with this entry, or without any."""
    keys = (*servers.container, SERVER)
    if servers.entry == "toml":
        return _edit_toml(path, text, keys, entry)
    if entry is None:
        return _json(path, lambda: _without_empty(jsonc.remove(text, keys), keys[:-1]))
    return _json(path, lambda: jsonc.set_value(text, keys, entry))


def _without_empty(text: str, path: tuple[str, ...]) -> str:
    """The text without objects that were left empty on the way to the entry."""
    while path and jsonc.find(text, path) == {}:
        text, path = jsonc.remove(text, path), path[:-1]
    return text


def _edit_toml(path: str, text: str, keys: Sequence[str], entry: JsonObject | None) -> str:
    document = _toml(path, text)
    *containers, name = keys
    table: object = document
    for key in containers:
        assert isinstance(table, dict)
        if key not in table:
            if entry is None:
                return text
            table[key] = tomlkit.table(is_super_table=True)
        table = table[key]
        if not isinstance(table, dict):
            raise InvalidFile(f"{path}: `{key}` is no table")
    assert isinstance(table, dict)
    if entry is None:
        table.pop(name, None)
        if containers and not table:
            document.pop(containers[0], None)
    else:
        added = tomlkit.table()
        added.update(entry)
        table[name] = added
    return tomlkit.dumps(document)


def _toml(path: str, text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except tomlkit_errors.ParseError as error:
        raise InvalidFile(f"{path}, line {error.line}: not valid TOML ({error})") from error


def _json(path: str, action: Callable[[], T]) -> T:
    try:
        return action()
    except jsonc.InvalidJson as error:
        raise InvalidFile(f"{path}, {error}") from error


def _is_empty(text: str) -> bool:
    return text.strip() in ("", "{}")
