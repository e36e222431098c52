"""A private folder for the files of one call: in the system's place for such, gone when the call is.

Whoever runs the call deletes it, its keeper when we are no more (`keeper`), and who closes the call after a crash when
neither could: the call's key leads to it. What is put there is not known here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from .keeper import remove

PREFIX = "sidecar-"


def make(key: str) -> str:
    """A new folder for the call, which only our user can look into; its real path. Blocking."""
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
    import tempfile

    name = hashlib.sha256(key.encode()).hexdigest()[:20]
    return os.path.join(os.path.realpath(tempfile.gettempdir()), PREFIX + name)


__all__ = ["PREFIX", "make", "remove", "remove_all"]
