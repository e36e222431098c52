"""Where the settings files are, and their bytes. `parsing` reads their content, `layers` decides which one wins."""

from __future__ import annotations

import os
import sys

from ..system.lazy import lazy_module
from ..system.safe_open import FileRefused, open_regular
from . import known
from .errors import SettingsError
from .parsing import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    from typing import Any, Literal

    import platformdirs

    FileScope = Literal["user", "project"]
else:
    hashlib = lazy_module("hashlib")
    platformdirs = lazy_module("platformdirs")

MAX_FILE_BYTES = 256 * 1024
"""A hundred times the longest file that a person would write; the file of a project may come from anybody."""

ABSENT = "absent"
"""The version of a file that does not exist."""


class SettingsFile:
    """The values of a file by dotted key, as they are written there; `version` is the hash of its bytes."""

    __slots__ = ("path", "values", "version")

    def __init__(self, path: str, values: dict[str, Any], version: str) -> None:
        self.path = path
        self.values = values
        self.version = version

    def masked_values(self) -> dict[str, Any]:
        """Return the values with every secret masked."""
        return {name: known.masked_value(name, value) for name, value in self.values.items()}


def user_file() -> str:
    folder = _xdg("XDG_CONFIG_HOME", ".config")
    if folder is None:
        folder = platformdirs.user_config_dir("sidecar", appauthor=False)
    return os.path.join(folder, "config.toml")


def project_file(project: str) -> str:
    return os.path.join(os.path.abspath(project), ".sidecar", "config.toml")


def default_data_dir() -> str:
    folder = _xdg("XDG_DATA_HOME", ".local/share")
    if folder is None:
        folder = platformdirs.user_data_dir("sidecar", appauthor=False)
    return folder


def _xdg(variable: str, fallback: str) -> str | None:
    """Return our folder by the XDG rule, which is short; platformdirs takes 5 ms to import for it."""
    if sys.platform != "linux":
        return None
    home = os.environ.get(variable, "").strip() or os.path.join(os.path.expanduser("~"), fallback)
    return os.path.join(home, "sidecar")


def scope_file(scope: FileScope, project: str | None) -> str:
    """Return the file of a scope; that of a project needs the project."""
    if scope == "user":
        return user_file()
    if project is None:
        raise SettingsError(None, "the project's settings need the project's path", hint="Give `projectPath`")
    return project_file(project)


def read(path: str, *, project: bool = False) -> SettingsFile:
    """Return the validated values of the file; none when it is absent. `project` refuses what no project may set."""
    data = read_bytes(path)
    values = {} if data is None else parse(path, decode(path, data), project=project)
    return SettingsFile(path, values, version_of(data))


def read_bytes(path: str) -> bytes | None:
    """Return the bytes of the file, or None when it is absent. Never blocks: a FIFO is refused."""
    try:
        with open(open_regular(path), "rb") as file:
            return check_size(path, file.read(MAX_FILE_BYTES + 1))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except FileRefused as refusal:
        hint = "Put a text file in its place"
        raise SettingsError(None, str(refusal).removeprefix("it "), hint=hint, path=path) from refusal
    except (OSError, ValueError) as error:
        raise unreadable_error(path, error) from error


def decode(path: str, data: bytes) -> str:
    """Return the text without its byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(None, "is not UTF-8", hint="Save it as UTF-8", path=path, line=line) from error


def version_of(data: bytes | None) -> str:
    if data is None:
        return ABSENT
    return hashlib.sha256(data).hexdigest()[:16]


def unreadable_error(path: str, error: Exception) -> SettingsError:
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    return SettingsError(
        None, f"cannot be read ({reason})", hint="Check the path and its permissions", path=path
    )


def check_size(path: str, data: bytes) -> bytes:
    if len(data) > MAX_FILE_BYTES:
        hint = f"Shorten it to {MAX_FILE_BYTES} bytes"
        raise SettingsError(None, "is too long", hint=hint, path=path)
    return data
