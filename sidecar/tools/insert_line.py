"""`insert_line`: new lines after a line of a file."""

from __future__ import annotations

from typing import Any

from ..providers.base import ToolSpec
from ..workspace.text import lines_of
from .base import Edit, Hands, Kind, Ready, Wrong, number, text
from .editing import Found, encode, excerpt, find_existing, planned


class InsertLine:
    kind: Kind = "edit"
    alone = True
    spec = ToolSpec(
        "insert_line",
        "Insert lines into a file that you have read.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the project."},
                "line": {"type": "integer", "minimum": 0, "description": "After this line; 0 is the top."},
                "text": {"type": "string", "description": "One or more whole lines."},
            },
            "required": ["path", "line", "text"],
        },
    )

    def title(self, input: dict[str, Any]) -> str:
        return f"Edit {input.get('path', '')}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        added = text(input, "text", empty=True)
        line = number(input, "line", -1, low=0)
        if line < 0:
            raise Wrong("`line` must be a whole number from 0.")
        found = await find_existing(text(input, "path"), hands)
        return await hands.block(_plan, found, line, added)


def _plan(found: Found, line: int, added: str) -> Ready:
    lines = lines_of(found.file.plain)
    if line > len(lines):
        raise Wrong(f"{found.path} has {len(lines)} lines.")
    end = _end_at(lines, line)
    if found.file.newline is None and "\r" not in added:
        added = added.replace("\n", end)
    if line and not lines[line - 1].endswith("\n"):
        # After a last line without an end, what comes last now has none either, unless it was given one.
        lines[line - 1] += end
    elif not added.endswith("\n"):
        added += end
    after = "".join([*lines[:line], added, *lines[line:]])
    edit = Edit(found.path, found.data, encode(found, found.file.with_ends(after)))
    count = len(lines_of(added))
    what = "1 line" if count == 1 else f"{count} lines"
    return planned([edit], f"Inserted {what} in {found.path}:\n{excerpt(after, line + 1, count)}")


def _end_at(lines: list[str], line: int) -> str:
    """The line end of the neighbour above, else below; it matters where a file's line ends differ."""
    for near in (*lines[max(0, line - 1) : line], *lines[line : line + 1]):
        if near.endswith("\n"):
            return "\r\n" if near.endswith("\r\n") else "\n"
    return "\n"
