"""What the edit tools share: the file as it is now, the rule that the model has seen it, and the plan as an answer.

Nothing is written here or by the tools: the toolbox writes the planned bytes, over exactly the bytes that the plan
was made for.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..workspace.diff import summary
from ..workspace.text import NotText, TextFile, decoded, lines_of
from ..workspace.writing import current, digest
from .base import Edit, Hands, Need, Outcome, Ready, Wrong

MAX_FILE_BYTES = 8 * 1024 * 1024
"""Of a file before and after an edit. Text that people write is far smaller, and each version is kept."""

AROUND = 2
"""Lines that an answer shows before and after a change."""

MAX_SHOWN = 14
MAX_LETTERS = 200
"""Lines of an excerpt, and letters of one: the model wrote them itself and only checks where they went."""


class Found(msgspec.Struct, frozen=True):
    """A file as it is now; `data` is None when there is none, and `file` then takes any text."""

    path: str
    data: bytes | None
    file: TextFile


async def find(path: str, hands: Hands) -> Found:
    """The file that a call names, if the model has seen it as it is now. One that does not exist needs no look."""
    shown = hands.workspace.resolve(path).shown
    data = await hands.block(current, hands.workspace, shown, MAX_FILE_BYTES)
    if data is None:
        return Found(shown, None, TextFile(""))
    try:
        file = await hands.block(decoded, data)
    except NotText as error:
        raise Wrong(f"{shown}: {error}") from error
    unsaved = await hands.unsaved(shown)
    if unsaved is not None and encoded_as(file, unsaved) != data:
        raise Wrong(
            f"{shown} has unsaved changes in the user's editor. Ask the user to save it, then read it again."
        )
    seen = hands.seen(shown)
    if seen is None:
        raise Wrong(f"You have not read {shown} yet; read it first.")
    if seen != digest(data):
        raise Wrong(f"{shown} changed on disk since you read it; read it again.")
    return Found(shown, data, file)


async def find_existing(path: str, hands: Hands) -> Found:
    found = await find(path, hands)
    if found.data is None:
        raise Wrong(f"There is no file {found.path}. Use write_file to make it.")
    return found


def encoded_as(file: TextFile, text: str) -> bytes:
    """The bytes that an editor would save for its text; UTF-8 when the file's encoding cannot hold it."""
    try:
        return file.encoded(file.with_ends(text) if "\r" not in text else text)
    except NotText:
        return text.encode(errors="replace")


def encode(found: Found, text: str) -> bytes:
    """The bytes of the new text, in the file's own encoding."""
    try:
        data = found.file.encoded(text)
    except NotText as error:
        raise Wrong(f"{found.path}: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise Wrong(
            f"{found.path} would have {len(data)} bytes, more than the {MAX_FILE_BYTES} that are taken."
        )
    if data == found.data:
        raise Wrong(f"{found.path} would not change.")
    return data


def planned(edits: Sequence[Edit], words: str) -> Ready:
    """The answer to a plan: the edits to ask leave for, and what the model is told once they are written."""
    seen = {edit.path: digest(edit.after) for edit in edits if edit.after is not None}
    paths = tuple(edit.path for edit in edits)

    async def run() -> Outcome:
        return Outcome(words, paths=paths, seen=seen)

    return Ready(Need("edit", paths[0], tuple(edits)), run)


def change_in_words(edit: Edit) -> str:
    """One line: which file, and by how many lines."""
    return f"{edit.path}: {summary(edit.before, edit.after)}"


def excerpt(text: str, first: int, count: int) -> str:
    """Lines of the new text with their numbers: `count` from `first` on (from 1), and some around."""
    lines = lines_of(text)
    start = max(0, first - 1 - AROUND)
    end = min(len(lines), first - 1 + count + AROUND, start + MAX_SHOWN)
    shown = [f"{at + 1}\t{_short(lines[at])}" for at in range(start, end)]
    return "\n".join(shown)


def _short(line: str) -> str:
    bare = line.rstrip("\r\n")
    return bare if len(bare) <= MAX_LETTERS else bare[:MAX_LETTERS] + "…"
