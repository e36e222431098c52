"""A private folder for the files of one call: in the system's temporary folder, deleted after the call.

Deleted by the caller, by its supervisor when we have died (`supervisor`), and by crash recovery when neither could:
its path is derived from the key of the call. Does not know what is stored there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .lazy import lazy_module
from .supervisor import remove

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = lazy_module("tempfile")

PREFIX = "sidecar-"


def make(key: str) -> str:
    """Create a folder for the call, which only our user can read; return its real path. Blocking."""
    path = _path(key)
    os.mkdir(path, 0o700)
    return path


def remove_all(keys: Iterable[str]) -> None:
    """Delete what these calls may have left. Blocking."""
    for key in keys:
        path = _path(key)
        if os.path.isdir(path) and not os.path.islink(path):
            remove(path)


def _path(key: str) -> str:
    name = hashlib.sha256(key.encode()).hexdigest()[:20]
    return os.path.join(os.path.realpath(tempfile.gettempdir()), PREFIX + name)


__all__ = ["PREFIX", "make", "remove", "remove_all"]
