"""Selects the files of a folder to index: those that .gitignore does not exclude, within bounds. Reads no
file's text."""

from __future__ import annotations

from ..model.failures import Refused
from ..workspace.ignore import Ignore
from ..workspace.paths import ReadFilter, Workspace

MAX_FILE = 4 * 1024 * 1024
"""Bytes: a longer file is data, and its words would dominate searches."""

MAX_FILES = 5000
"""Per call: some seconds of work. A larger project is added folder by folder."""


def find_files(
    workspace: Workspace, path: str, left_out: ReadFilter | None = None
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the files to index, and the excluded ones with the reason; .gitignore does not apply to a file
    named by the caller."""
    try:
        place = workspace.resolve(path)
        ignore = Ignore(workspace, path)
        found: list[str] = []
        for folder, entries in workspace.walk(path):
            entries[:] = ignore.without_ignored(folder, entries)
            found += [folder_path(folder.shown, entry.name) for entry in entries if entry.kind == "file"]
    except Refused as refused:
        if refused.reason != "kind":
            raise
        found = [place.shown]
    reasons = {name: left_out(name) for name in found} if left_out else {}
    skipped = [(name, reason) for name, reason in reasons.items() if reason]
    found = [name for name in found if not reasons.get(name)]
    left = len(found) - MAX_FILES
    if left > 0:
        skipped.append((path, f"{left} more files: {MAX_FILES} are indexed per call, add folders one by one"))
    return found[:MAX_FILES], skipped


def folder_path(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"
