"""`read_file`: a text file of the project, or some of its lines, with their numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..model.failures import Refused
from ..providers.base import ToolSpec
from ..workspace.text import NotText, TextFile, decoded, lines_of
from ..workspace.writing import current, digest
from .base import Hands, Kind, Need, Outcome, Ready, Wrong, number, text
from .editing import encoded_as

MAX_FILE_BYTES = 1024 * 1024
MAX_LINES = 2000
MAX_OUTPUT = 30 * 1024
"""A model that needs more asks for the lines that it needs."""

UNSAVED = "(This is the unsaved text of the user's editor; the file on disk differs.)"


class ReadFile:
    kind: Kind = "read"
    alone = False
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

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        path = hands.workspace.resolve(text(input, "path")).shown
        start = number(input, "start_line", 1)
        end = number(input, "end_line", start + MAX_LINES - 1)
        if end < start:
            raise Wrong("`end_line` must not be before `start_line`.")
        # The file is read when leave is given: by then it may be another one.
        return Ready(Need("read", path), partial(_read, path, start, min(end, start + MAX_LINES - 1), hands))


async def _read(path: str, start: int, end: int, hands: Hands) -> Outcome:
    unsaved = await hands.unsaved(path)
    # The file is opened in any case: what may not be opened is not shown from an editor either.
    data = await hands.block(current, hands.workspace, path, MAX_FILE_BYTES)
    if data is None and unsaved is None:
        raise Refused("not_found", f"There is no file {path}")
    return await hands.block(_outcome, path, data, unsaved, start, end)


def _outcome(path: str, data: bytes | None, unsaved: str | None, start: int, end: int) -> Outcome:
    file = TextFile("")
    try:
        file = decoded(data or b"")
    except NotText as error:
        if unsaved is None:
            raise Wrong(f"{path}: {error}") from error
    note = ""
    if unsaved is not None and (buffer := encoded_as(file, unsaved)) != data:
        if len(buffer) > MAX_FILE_BYTES:
            raise Wrong(
                f"{path} has {len(buffer)} bytes in the editor, more than the {MAX_FILE_BYTES} to read."
            )
        data, note = buffer, UNSAVED + "\n"
        plain = unsaved.replace("\r\n", "\n")
    else:
        plain = file.plain
    lines = [line.rstrip("\r\n") for line in lines_of(plain)]
    if start > max(1, len(lines)):
        raise Wrong(f"{path} has {len(lines)} lines.")
    return Outcome(
        note + _shown(lines, start, end), paths=(path,), seen={path: digest(data or b"")}, shown=True
    )


def _shown(lines: list[str], start: int, end: int) -> str:
    """The lines with their numbers, as many as fit, and a word on what is left out."""
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
