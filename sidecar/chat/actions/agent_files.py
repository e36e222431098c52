"""The files that hooks of coding agents and the MCP server keep beside the database: events that wait to be stored,
the texts with which a session starts or goes on, and marks of what was done. Those with texts hold what was said, so a
purge removes them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection
from contextlib import suppress

EVENTS, CONTEXT, SESSIONS, MARKS = "events", "context", "sessions", "marks"

STALE_S = 30 * 24 * 3600.0
"""Sessions do not go on for so long; what is kept of them is only in the way."""


def agents_folder(data_dir: str) -> str:
    return os.path.join(data_dir, "agents")


def remove_texts(data_dir: str, projects: Collection[str] | None, *, events: bool) -> None:
    """Remove the texts for sessions, which are written again from what is left; with `events` also the waiting events
    of these projects, or all.
    """
    folder = agents_folder(data_dir)
    for name in (CONTEXT, SESSIONS):
        for path in _files(os.path.join(folder, name)):
            _remove(path)
    for path in _files(os.path.join(folder, EVENTS)) if events else ():
        if projects is None or _project_of(path) in projects:
            _remove(path)


def remove_stale(data_dir: str) -> None:
    """Remove what is kept of sessions that ended long ago."""
    oldest = time.time() - STALE_S
    for name in (SESSIONS, MARKS):
        for path in _files(os.path.join(agents_folder(data_dir), name)):
            with suppress(OSError):
                if os.stat(path).st_mtime < oldest:
                    os.unlink(path)


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
