"""`patch_file`: apply a unified diff to one or several files, all of it or nothing."""

from __future__ import annotations

from ...providers.base import ToolSpec
from ...workspace.patching import PatchedText, apply
from ...workspace.text import decode_text
from ...workspace.unidiff import FilePatch, PatchFailed, parse_patch
from ..base import Edit, PlannedCall, ToolContext, ToolError, ToolInput, ToolKind
from .editing import EditTarget, change_summary, encode_edit, find_target, numbered_excerpt, plan_edits

MAX_PATCH = 1024 * 1024
"""Characters of one diff: more than any model writes in one answer."""

MAX_EXCERPTS = 5
"""Hunks that a result shows; of the others it names the lines."""


class PatchFile:
    kind: ToolKind = "edit"
    runs_alone = True
    spec = ToolSpec(
        "patch_file",
        "Apply a unified diff to files that you have read: all of it or nothing. Line numbers may be off, context"
        " lines may not. /dev/null makes or deletes a file.",
        {
            "type": "object",
            "properties": {
                "patch": {"type": "string", "description": "The diff, with @@ lines."},
                "path": {"type": "string", "description": "The file, if the diff does not name it."},
            },
            "required": ["patch"],
        },
    )

    def title(self, input: ToolInput) -> str:
        return f"Patch {input.get('path') or _first_path(input.get('patch'))}".rstrip()

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        patch = input.text("patch")
        if len(patch) > MAX_PATCH:
            raise ToolError(f"`patch` must have {MAX_PATCH} characters at most.")
        path = input.optional_text("path")
        try:
            files = await context.block(parse_patch, patch)
        except PatchFailed as failed:
            raise ToolError(f"`patch` cannot be applied. {failed}") from failed
        if path is not None and len(files) > 1:
            raise ToolError(f"`patch` changes {len(files)} files: leave `path` out.")
        found = [await find_target(path or _patched_path(file), context) for file in files]
        names = [one.path for one in found]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ToolError(f"`patch` names {min(twice)} twice: put its hunks together.")
        return await context.block(_plan_patch, found, files)


def _first_path(patch: object) -> str:
    """Return the first file that a diff names, for a title."""
    lines = patch[:2000].splitlines() if isinstance(patch, str) else []
    names = [line[4:].split("\t")[0].strip() for line in lines if line.startswith(("+++ ", "--- "))]
    return next(
        (name.removeprefix("a/").removeprefix("b/") for name in reversed(names[:2]) if name != "/dev/null"),
        "",
    )


def _patched_path(file: FilePatch) -> str:
    """Return the file that the header of the diff names."""
    names = {name for name in (file.old_path, file.new_path) if name is not None}
    if names == {""} or not names:
        raise ToolError("`patch` does not name its file: give `path`.")
    if len(names) > 1:
        raise ToolError(
            f"`patch` names two files, {' and '.join(sorted(names))}: give `path`. Renames are not done."
        )
    return names.pop()


def _plan_patch(found: list[EditTarget], files: list[FilePatch]) -> PlannedCall:
    edits: list[Edit] = []
    words: list[str] = []
    for one, file in zip(found, files, strict=True):
        edit, patched = _apply_patch(one, file)
        edits.append(edit)
        words.append(f"Patched {change_summary(edit)}")
        words += _hunk_excerpts(edit, file, patched)
    return plan_edits(edits, "\n".join(words))


def _apply_patch(found: EditTarget, file: FilePatch) -> tuple[Edit, PatchedText]:
    if found.data is None and file.old_path is not None:
        raise ToolError(f"There is no file {found.path}. To make it, the diff must begin with --- /dev/null.")
    if found.data is not None and file.old_path is None:
        raise ToolError(f"{found.path} exists already, but the diff would make it.")
    try:
        patched = apply(found.file, tuple(file.hunks))
    except PatchFailed as failed:
        raise ToolError(f"{found.path}: {failed}\nNothing was changed.") from failed
    if file.new_path is None:
        if patched.text:
            raise ToolError(
                f"The diff deletes {found.path}, but does not remove all its lines. Nothing was changed."
            )
        if found.in_buffer:
            raise ToolError(f"{found.path} has unsaved changes in the user's editor. Nothing was changed.")
        return found.edit(None), patched
    return found.edit(encode_edit(found, patched.text)), patched


def _hunk_excerpts(edit: Edit, file: FilePatch, patched: PatchedText) -> list[str]:
    """Return where the hunks were applied in an existing file: the line numbers in a diff are often guesses."""
    if edit.before is None or edit.after is None:
        return []
    plain = decode_text(edit.after).plain
    words: list[str] = []
    for at, (hunk, place) in enumerate(zip(file.hunks, patched.places, strict=True)):
        off = (
            f", {abs(place.off)} lines {'below' if place.off > 0 else 'above'} its number"
            if place.off
            else ""
        )
        words.append(f"Hunk {hunk.number} at line {place.line}{off}")
        if at < MAX_EXCERPTS:
            lead, trail = hunk.context()
            core = hunk.lines[lead : len(hunk.lines) - trail]
            words.append(numbered_excerpt(plain, place.line, sum(sign != "-" for sign, _ in core)))
    return words
