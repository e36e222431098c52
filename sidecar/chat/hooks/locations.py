"""Where hook files may be. Light: a chat without hooks uses only this module at every turn."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from ...model import FileScope

if TYPE_CHECKING:
    from ..services.project_settings import ProjectSettings

PROJECT_FILE = os.path.join(".sidecar", "hooks.json")
USER_FILE = "hooks.json"
_CLAUDE_PROJECT = (os.path.join(".claude", "settings.json"), os.path.join(".claude", "settings.local.json"))
_CLAUDE_USER = os.path.join(".claude", "settings.json")


class HookLocation(msgspec.Struct, frozen=True):
    """A path where a hook file may be; a `named` one must exist."""

    path: str
    scope: FileScope
    claude: bool = False
    named: bool = False


def hook_locations(user_folder: str, settings: ProjectSettings, project: str | None) -> list[HookLocation]:
    """The files, in the order in which their hooks are listed; none when hooks are switched off."""
    if not settings.values.hooks.enabled:
        return []
    found = [HookLocation(os.path.join(user_folder, USER_FILE), "user")]
    found += [HookLocation(path, "user", named=True) for path in settings.values.hooks.paths]
    if settings.values.hooks.claude_settings:
        found.append(HookLocation(os.path.join(os.path.expanduser("~"), _CLAUDE_USER), "user", claude=True))
    if project:
        found.append(HookLocation(os.path.join(project, PROJECT_FILE), "project"))
        if settings.values.hooks.claude_settings:
            found += [
                HookLocation(os.path.join(project, name), "project", claude=True) for name in _CLAUDE_PROJECT
            ]
    return found


def any_exist(hook_locations: list[HookLocation]) -> bool:
    """Whether any of the files exists."""
    return any(location.named or os.path.lexists(location.path) for location in hook_locations)
