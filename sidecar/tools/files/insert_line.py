"""`insert_line`: insert lines after a line of a file."""

from __future__ import annotations

from ...providers.base import ToolSpec
from ...workspace.text import split_lines
from ..base import PlannedCall, ToolContext, ToolError, ToolInput, ToolKind
from .editing import EditTarget, encode_edit, find_existing_target, numbered_excerpt, plan_edits


class InsertLine:
    kind: ToolKind = "edit"
    runs_alone = True
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

    def title(self, input: ToolInput) -> str:
        return f"Edit {input.get('path', '')}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        added = input.text("text", empty=True)
        line = input.number("line", -1, low=0)
        if line < 0:
            raise ToolError("`line` must be a whole number from 0.")
        found = await find_existing_target(input.text("path"), context)
        return await context.block(_plan_insertion, found, line, added)


def _plan_insertion(found: EditTarget, line: int, added: str) -> PlannedCall:
    lines = split_lines(found.file.plain)
    if line > len(lines):
        raise ToolError(f"{found.path} has {len(lines)} lines.")
    end = _line_end_at(lines, line)
    if found.file.newline is None and "\r" not in added:
        added = added.replace("\n", end)
    if line and not lines[line - 1].endswith("\n"):
        # If the last line had no line end, the new last line has none either, unless the text brings one.
        lines[line - 1] += end
    elif not added.endswith("\n"):
        added += end
    after = "".join([*lines[:line], added, *lines[line:]])
    edit = found.edit(encode_edit(found, found.file.with_ends(after)))
    count = len(split_lines(added))
    what = "1 line" if count == 1 else f"{count} lines"
    return plan_edits([edit], f"Inserted {what} in {found.path}:\n{numbered_excerpt(after, line + 1, count)}")


def _line_end_at(lines: list[str], line: int) -> str:
    """Return the line end of the line above, else below; it matters in a file with mixed line ends."""
    for near in (*lines[max(0, line - 1) : line], *lines[line : line + 1]):
        if near.endswith("\n"):
            return "\r\n" if near.endswith("\r\n") else "\n"
    return "\n"
