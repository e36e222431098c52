"""What the user's settings say about the hooks of one agent. Reads them only when they have a table for agents: the
settings take longer to import than the hook runs.
"""

from __future__ import annotations

import os
import sys

from ..system.lazy import lazy_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .. import settings
    from ..settings import files as settings_files
    from ..settings.values import AdapterSettings
else:
    settings = lazy_module("sidecar.settings")
    settings_files = lazy_module("sidecar.settings.files")


def read_switches(name: str) -> AdapterSettings | None:
    """The settings for this agent; None when there are none, or none that can be read."""
    if not any(map(_mentions_agents, (_user_file(), os.environ.get("SIDECAR_CONFIG")))):
        return None
    try:
        return settings.load(environ=os.environ).for_adapter(name)
    except settings.SettingsError:
        return None


def _user_file() -> str:
    if sys.platform != "linux":
        return settings_files.user_file()
    folder = os.environ.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config")
    return os.path.join(folder, "sidecar/config.toml")


def _mentions_agents(path: str | None) -> bool:
    try:
        with open(path or "", "rb") as file:
            return b"adapters" in file.read()
    except OSError:
        return False
