"""`glob`: the files of the project whose path matches a pattern, the newest first. Opens none of them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ..model.failures import Refused
from ..providers.base import ToolSpec
from ..workspace.globs import BadPattern, Glob, alternatives, parsed
from ..workspace.ignore import Ignore
from ..workspace.paths import Entry, Place, Workspace
from .base import Hands, Kind, Need, Outcome, Ready, Wrong, text

MAX_RESULTS = 200
"""Paths of one answer; who gets more than these asks more narrowly."""

SECONDS = 10.0
"""For one walk: a cancelled one goes on in its thread until then."""

Chosen = Callable[[Sequence[str]], bool]
"""Tells by the names beneath the start whether a file is looked for."""


class GlobTool:
    kind: Kind = "search"
    alone = False
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

    def title(self, input: dict[str, Any]) -> str:
        return f"Find {input.get('pattern', '')}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        pattern = text(input, "pattern")
        start = hands.workspace.resolve(text(input, "path", "."))
        chosen = choice(pattern, start)
        run = partial(hands.block, _found, hands.workspace, start.shown, chosen, pattern)
        return Ready(Need("read", start.shown), run)


def choice(pattern: str, start: Place) -> Chosen:
    """What a model means by a pattern: relative to the start, also when it is spelled from `/` on."""
    folder = "/".join((start.root, *start.parts))
    text = re.sub("/+", "/", pattern).removeprefix("./")
    text = text.removeprefix(folder) if text.startswith(f"{folder}/") else text
    try:
        globs = [parsed(alternative) for alternative in alternatives(text)]
    except BadPattern as bad:
        raise Wrong(f"`{pattern[:100]}` is no pattern: {bad}.") from bad
    return partial(_matches_one, [glob for glob in globs if not glob.folders_only])


def walk(
    workspace: Workspace, start: str, chosen: Chosen, until: float
) -> Iterator[tuple[Place, list[Entry]]]:
    """The folders from `start` on, with the files and links in them that are looked for. TimeoutError after the
    moment `until`."""
    ignore = Ignore(workspace, start)
    depth = len(workspace.resolve(start).parts)
    for place, entries in workspace.walk(start):
        if time.monotonic() > until:
            raise TimeoutError
        entries[:] = ignore.kept(place, entries)
        above = place.parts[depth:]
        files = [
            entry for entry in entries if entry.kind in ("file", "link") and chosen((*above, entry.name))
        ]
        if files:
            yield place, files


def beneath(place: Place, path: str) -> str:
    """The path of what is in a folder, as the workspace shows it."""
    return path if place.shown == "." else f"{place.shown}/{path}"


def _found(workspace: Workspace, start: str, chosen: Chosen, pattern: str) -> Outcome:
    found: list[tuple[int, str]] = []
    note = ""
    try:
        for place, files in walk(workspace, start, chosen, time.monotonic() + SECONDS):
            found.extend(_dated(workspace, place, files))
    except TimeoutError:
        note = f"(stopped after {SECONDS:.0f} s: not all folders were looked at; name a narrower `path`)"
    found.sort(key=lambda each: (-each[0], each[1]))
    lines = [path for _, path in found[:MAX_RESULTS]]
    if len(found) > MAX_RESULTS:
        lines.append(f"… {len(found) - MAX_RESULTS} more")
    if not found:
        lines.append(f"No file matches {pattern}.")
    return Outcome("\n".join([*lines, note] if note else lines))


def _dated(workspace: Workspace, place: Place, files: list[Entry]) -> Iterator[tuple[int, str]]:
    """When each file was last changed, and its path. A link is dated itself, not what it leads to."""
    try:
        folder = workspace.open_dir(place.shown)
    except Refused:
        return
    try:
        for entry in files:
            try:
                changed = os.stat(entry.name, dir_fd=folder, follow_symlinks=False).st_mtime_ns
            except OSError:
                continue  # gone since the folder was read
            yield changed, beneath(place, entry.name)
    finally:
        os.close(folder)


def _matches_one(globs: list[Glob], names: Sequence[str]) -> bool:
    return any(glob.matches(names) for glob in globs)
