"""What connecting an agent changes in its files: the entry of the MCP server, hooks, and a short block of instructions.

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
from .base import Adapter, HookFile, ServerFile
from .scripts import HEAD

if TYPE_CHECKING:
    import tomllib

    import tomlkit
    from tomlkit import exceptions as tomlkit_errors
else:
    tomllib = lazy_module("tomllib")
    tomlkit = lazy_module("tomlkit")
    tomlkit_errors = lazy_module("tomlkit.exceptions")

SERVER = "sidecar"
"""The name of the server in an agent's settings; agents put it before the names of the tools."""

T = TypeVar("T")

BEGIN, END = "<!-- sidecar: begin -->", "<!-- sidecar: end -->"

INSTRUCTIONS = """\
The MCP server `sidecar` keeps long output out of your context. Use its run_code and run_batch for
commands and scripts with much output, index_path and fetch_url for large files and pages, and
search_context to look up what was kept. search_chats finds what was said and decided in earlier
sessions.
"""

_BLOCK = re.compile(rf"\n?{re.escape(BEGIN)}\n.*?{re.escape(END)}\n", re.DOTALL)
_OUR_HOOK = re.compile(r"sidecar\S*['\"]? hook --platform ([a-z-]+) ")


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


def file_path(
    file: ServerFile | HookFile | None, scope: FileScope, home: str, project: str, environ: Mapping[str, str]
) -> str | None:
    """Where the agent reads this file in a scope; None when it has none there."""
    place = file and (file.user if scope == "user" else file.project)
    if not file or not place:
        return None
    if scope == "project":
        return os.path.join(project, place)
    moved = environ.get(file.moved[0]) if file.moved else None
    return os.path.join(moved, file.moved[1]) if moved and file.moved else os.path.join(home, place)


def instructions_path(adapter: Adapter, scope: FileScope, home: str, project: str) -> str | None:
    """The file for the block of instructions in a scope; None when the agent reads none there."""
    place = adapter.user_instructions if scope == "user" else adapter.instructions
    return os.path.join(home if scope == "user" else project, place) if place else None


def plan_server(servers: ServerFile, command: Sequence[str], path: str, before: str | None) -> FileEdit:
    """Add the server, or replace its entry."""
    return FileEdit(path, before, _edit(path, before or "", servers, servers.entry(list(command))))


def plan_server_removal(servers: ServerFile, path: str, before: str | None) -> FileEdit:
    """Remove the server's entry; a file that has nothing else is removed too."""
    if before is None:
        return FileEdit(path, None, None)
    after = _edit(path, before, servers, None)
    return FileEdit(path, before, None if after != before and _is_empty(after) else after)


def server_entry(servers: ServerFile, text: str, path: str) -> JsonObject | None:
    """The entry of the server as the file has it; None when there is none."""
    keys = (*servers.container, SERVER)
    if servers.syntax == "toml":
        found: object = _toml(path, text)
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
    else:
        found = _json(path, lambda: jsonc.find(text, keys))
    return dict(found) if isinstance(found, Mapping) else None


def plan_hooks(
    adapter: Adapter, program: Sequence[str], path: str, text: str | None, *, remove: bool
) -> FileEdit:
    """Register our hook for the agent's events, or remove it; other hooks stay."""
    hooks = adapter.hooks
    assert hooks is not None
    before = text or ""
    if hooks.own and remove:
        return FileEdit(path, text, None if hook_platforms(hooks, before, path) else text)
    if hooks.script is not None:
        return FileEdit(path, text, hooks.script([*program, "hook", "--platform", adapter.name]))
    commands = {event: _command(program, adapter.name, event) for event in hooks.format.events}
    entries = {event: hooks.format.entry(event, command) for event, command in commands.items()}
    if hooks.syntax == "toml":
        after = _edit_toml_hooks(path, before, [] if remove else list(entries.values()), adapter.name)
    elif hooks.syntax == "list":
        listed = {"version": "v1", "hooks": list(entries.values())}
        after = jsonc.set_value("", (), listed)
    else:
        after = _json(path, lambda: _edit_json_hooks(before, hooks, entries, adapter.name, remove=remove))
    if remove and after != before and _is_empty(after):
        return FileEdit(path, text, None)
    return FileEdit(path, text, after if text is not None or after else None)


def hook_platforms(hooks: HookFile, text: str, path: str) -> dict[str, int]:
    """For which agents the file runs our hook, and for how many events each; raises for a file that is not valid."""
    if hooks.script is not None:
        named = re.search(r'"--platform", "([a-z-]+)"', text)
        return {named[1]: len(hooks.format.events)} if text.startswith(HEAD) and named else {}
    if hooks.syntax == "toml":
        _toml(path, text)
    else:
        _json(path, lambda: jsonc.parse(text))
    found: dict[str, int] = {}
    for name in _OUR_HOOK.findall(text):
        found[name] = found.get(name, 0) + 1
    return found


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


def _command(program: Sequence[str], platform: str, event: str) -> str:
    return shlex.join([*program, "hook", "--platform", platform, event])


def _edit_json_hooks(
    before: str, hooks: HookFile, entries: Mapping[str, JsonObject], platform: str, *, remove: bool
) -> str:
    """The text with these hooks in place of ours, or without those of this platform."""
    after = before
    if not remove and hooks.own and jsonc.find(after, ("version",)) is None:
        after = jsonc.set_value(after, ("version",), 1)
    for event, entry in entries.items():
        listed = jsonc.find(after, ("hooks", event))
        ours = [item for item in listed if _is_our_hook(item)] if isinstance(listed, list) else []
        wanted = [] if remove else [entry]
        if ours != wanted:
            after = jsonc.remove_items(
                after, ("hooks", event), lambda item: _is_our_hook(item, platform if remove else None)
            )
            after = jsonc.set_items(after, ("hooks", event), wanted) if wanted else after
    return _without_empty(after, ("hooks",)) if remove and after != before else after


def _is_our_hook(item: object, platform: str | None = None) -> bool:
    """Whether an entry of an agent's hooks is ours alone, of this platform or of any."""
    if not isinstance(item, Mapping):
        return False
    inner = item.get("hooks")
    if isinstance(inner, list) and inner:
        return all(_is_our_hook(one, platform) for one in inner)
    command = item.get("command") or item.get("bash")
    found = _OUR_HOOK.search(f"{command} ") if isinstance(command, str) else None
    return found is not None and platform in (None, found[1])


def _edit_toml_hooks(path: str, text: str, entries: Sequence[JsonObject], platform: str) -> str:
    """The text with these tables `[[hooks]]` in place of ours."""
    document = _toml(path, text)
    listed = document.get("hooks", [])
    if not isinstance(listed, list):
        raise InvalidFile(f"{path}, line {_line(text, 'hooks')}: `hooks` is no array of tables")
    ours = [item for item in listed if _is_our_hook(item)]
    if [dict(item) for item in ours] == list(entries):
        return text
    for item in ours:
        listed.remove(item)
    if "hooks" in document and not listed:
        document.pop("hooks")
    after = tomlkit.dumps(document)
    if ours:
        after = after.rstrip("\n") + "\n" if after.strip() else ""
    if not entries:
        return after
    tables = tomlkit.aot()
    for entry in entries:
        table = tomlkit.table()
        table.update(entry)
        tables.append(table)
    # Appended as text: a table that other hooks follow would be moved by tomlkit.
    gap = "" if not after or after.endswith("\n\n") else "\n" if after.endswith("\n") else "\n\n"
    return after + gap + tomlkit.dumps({"hooks": tables})


def _edit(path: str, text: str, servers: ServerFile, entry: JsonObject | None) -> str:
    """The text with this entry, or without any."""
    keys = (*servers.container, SERVER)
    if servers.syntax == "toml":
        return _edit_toml(path, text, keys, entry)
    if entry is None:
        return _json(path, lambda: _removed(text, keys))
    return _json(path, lambda: jsonc.set_value(text, keys, entry))


def _removed(text: str, keys: tuple[str, ...]) -> str:
    """The text without the member, and without objects that are empty for want of it."""
    after = jsonc.remove(text, keys)
    return text if after == text else _without_empty(after, keys[:-1])


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
            raise InvalidFile(f"{path}, line {_line(text, key)}: `{key}` is no table")
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


def _line(text: str, key: str) -> int:
    """The line on which a key of the document is; 1 when it is not found as written."""
    found = re.search(rf"^\s*\[*\s*['\"]?{re.escape(key)}\b", text, re.MULTILINE)
    return text.count("\n", 0, found.end()) + 1 if found else 1


def _toml(path: str, text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except tomlkit_errors.TOMLKitError as error:
        raise InvalidFile(f"{path}, line {_error_line(text, error)}: not valid TOML ({error})") from error


def _error_line(text: str, error: Exception) -> int:
    """The line of a mistake; tomlkit does not name it for a key that is there twice."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as other:
        found = re.search(r"at line (\d+)", str(other))
        if found:
            return int(found[1])
    return int(getattr(error, "line", 0)) or text.count("\n") + 1


def _json(path: str, action: Callable[[], T]) -> T:
    try:
        return action()
    except jsonc.InvalidJson as error:
        raise InvalidFile(f"{path}, {error}") from error


def _is_empty(text: str) -> bool:
    return text.strip() in ("", "{}")
