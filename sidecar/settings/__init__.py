"""Settings: read from their layers, checked against one table, written back with the user's comments kept.

Bottom floor: imports nothing of ours, and nothing heavy until a file is there to be read.
"""

from __future__ import annotations

from .edit import write
from .errors import SettingsConflict, SettingsError
from .files import SettingsFile, project_file, user_file
from .key import Key
from .keys import KEYS, MEMORY
from .layers import load, read_scope
from .values import Log, Session, Settings, Store

__all__ = [
    "KEYS",
    "MEMORY",
    "Key",
    "Log",
    "Session",
    "Settings",
    "SettingsConflict",
    "SettingsError",
    "SettingsFile",
    "Store",
    "load",
    "project_file",
    "read_scope",
    "user_file",
    "write",
]
