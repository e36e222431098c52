"""Which files of a folder are kept: what .gitignore does not hide, within bounds. Reads no file's text."""

from __future__ import annotations

from ..model.failures import Refused
from ..workspace.ignore import Ignore
from ..workspace.paths import Workspace

MAX_FILE = 4 * 1024 * 1024
"""Bytes: a longer file is data, and a search of its words would drown the others."""

MAX_FILES = 5000
"""Of one call: some seconds of work. A larger project is added folder by folder."""


def found_files(workspace: Workspace, path: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The files to keep, and those that are left out with the reason; a file that is named is taken as it is."""
    try:
        place = workspace.resolve(path)
        ignore = Ignore(workspace, path)
        found: list[str] = []
        for folder, entries in workspace.walk(path):
            entries[:] = ignore.kept(folder, entries)
            found += [folder_path(folder.shown, entry.name) for entry in entries if entry.kind == "file"]
    except Refused as refused:
        if refused.reason != "kind":
            raise
        return [place.shown], []
    left = len(found) - MAX_FILES
    skipped = [(path, f"{left} more files: {MAX_FILES} are kept at once, add folders one by one")]
    return found[:MAX_FILES], skipped if left > 0 else []


def folder_path(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"
