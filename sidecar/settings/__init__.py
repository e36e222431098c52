"""Settings: read from their layers, validated against one table, written back with the user's comments preserved.

The lowest layer: imports nothing of the program, and nothing heavy until there is a file to read.
"""

from __future__ import annotations

from .edit import write_settings
from .errors import SettingsConflict, SettingsError
from .files import SettingsFile, project_file, user_file
from .key import SettingKey
from .keys import KEYS, MEMORY
from .layers import CONFIG_VARIABLE, load, read_scope
from .values import LogSettings, SessionSettings, Settings, StoreSettings

__all__ = [
    "CONFIG_VARIABLE",
    "KEYS",
    "MEMORY",
    "LogSettings",
    "SessionSettings",
    "SettingKey",
    "Settings",
    "SettingsConflict",
    "SettingsError",
    "SettingsFile",
    "StoreSettings",
    "load",
    "project_file",
    "read_scope",
    "user_file",
    "write_settings",
]
