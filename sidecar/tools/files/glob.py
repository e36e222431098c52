"""`glob`: list the files of the project whose path matches a pattern, the newest first. Opens none of them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ...model.failures import Refused
from ...providers.base import ToolSpec
from ...workspace.globs import BadPattern, Glob, expand_braces, parse_glob
from ...workspace.ignore import Ignore
from ...workspace.paths import ConfinedPath, FolderEntry, Workspace
from ..base import Intent, PlannedCall, ToolContext, ToolError, ToolInput, ToolKind, ToolOutcome

MAX_RESULTS = 200
"""Paths in one result; a narrower pattern finds the others."""

SECONDS = 10.0
"""Seconds for one walk: a cancelled walk continues in its thread until then."""

PathFilter = Callable[[Sequence[str]], bool]
"""Decides by the names relative to the start whether a file matches."""


class GlobTool:
    kind: ToolKind = "search"
    runs_alone = False
    spec = ToolSpec(
        "glob",
        "Find files by their path, the newest first. `*.py` matches in every folder, `src/**/*.{ts,tsx}` beneath"
        " src. Files that .gitignore names are left out.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "As in .gitignore, and {a,b} for either."},
                "path": {"type": "string", "description": "The folder to look in; the project by default."},
            },
            "required": ["pattern"],
        },
    )

    def title(self, input: ToolInput) -> str:
        return f"Find {input.get('pattern', '')}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        pattern = input.text("pattern")
        start = context.workspace.resolve(input.text("path", "."))
        chosen = path_filter(pattern, start)
        run = partial(context.block, _find_files, context.workspace, start.shown, chosen, pattern)
        return PlannedCall(Intent("read", start.shown), run)


def path_filter(pattern: str, start: ConfinedPath) -> PathFilter:
    """Return the filter for a pattern: relative to the start, also when it begins with `/`."""
    folder = "/".join((start.root, *start.parts))
    text = re.sub("/+", "/", pattern).removeprefix("./")
    text = text.removeprefix(folder) if text.startswith(f"{folder}/") else text
    try:
        globs = [parse_glob(alternative) for alternative in expand_braces(text)]
    except BadPattern as bad:
        raise ToolError(f"`{pattern[:100]}` is no pattern: {bad}.") from bad
    return partial(_matches_any, [glob for glob in globs if not glob.folders_only])


def walk(
    workspace: Workspace, start: str, chosen: PathFilter, until: float
) -> Iterator[tuple[ConfinedPath, list[FolderEntry]]]:
    """Yield the folders from `start` on, with the matching files and links in them. Raises TimeoutError after
    `until`.
    """
    ignore = Ignore(workspace, start)
    depth = len(workspace.resolve(start).parts)
    for place, entries in workspace.walk(start):
        if time.monotonic() > until:
            raise TimeoutError
        entries[:] = ignore.without_ignored(place, entries)
        above = place.parts[depth:]
        files = [
            entry for entry in entries if entry.kind in ("file", "link") and chosen((*above, entry.name))
        ]
        if files:
            yield place, files


def child_path(place: ConfinedPath, path: str) -> str:
    """Return the path of an entry of a folder, as the workspace shows it."""
    return path if place.shown == "." else f"{place.shown}/{path}"


def _find_files(workspace: Workspace, start: str, chosen: PathFilter, pattern: str) -> ToolOutcome:
    found: list[tuple[int, str]] = []
    note = ""
    try:
        for place, files in walk(workspace, start, chosen, time.monotonic() + SECONDS):
            found.extend(_with_times(workspace, place, files))
    except TimeoutError:
        note = f"(stopped after {SECONDS:.0f} s: not all folders were looked at; name a narrower `path`)"
    found.sort(key=lambda each: (-each[0], each[1]))
    lines = [path for _, path in found[:MAX_RESULTS]]
    if len(found) > MAX_RESULTS:
        lines.append(f"… {len(found) - MAX_RESULTS} more")
    if not found:
        lines.append(f"No file matches {pattern}.")
    return ToolOutcome("\n".join([*lines, note] if note else lines))


def _with_times(
    workspace: Workspace, place: ConfinedPath, files: list[FolderEntry]
) -> Iterator[tuple[int, str]]:
    """Return the modification time and path of each file. For a link, the time is that of the link itself."""
    try:
        folder = workspace.open_dir(place.shown)
    except Refused:
        return
    try:
        for entry in files:
            try:
                changed = os.stat(entry.name, dir_fd=folder, follow_symlinks=False).st_mtime_ns
            except OSError:
                continue  # deleted since the folder was read
            yield changed, child_path(place, entry.name)
    finally:
        os.close(folder)


def _matches_any(globs: list[Glob], names: Sequence[str]) -> bool:
    return any(glob.matches(names) for glob in globs)
