"""`edit_file`: replace a piece of text in a file."""

from __future__ import annotations

import re
from itertools import islice

from ...providers.base import ToolSpec
from ...workspace.lines import nearest_lines
from ...workspace.text import split_lines
from ..base import PlannedCall, ToolContext, ToolError, ToolInput, ToolKind
from .editing import (
    MAX_EXCERPT_LINES,
    MAX_FILE_BYTES,
    MAX_LINE_CHARACTERS,
    EditTarget,
    change_summary,
    encode_edit,
    find_target,
    numbered_excerpt,
    plan_edits,
)

MAX_LISTED_LINES = 10
"""Line numbers that a result names."""

MAX_OCCURRENCES = 100_000
"""Replacements in one call: more are a mistake, such as a single letter."""


class EditFile:
    kind: ToolKind = "edit"
    runs_alone = True
    spec = ToolSpec(
        "edit_file",
        "Replace text in a file that you have read. `old_string` must be in it exactly once, with its white space;"
        " give lines around it to make it unique.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the project."},
                "old_string": {"type": "string", "description": "The text to replace, without line numbers."},
                "new_string": {"type": "string", "description": "What comes in its place."},
                "replace_all": {"type": "boolean", "description": "Replace it everywhere."},
            },
            "required": ["path", "old_string", "new_string"],
        },
    )

    def title(self, input: ToolInput) -> str:
        return f"Edit {input.get('path', '')}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        old = input.text("old_string", empty=True)
        new = input.text("new_string", empty=True)
        everywhere = input.flag("replace_all")
        if old == new:
            raise ToolError("`old_string` and `new_string` are the same.")
        found = await find_target(input.text("path"), context)
        return await context.block(_plan_replacement, found, old, new, everywhere)


def _plan_replacement(found: EditTarget, old: str, new: str, everywhere: bool) -> PlannedCall:
    before = found.file.plain
    if not old:
        if before:
            raise ToolError(f"`old_string` may be empty only where the file is; {found.path} is not.")
        return _planned_edit(found, new, [0], new)
    if found.data is None:
        raise ToolError(f"There is no file {found.path}. Use write_file to make it.")
    spans, new = _occurrences(found, old, new)
    if not spans:
        raise ToolError(_not_found_message(found.path, before, old))
    if len(spans) > 1 and not everywhere:
        places = _line_numbers(before, [start for start, _ in spans])
        raise ToolError(
            f"`old_string` is in {found.path} {len(spans)} times, at lines {places}."
            " Give more of the text around it, or set replace_all."
        )
    if len(spans) > MAX_OCCURRENCES or len(spans) * len(new) > MAX_FILE_BYTES:
        raise ToolError(f"`old_string` is in {found.path} too often to replace it everywhere.")
    out: list[str] = []
    places_after: list[int] = []
    at = size = 0
    for start, end in spans:
        out += [before[at:start], new]
        size += start - at
        places_after.append(size)
        size += len(new)
        at = end
    return _planned_edit(found, "".join([*out, before[at:]]), places_after, new)


def _planned_edit(found: EditTarget, after: str, places: list[int], new: str) -> PlannedCall:
    edit = found.edit(encode_edit(found, found.file.with_ends(after)))
    words = change_summary(edit)
    if len(places) > 1:
        words += f", at {len(places)} places: lines {_line_numbers(after, places)}"
    first = after.count("\n", 0, places[0]) + 1
    shown = numbered_excerpt(after, first, new.count("\n") + 1)
    return plan_edits([edit], f"Edited {words}" + (f"\n{shown}" if shown else ""))


def _occurrences(found: EditTarget, old: str, new: str) -> tuple[list[tuple[int, int]], str]:
    """Where the old text is, and the new text with the line ends that belong there.

    A model does not see line ends. Where the file's are all alike, its text is compared without them; where they
    differ, `\\n` also stands for `\\r\\n` if it is not found as it is.
    """
    plain = found.file.plain
    if found.file.newline is not None:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    spans = _spans(re.escape(old), plain)
    if not spans and found.file.newline is None:
        pieces = [re.escape(piece) for piece in old.replace("\r\n", "\n").split("\n")]
        spans = _spans("\r?\n".join(pieces), plain)
        if any("\r\n" in plain[start:end] for start, end in spans):
            new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    return spans, new


def _spans(pattern: str, plain: str) -> list[tuple[int, int]]:
    return [found.span() for found in islice(re.finditer(pattern, plain), MAX_OCCURRENCES + 1)]


def _line_numbers(plain: str, places: list[int]) -> str:
    named = [str(plain.count("\n", 0, place) + 1) for place in places[:MAX_LISTED_LINES]]
    return ", ".join(named) + (
        f" and {len(places) - MAX_LISTED_LINES} more" if len(places) > MAX_LISTED_LINES else ""
    )


def _not_found_message(path: str, plain: str, old: str) -> str:
    lines = [line.rstrip("\r\n") for line in split_lines(plain)]
    wanted = old.replace("\r\n", "\n").strip("\n").split("\n")
    words = f"`old_string` is not in {path}."
    near = nearest_lines(lines, wanted)
    if near is None:
        return f"{words} Nothing there is like it; read the file again."
    there = lines[near : near + len(wanted)]
    same = [line.split() for line in there] == [line.split() for line in wanted]
    how = "Only white space differs" if same else "The nearest is"
    shown = [
        f"{near + at + 1}\t{line[:MAX_LINE_CHARACTERS]}" for at, line in enumerate(there[:MAX_EXCERPT_LINES])
    ]
    return f"{words} {how}, from line {near + 1}:\n" + "\n".join(shown)
