"""Where files of hooks may be. Light: a chat without hooks looks here at every turn, and imports no more for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from .desk import WorkSettings

PROJECT_FILE = os.path.join(".sidecar", "hooks.json")
USER_FILE = "hooks.json"
_CLAUDE_PROJECT = (os.path.join(".claude", "settings.json"), os.path.join(".claude", "settings.local.json"))
_CLAUDE_USER = os.path.join(".claude", "settings.json")


class Place(msgspec.Struct, frozen=True):
    """Where a file of hooks may be; `named` ones must be there."""

    path: str
    scope: Literal["user", "project"]
    claude: bool = False
    named: bool = False


def places(user_folder: str, settings: WorkSettings, project: str | None) -> list[Place]:
    """The files, in the order in which their hooks are told; none when hooks are switched off."""
    if not settings.hooks_enabled:
        return []
    found = [Place(os.path.join(user_folder, USER_FILE), "user")]
    found += [Place(path, "user", named=True) for path in settings.hook_paths]
    if settings.claude_hooks:
        found.append(Place(os.path.join(os.path.expanduser("~"), _CLAUDE_USER), "user", claude=True))
    if project:
        found.append(Place(os.path.join(project, PROJECT_FILE), "project"))
        if settings.claude_hooks:
            found += [Place(os.path.join(project, name), "project", claude=True) for name in _CLAUDE_PROJECT]
    return found


def any_there(places: list[Place]) -> bool:
    """Whether there may be a hook at all."""
    return any(place.named or os.path.lexists(place.path) for place in places)
