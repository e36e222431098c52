"""The files that hooks of coding agents and the MCP server keep beside the database: events that wait to be stored, and
the text with which a new session starts. Both hold what was said, so a purge removes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress

EVENTS, CONTEXT = "events", "context"


def agents_folder(data_dir: str) -> str:
    return os.path.join(data_dir, "agents")


def remove_texts(data_dir: str, projects: Collection[str] | None, *, events: bool) -> None:
    """Remove the texts for new sessions, which are written again from what is left; with `events` also the waiting
    events of these projects, or all.
    """
    folder = agents_folder(data_dir)
    for path in _files(os.path.join(folder, CONTEXT)):
        _remove(path)
    for path in _files(os.path.join(folder, EVENTS)) if events else ():
        if projects is None or _project_of(path) in projects:
            _remove(path)


def _project_of(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return found.get("project") if isinstance(found, dict) else None


def _files(folder: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
