"""`read_file`: return a text file of the project, or some of its lines, with line numbers."""

from __future__ import annotations

from functools import partial

from ...model.failures import Refused
from ...providers.base import ToolSpec
from ...workspace.names import RealNames
from ...workspace.text import NotText, TextFile, decode_text, split_lines
from ...workspace.writing import digest, read_current
from ..base import Intent, PlannedCall, ToolContext, ToolError, ToolInput, ToolKind, ToolOutcome
from .editing import encode_like

MAX_FILE_BYTES = 1024 * 1024
MAX_LINES = 2000
MAX_OUTPUT = 30 * 1024
"""A model that needs more requests the lines that it needs."""

UNSAVED = "(This is the unsaved text of the user's editor; the file on disk differs.)"


class ReadFile:
    kind: ToolKind = "read"
    runs_alone = False
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

    def title(self, input: ToolInput) -> str:
        return f"Read {input.get('path', '')}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        path = context.workspace.resolve(input.text("path")).shown
        start = input.number("start_line", 1)
        end = input.number("end_line", start + MAX_LINES - 1)
        if end < start:
            raise ToolError("`end_line` must not be before `start_line`.")
        # The file is read after permission is given: its bytes may have changed by then, but not its path.
        real = await context.block(RealNames(context.workspace).absolute, path)
        last = min(end, start + MAX_LINES - 1)
        return PlannedCall(Intent("read", path), partial(_read, path, real, start, last, context))


async def _read(path: str, real: str | None, start: int, end: int, context: ToolContext) -> ToolOutcome:
    unsaved_text = await context.unsaved_text(path)
    # The file is opened in any case: the editor's text of a file that must not be opened is not shown either.
    data = await context.block(read_current, context.workspace, path, MAX_FILE_BYTES)
    if await context.block(RealNames(context.workspace).absolute, path) != real:
        raise ToolError(
            f"{path} leads to another file than when the permission was requested; read it again."
        )
    if data is None and unsaved_text is None:
        raise Refused("not_found", f"There is no file {path}")
    return await context.block(_outcome, path, data, unsaved_text, start, end)


def _outcome(path: str, data: bytes | None, unsaved_text: str | None, start: int, end: int) -> ToolOutcome:
    file = TextFile("")
    try:
        file = decode_text(data or b"")
    except NotText as error:
        if unsaved_text is None:
            raise ToolError(f"{path}: {error}") from error
    note = ""
    if unsaved_text is not None and (buffer := encode_like(file, unsaved_text)) != data:
        if len(buffer) > MAX_FILE_BYTES:
            raise ToolError(
                f"{path} has {len(buffer)} bytes in the editor, more than the {MAX_FILE_BYTES} to read."
            )
        data, note = buffer, UNSAVED + "\n"
        plain = unsaved_text.replace("\r\n", "\n")
    else:
        plain = file.plain
    lines = [line.rstrip("\r\n") for line in split_lines(plain)]
    if start > max(1, len(lines)):
        raise ToolError(f"{path} has {len(lines)} lines.")
    return ToolOutcome(
        note + _numbered_lines(lines, start, end), paths=(path,), seen={path: digest(data or b"")}, shown=True
    )


def _numbered_lines(lines: list[str], start: int, end: int) -> str:
    """Return the numbered lines that fit, and a note on what is omitted."""
    shown: list[str] = []
    size = 0
    for count, line in enumerate(lines[start - 1 : end], start):
        numbered = f"{count}\t{line}"
        size += len(numbered) + 1
        if shown and size > MAX_OUTPUT:
            break
        shown.append(
            numbered if len(numbered) <= MAX_OUTPUT else f"{numbered[:MAX_OUTPUT]}… (the line goes on)"
        )
    last = start + len(shown) - 1
    if last < len(lines):
        shown.append(f"… {len(lines) - last} more lines; ask for them by start_line and end_line")
    return "\n".join(shown) or "(the file is empty)"
