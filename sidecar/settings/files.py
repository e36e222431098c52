"""Where the settings files are, and their bytes. What they say is for `parsing`, which wins for `layers`."""

from __future__ import annotations

import os
import stat
import sys

from . import known
from .errors import SettingsError
from .parsing import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Scope = Literal["user", "project"]

MAX_FILE_BYTES = 256 * 1024
"""A hundred times the longest file that a person would write; a project's file may come from anybody."""

ABSENT = "absent"
"""The version of a file that is not there."""


class SettingsFile:
    """A file's values by dotted key, as they are written there; `version` is its bytes' hash."""

    __slots__ = ("path", "values", "version")

    def __init__(self, path: str, values: dict[str, Any], version: str) -> None:
        self.path = path
        self.values = values
        self.version = version

    def shown(self) -> dict[str, Any]:
        """The values with every secret masked."""
        return {name: known.shown(name, value) for name, value in self.values.items()}


def user_file() -> str:
    folder = _xdg("XDG_CONFIG_HOME", ".config")
    if folder is None:
        from platformdirs import user_config_dir

        folder = user_config_dir("sidecar", appauthor=False)
    return os.path.join(folder, "config.toml")


def project_file(project: str) -> str:
    return os.path.join(os.path.abspath(project), ".sidecar", "config.toml")


def default_data_dir() -> str:
    folder = _xdg("XDG_DATA_HOME", ".local/share")
    if folder is None:
        from platformdirs import user_data_dir

        folder = user_data_dir("sidecar", appauthor=False)
    return folder


def _xdg(variable: str, fallback: str) -> str | None:
    """Our folder by the rule of the free desktops, which is short; platformdirs takes 5 ms to import for it."""
    if sys.platform != "linux":
        return None
    home = os.environ.get(variable, "").strip() or os.path.join(os.path.expanduser("~"), fallback)
    return os.path.join(home, "sidecar")


def scope_file(scope: Scope, project: str | None) -> str:
    """Where the file of a scope is; a project's needs the project."""
    if scope == "user":
        return user_file()
    if project is None:
        raise SettingsError(None, "the project's settings need the project's path", hint="Give `projectPath`")
    return project_file(project)


def read(path: str, *, project: bool = False) -> SettingsFile:
    """The file's checked values; an absent file has none. `project` refuses what no project may set."""
    data = read_bytes(path)
    values = {} if data is None else parse(path, decode(path, data), project=project)
    return SettingsFile(path, values, version_of(data))


def read_bytes(path: str) -> bytes | None:
    """The file's bytes, or None when it is absent. Never waits: a pipe in its place is refused."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    try:
        return _read_regular(path, fd)
    finally:
        os.close(fd)


def decode(path: str, data: bytes) -> str:
    """The text; a byte-order mark is not part of it."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(None, "is not UTF-8", hint="Save it as UTF-8", path=path, line=line) from error


def version_of(data: bytes | None) -> str:
    if data is None:
        return ABSENT
    from hashlib import sha256

    return sha256(data).hexdigest()[:16]


def unreadable(path: str, error: Exception) -> SettingsError:
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    return SettingsError(
        None, f"cannot be read ({reason})", hint="Check the path and its permissions", path=path
    )


def bounded(path: str, data: bytes) -> bytes:
    if len(data) > MAX_FILE_BYTES:
        hint = f"Shorten it to {MAX_FILE_BYTES} bytes"
        raise SettingsError(None, "is too long", hint=hint, path=path)
    return data


def _read_regular(path: str, fd: int) -> bytes:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise SettingsError(None, "is not a regular file", hint="Put a text file in its place", path=path)
    with open(fd, "rb", closefd=False) as file:
        return bounded(path, file.read(MAX_FILE_BYTES + 1))
