"""What the edit tools share: the current bytes of the file, the rule that the model has seen them, and the plan.

Writes nothing: the toolbox writes the planned bytes, only over the bytes that the plan was made for.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...workspace.diff import summary
from ...workspace.text import NotText, TextFile, decode_text, split_lines
from ...workspace.writing import digest, read_current
from ..base import Edit, Intent, PlannedCall, ToolContext, ToolError, ToolOutcome

MAX_FILE_BYTES = 8 * 1024 * 1024
"""Bytes of a file before and after an edit. Text that people write is far smaller, and each version is stored."""

CONTEXT_LINES = 2
"""Lines that a result shows before and after a change."""

MAX_EXCERPT_LINES = 14
MAX_LINE_CHARACTERS = 200
"""Lines of an excerpt, and characters of one: the model wrote them itself and only checks their position."""


class EditTarget(msgspec.Struct, frozen=True):
    """The current state of a file; `data` is None when it does not exist, and `file` then accepts any text.
    `in_buffer`: the state is that of the user's editor, which has not saved it.
    """

    path: str
    data: bytes | None
    file: TextFile
    in_buffer: bool = False

    def edit(self, after: bytes | None) -> Edit:
        """Return the edit from this state to other bytes."""
        return Edit(self.path, self.data, after, in_buffer=self.in_buffer)


async def find_target(path: str, context: ToolContext) -> EditTarget:
    """Return the file that a call names, if the model has seen its current bytes. A new file needs no read before."""
    shown = context.workspace.resolve(path).shown
    data = await context.block(read_current, context.workspace, shown, MAX_FILE_BYTES)
    if data is None:
        return EditTarget(shown, None, TextFile(""))
    # The results of edit tools show lines of the file, so reading it must be permitted too.
    reason = await context.block(await context.read_filter(shown), shown)
    if reason:
        raise ToolError(f"{shown} may not be read: {reason}.")
    try:
        file = await context.block(decode_text, data)
    except NotText as error:
        raise ToolError(f"{shown}: {error}") from error
    unsaved_text = await context.unsaved_text(shown)
    in_buffer = False
    if unsaved_text is not None and (buffer := encode_like(file, unsaved_text)) != data:
        # Writing the file would lose what the user has typed, or the editor would overwrite the edit when it
        # saves.
        if not context.writes_buffers:
            raise ToolError(
                f"{shown} has unsaved changes in the user's editor. Ask the user to save it, then read it again."
            )
        data, file, in_buffer = buffer, decode_buffer(shown, buffer), True
    seen = context.seen(shown)
    if seen is None:
        raise ToolError(f"You have not read {shown} yet; read it first.")
    # By content, not by time: a tool that rewrote the same bytes has changed nothing.
    if seen != digest(data):
        where = "in the user's editor" if in_buffer else "on disk"
        raise ToolError(f"{shown} changed {where} since you read it; read it again.")
    return EditTarget(shown, data, file, in_buffer)


def decode_buffer(path: str, buffer: bytes) -> TextFile:
    """Return the text of an editor's buffer, as it would be saved."""
    if len(buffer) > MAX_FILE_BYTES:
        raise ToolError(
            f"{path} has {len(buffer)} bytes in the user's editor, more than the {MAX_FILE_BYTES}."
        )
    try:
        return decode_text(buffer)
    except NotText as error:
        raise ToolError(f"{path}: {error}") from error


async def find_existing_target(path: str, context: ToolContext) -> EditTarget:
    found = await find_target(path, context)
    if found.data is None:
        raise ToolError(f"There is no file {found.path}. Use write_file to make it.")
    return found


def encode_like(file: TextFile, text: str) -> bytes:
    """Return the bytes that an editor would save for its text; UTF-8 when the encoding of the file cannot represent
    it.
    """
    try:
        return file.encoded(file.with_ends(text) if "\r" not in text else text)
    except NotText:
        return text.encode(errors="replace")


def encode_edit(found: EditTarget, text: str) -> bytes:
    """Return the bytes of the new text, in the encoding of the file."""
    try:
        data = found.file.encoded(text)
    except NotText as error:
        raise ToolError(f"{found.path}: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(
            f"{found.path} would have {len(data)} bytes, more than the {MAX_FILE_BYTES} that are taken."
        )
    if data == found.data:
        raise ToolError(f"{found.path} would not change.")
    return data


def plan_edits(edits: Sequence[Edit], words: str) -> PlannedCall:
    """Return the planned call: the edits that need permission, and the result for the model after they are written."""
    seen = {edit.path: digest(edit.after) for edit in edits if edit.after is not None}
    paths = tuple(edit.path for edit in edits)

    async def run() -> ToolOutcome:
        return ToolOutcome(words, paths=paths, seen=seen)

    return PlannedCall(Intent("edit", paths[0], tuple(edits)), run)


def change_summary(edit: Edit) -> str:
    """Return one line: the file, and how many lines changed."""
    return f"{edit.path}: {summary(edit.before, edit.after)}"


def numbered_excerpt(text: str, first: int, count: int) -> str:
    """Return numbered lines of the new text: `count` from `first` on (counted from 1), and some context."""
    lines = split_lines(text)
    start = max(0, first - 1 - CONTEXT_LINES)
    end = min(len(lines), first - 1 + count + CONTEXT_LINES, start + MAX_EXCERPT_LINES)
    shown = [f"{at + 1}\t{_shorten(lines[at])}" for at in range(start, end)]
    return "\n".join(shown)


def _shorten(line: str) -> str:
    bare = line.rstrip("\r\n")
    return bare if len(bare) <= MAX_LINE_CHARACTERS else bare[:MAX_LINE_CHARACTERS] + "…"
