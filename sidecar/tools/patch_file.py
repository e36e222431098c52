"""`patch_file`: a unified diff, applied to one file or to several, all of it or nothing."""

from __future__ import annotations

from typing import Any

from ..providers.base import ToolSpec
from ..workspace.patching import Patched, apply
from ..workspace.text import decoded
from ..workspace.unidiff import FilePatch, PatchFailed, parse
from .base import Edit, Hands, Kind, Ready, Wrong, text
from .editing import Found, change_in_words, encode, excerpt, find, planned

MAX_PATCH = 1024 * 1024
"""Letters of one diff: more than any model writes in one answer."""

MAX_EXCERPTS = 5
"""Hunks that an answer shows; of the others it names the lines."""


class PatchFile:
    kind: Kind = "edit"
    alone = True
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

    def title(self, input: dict[str, Any]) -> str:
        return f"Patch {input.get('path') or _named(input.get('patch'))}".rstrip()

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        patch = text(input, "patch")
        if len(patch) > MAX_PATCH:
            raise Wrong(f"`patch` must have {MAX_PATCH} characters at most.")
        path = text(input, "path") if input.get("path") is not None else None
        try:
            files = await hands.block(parse, patch)
        except PatchFailed as failed:
            raise Wrong(f"`patch` cannot be applied. {failed}") from failed
        if path is not None and len(files) > 1:
            raise Wrong(f"`patch` changes {len(files)} files: leave `path` out.")
        found = [await find(path or _path(file), hands) for file in files]
        names = [one.path for one in found]
        if twice := {name for name in names if names.count(name) > 1}:
            raise Wrong(f"`patch` names {min(twice)} twice: put its hunks together.")
        return await hands.block(_plan, found, files)


def _named(patch: object) -> str:
    """The first file that a diff names, for a title."""
    lines = patch[:2000].splitlines() if isinstance(patch, str) else []
    names = [line[4:].split("\t")[0].strip() for line in lines if line.startswith(("+++ ", "--- "))]
    return next(
        (name.removeprefix("a/").removeprefix("b/") for name in reversed(names[:2]) if name != "/dev/null"),
        "",
    )


def _path(file: FilePatch) -> str:
    """The file that the diff's header names."""
    names = {name for name in (file.old_path, file.new_path) if name is not None}
    if names == {""} or not names:
        raise Wrong("`patch` does not name its file: give `path`.")
    if len(names) > 1:
        raise Wrong(
            f"`patch` names two files, {' and '.join(sorted(names))}: give `path`. Renames are not done."
        )
    return names.pop()


def _plan(found: list[Found], files: list[FilePatch]) -> Ready:
    edits: list[Edit] = []
    words: list[str] = []
    for one, file in zip(found, files, strict=True):
        edit, patched = _edited(one, file)
        edits.append(edit)
        words.append(f"Patched {change_in_words(edit)}")
        words += _where(edit, file, patched)
    return planned(edits, "\n".join(words))


def _edited(found: Found, file: FilePatch) -> tuple[Edit, Patched]:
    if found.data is None and file.old_path is not None:
        raise Wrong(f"There is no file {found.path}. To make it, the diff must begin with --- /dev/null.")
    if found.data is not None and file.old_path is None:
        raise Wrong(f"{found.path} exists already, but the diff would make it.")
    try:
        patched = apply(found.file, tuple(file.hunks))
    except PatchFailed as failed:
        raise Wrong(f"{found.path}: {failed}\nNothing was changed.") from failed
    if file.new_path is None:
        if patched.text:
            raise Wrong(
                f"The diff deletes {found.path}, but does not remove all its lines. Nothing was changed."
            )
        return Edit(found.path, found.data, None), patched
    return Edit(found.path, found.data, encode(found, patched.text)), patched


def _where(edit: Edit, file: FilePatch, patched: Patched) -> list[str]:
    """Where the hunks went, when the file was there before: the numbers in a diff are often guesses."""
    if edit.before is None or edit.after is None:
        return []
    plain = decoded(edit.after).plain
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
            words.append(excerpt(plain, place.line, sum(sign != "-" for sign, _ in core)))
    return words
