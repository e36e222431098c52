"""The bounds of one chat's commands in the sandbox, from the settings, the store and the project's files.

Confines nothing itself: `tools/shell/runner` and `system/sandbox` do.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import anyio.to_thread

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


async def bounds_of(
    services: ChatServices,
    settings: ProjectSettings,
    project: str,
    extra_folders: Sequence[str],
    places: list[HookLocation],
) -> Bounds:
    """The bounds of commands in a project; `places` are the files that may define hooks."""
    hidden = [services.store.data_dir, services.user_folder, *filter(None, [services.settings_file])]
    return Bounds(
        writable=extra_folders,
        hidden=hidden,
        readable=settings.values.tools.readable,
        others=await services.store.retention.all_paths(),
        read_only=await anyio.to_thread.run_sync(run_outside, settings, project, places),
        environment=settings.values.tools.environment,
        max_processes=settings.values.tools.max_processes,
        max_memory=settings.values.tools.max_memory_bytes,
        max_tmp=settings.values.tools.max_tmp_bytes,
    )


def run_outside(settings: ProjectSettings, project: str, places: list[HookLocation]) -> list[str]:
    """The project's files that are run or read outside the sandbox: hook scripts, server programs, and rules.
    Blocking.

    They are read-only for commands: a command that changed the script of a hook would run code outside the sandbox,
    whatever the trusted settings say.
    """
    named = [*settings.values.hooks.paths, *settings.values.rules.paths, *_words_of_servers(settings)]
    named += _words_of_hooks(places, project)
    paths = (os.path.join(project, os.path.expanduser(word)) for word in dict.fromkeys(named))
    return [path for path in paths if os.path.isfile(path)]


def _words_of_servers(settings: ProjectSettings) -> Iterator[str]:
    for server in settings.values.mcp_servers():
        yield from map(str, (server.get("command") or "", *(server.get("args") or ())))


def _words_of_hooks(places: list[HookLocation], project: str) -> Iterator[str]:
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
