"""Changes of files as other programs record them: with the bytes before and after where they are known, otherwise as a
diff for reading, which can never be reverted.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable

import msgspec

from ..model import JsonObject
from ..model.files import Change, ChangeKind
from ..workspace import ledger
from ..workspace.diff import clip_diff
from .records import dict_of, text_of

MAX_FILE_CHARACTERS = 2 * 1024 * 1024
"""Of a file whose bytes are kept; of a larger one only the diff is."""


class FileEdit(msgspec.Struct, frozen=True):
    """One changed file. `before` and `after` count only when `known`; None means that there was no file."""

    path: str
    kind: ChangeKind = "modify"
    before: str | None = None
    after: str | None = None
    known: bool = False
    diff: str | None = None


def change_of(edit: FileEdit, project: str | None, keep: Callable[[bytes], str]) -> Change | None:
    """The change, with a path in the project where it is in it; None for a path that cannot be one."""
    path = project_path(edit.path, project)
    if path is None:
        return None
    if edit.known and max(len(edit.before or ""), len(edit.after or "")) <= MAX_FILE_CHARACTERS:
        before, after = _bytes(edit.before), _bytes(edit.after)
        old, new = (keep(data) if data is not None else None for data in (before, after))
        return ledger.make_change(path, before, after, old, new)
    diff, truncated = clip_diff(_body(edit.diff or ""), ledger.MAX_DIFF_BYTES)
    lines = diff.splitlines()
    return Change(
        path=path,
        kind=edit.kind,
        unified_diff=diff,
        added=sum(line.startswith("+") and not line.startswith("+++") for line in lines),
        removed=sum(line.startswith("-") and not line.startswith("---") for line in lines),
        truncated=truncated,
    )


def project_path(path: str, project: str | None) -> str | None:
    """The path relative to the project if it is in it, else absolute; None for one that leads elsewhere."""
    if not path or "\0" in path or len(path) > 4096 or ".." in path.replace("\\", "/").split("/"):
        return None
    whole = posixpath.normpath(os.path.join(project or "/", path))
    root = (project or "").rstrip("/") + "/"
    return whole[len(root) :] if project and whole.startswith(root) else whole


def created(path: str, content: str) -> FileEdit:
    return FileEdit(path, "create", None, content, known=True)


def replaced(path: str, before: str, after: str) -> FileEdit:
    return FileEdit(path, "modify", before, after, known=True)


def fragments(path: str, old: str, new: str) -> FileEdit:
    """A replacement of which only the two parts are known."""
    removed = "".join(f"-{line}\n" for line in old.splitlines())
    return FileEdit(path, "modify", diff=removed + "".join(f"+{line}\n" for line in new.splitlines()))


def from_call(name: str, given: JsonObject) -> FileEdit | None:
    """The edit that a call asks for by its arguments, as most agents name them; None when it edits no file."""
    path = next(
        (text_of(given[key]) for key in ("file_path", "filePath", "path") if text_of(given.get(key))), ""
    )
    if not path:
        return None
    pairs = (("old_string", "new_string"), ("oldString", "newString"), ("old_str", "new_str"))
    for old, new in pairs:
        if old in given and new in given:
            return fragments(path, text_of(given[old]), text_of(given[new]))
    lowered = name.lower()
    if "write" in lowered or "create" in lowered:
        content = next((given[key] for key in ("content", "file_text") if key in given), None)
        if isinstance(content, str):
            return FileEdit(path, diff="".join(f"+{line}\n" for line in content.splitlines()))
    edits = given.get("edits")
    if isinstance(edits, list):
        parts = [dict_of(each) for each in edits]
        texts = [
            fragments(path, text_of(part.get("old_string")), text_of(part.get("new_string")))
            for part in parts
        ]
        return FileEdit(path, diff="".join(each.diff or "" for each in texts))
    return None


def _body(diff: str) -> str:
    """The diff without the lines that name the program's own paths before its first `---`."""
    at = diff.find("\n--- ")
    return diff[at + 1 :] if at >= 0 and not diff.startswith(("--- ", "@@", "+", "-", " ")) else diff


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "replace")
