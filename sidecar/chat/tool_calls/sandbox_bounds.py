"""The bounds of one chat's commands in the sandbox, from the settings, the store and the project's files.

Confines nothing itself: `tools/shell/runner` and `system/sandbox` do.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from ...model import JsonObject
from ...system import programs
from ...system.lazy import lazy_module
from ...tools.shell.runner import Bounds

if TYPE_CHECKING:
    from ..hooks import files as hook_files
    from ..hooks.locations import HookLocation
    from ..services.project_settings import ProjectSettings
    from ..services.services import ChatServices
else:
    hook_files = lazy_module("sidecar.chat.hooks.files")

_PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "SIDECAR_PROJECT_DIR")
"""Variables that hooks use for the project's folder."""

_ENTRY_POINTS = ("__main__.py", "index.js", "index.mjs", "package.json")
"""What an interpreter runs, or reads first, when it gets a folder."""


async def bounds_of(
    services: ChatServices, settings: ProjectSettings, extra_folders: Sequence[str], outside: Outside
) -> Bounds:
    """The bounds of commands in a project."""
    hidden = [services.store.data_dir, services.user_folder, *filter(None, [services.settings_file])]
    return Bounds(
        writable=extra_folders,
        hidden=hidden,
        readable=settings.values.tools.readable,
        others=await services.store.retention.all_paths(),
        read_only=await anyio.to_thread.run_sync(run_outside, outside),
        environment=settings.values.tools.environment,
        max_processes=settings.values.tools.max_processes,
        max_memory=settings.values.tools.max_memory_bytes,
        max_tmp=settings.values.tools.max_tmp_bytes,
    )


class Outside(msgspec.Struct, frozen=True):
    """What may run or be read outside the sandbox: `named` files, hooks and MCP servers. `folders` are the project and
    the further folders of the chat.
    """

    folders: Sequence[str]
    named: Sequence[str]
    hooks: Sequence[HookLocation]
    servers: Sequence[JsonObject]


def run_outside(outside: Outside) -> list[str]:
    """The files and folders of the project that are run or read outside the sandbox: hook scripts, server programs,
    folders in which programs are searched, and rules. Blocking.

    They are read-only for commands: a command that changed the script of a hook would run code outside the sandbox,
    whatever the trusted settings say.
    """
    programs.note_writable(outside.folders)
    project = outside.folders[0]
    words = [*_words_of_servers(outside.servers, project), *_words_of_hooks(outside.hooks, project)]
    paths = (
        os.path.join(project, os.path.expanduser(word)) for word in dict.fromkeys([*outside.named, *words])
    )
    found = [path for path in paths if os.path.isfile(path)]
    if not words:
        return found
    return [*found, *programs.path_folders(outside.folders), *programs.writable_programs(words)]


def _words_of_servers(servers: Iterable[JsonObject], project: str) -> Iterator[str]:
    for server in servers:
        folder = os.path.join(project, str(server.get("cwd") or ""))
        args = server.get("args")
        words = [str(server.get("command") or ""), *map(str, args if isinstance(args, list) else ())]
        yield from filter(None, words)
        # An option may name a script too: `--require=./hook.js`.
        for piece in {piece for word in words for piece in (word, *word.split("=")[1:]) if piece}:
            path = os.path.join(folder, os.path.expanduser(piece))
            yield path
            if os.path.isdir(path) and os.path.realpath(path) != project:
                yield from (os.path.join(path, name) for name in _ENTRY_POINTS)


def _words_of_hooks(places: Sequence[HookLocation], project: str) -> Iterator[str]:
    if not any(os.path.lexists(place.path) for place in places):
        return
    for place in places:
        for hook in hook_files.read_hooks(place):
            words = hook.args if hook.args is not None else ()
            for word in (*_split(hook.command), *words):
                yield _expand_variables(word, project)


def _split(command: str) -> Iterable[str]:
    try:
        return shlex.split(command, comments=False)
    except ValueError:  # an unclosed quote
        return command.split()


def _expand_variables(word: str, project: str) -> str:
    for name in _PROJECT_VARIABLES:
        word = word.replace(f"${{{name}}}", project).replace(f"${name}", project)
    return word.strip("\"'();&|<>")
