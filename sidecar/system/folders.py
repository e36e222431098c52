"""Whether a path lies in a folder, by its text."""

from __future__ import annotations


def holds(folder: str, path: str) -> bool:
    """Return whether `path` is `folder` or beneath it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
