"""`read_file`: a text file of the project, or some of its lines, with their numbers."""

from __future__ import annotations

from typing import Any

from ..providers.base import ToolSpec
from ..workspace.paths import Workspace
from .base import Kind, Outcome, Wrong, number, text

MAX_FILE_BYTES = 1024 * 1024
MAX_LINES = 2000
MAX_OUTPUT = 64 * 1024
"""A model that needs more asks for the lines that it needs."""


class ReadFile:
    kind: Kind = "read"
    spec = ToolSpec(
        "read_file",
        "Read a text file of the project. Lines come with their numbers. Long files come in part: ask for a range.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the project."},
                "start_line": {"type": "integer", "minimum": 1, "description": "The first line, from 1."},
                "end_line": {"type": "integer", "minimum": 1, "description": "The last line, included."},
            },
            "required": ["path"],
        },
    )

    def title(self, input: dict[str, Any]) -> str:
        return f"Read {input.get('path', '')}"

    def run(self, input: dict[str, Any], workspace: Workspace) -> Outcome:
        path = text(input, "path")
        start = number(input, "start_line", 1)
        end = number(input, "end_line", start + MAX_LINES - 1)
        if end < start:
            raise Wrong("`end_line` must not be before `start_line`.")
        lines = _decoded(workspace.read_bytes(path, MAX_FILE_BYTES), path).splitlines()
        if start > max(1, len(lines)):
            raise Wrong(f"{path} has {len(lines)} lines.")
        return Outcome(_shown(lines, start, min(end, start + MAX_LINES - 1)), paths=(path,))


def _decoded(data: bytes, path: str) -> str:
    if b"\0" in data:
        raise Wrong(f"{path} is not a text file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _shown(lines: list[str], start: int, end: int) -> str:
    """The lines with their numbers, as many as fit, and a word on what is left out."""
    shown: list[str] = []
    size = 0
    for count, line in enumerate(lines[start - 1 : end], start):
        numbered = f"{count}\t{line}"
        size += len(numbered) + 1
        if shown and size > MAX_OUTPUT:
            break
        shown.append(numbered[:MAX_OUTPUT])
    last = start + len(shown) - 1
    if last < len(lines):
        shown.append(f"… {len(lines) - last} more lines; ask for them by start_line and end_line")
    return "\n".join(shown) or "(the file is empty)"
