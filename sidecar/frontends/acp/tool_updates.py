"""Tool calls as updates: status, locations, diffs and output. Pure: the texts of files are arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...model import JsonObject
from ...model.content import Item, output_media
from ...model.files import Change
from ...workspace.diff import quote_path
from .content import text_block, written_block
from .messages import Update

MAX_SHOWN = 64 * 1024
"""Characters of what a running command has printed so far that one update has: the newest. Version 1 sends them again
with every piece.
"""

_STATUSES = {1: {"running": "in_progress", "completed": "completed"}, 2: {"cancelled": "cancelled"}}
_STATUSES[2] |= _STATUSES[1]


class Stored(msgspec.Struct, frozen=True):
    """What the store has of an update: texts of files by their blob, and the bytes of media by theirs."""

    texts: Mapping[str, str] = {}
    media: Mapping[str, bytes] = {}


def started(item: Item, project: str | None, version: int) -> Update:
    """The first update of a call."""
    update: Update = {
        **_head(item, version),
        "kind": item.kind or "other",
        "title": item.title or item.name or "Tool",
        "rawInput": item.input,
        "locations": locations(item, project),
    }
    return update | ({"name": item.name} if item.name else {})


def changed(item: Item, project: str | None, version: int, stored: Stored) -> Update:
    """An update of a running call, such as the files that it is about to change."""
    content = diffs(item_changes(item), project, version, stored.texts)
    update: Update = {**_head(item, version), "title": item.title or item.name or "Tool", "content": content}
    return update | {"locations": locations(item, project)}


def ended(item: Item, project: str | None, version: int, stored: Stored) -> Update:
    """The last update of a call: its diffs and its output."""
    content = diffs(item_changes(item), project, version, stored.texts)
    if item.output_text:
        content.append(_content(text_block(fenced(item.output_text))))
    content += [_content(written_block(block, stored.media)) for block in output_media(item)]
    update: Update = {**_head(item, version), "content": content, "locations": locations(item, project)}
    if item.exit_code is not None:
        update["rawOutput"] = {"exitCode": item.exit_code}
    return update


def printed(id: str, text: str) -> Update:
    """What a running call of version 1 has printed so far."""
    shown = text if len(text) <= MAX_SHOWN else "…" + text[-MAX_SHOWN:]
    return {"toolCallId": id, "content": [_content(text_block(fenced(shown)))]}


def item_changes(item: Item) -> list[Change]:
    try:
        return msgspec.convert(item.changes or [], list[Change])
    except msgspec.ValidationError:
        return []  # of an imported line; its output is shown


def diffs(
    changes: Sequence[Change], project: str | None, version: int, texts: Mapping[str, str]
) -> list[JsonObject]:
    """Changes of files as the editor shows them; those that are no text, or too long, as a line."""
    return [_diff(change, absolute(change.path, project), version, texts) for change in changes]


def locations(item: Item, project: str | None) -> list[JsonObject]:
    """The files that a call is about, so that the editor can follow."""
    given = item.input if isinstance(item.input, dict) else {}
    found: dict[str, int | None] = {}
    path, line = given.get("path"), given.get("start_line")
    if isinstance(path, str) and path and (project or os.path.isabs(path)):
        found[absolute(path, project)] = line if type(line) is int and line > 0 else None
    named = [place.get("path") for place in item.locations or []] + [
        change.path for change in item_changes(item)
    ]
    for each in named:
        if isinstance(each, str) and (project or os.path.isabs(each)):
            found.setdefault(absolute(each, project), None)
    return [{"path": path, **({"line": line} if line else {})} for path, line in found.items()]


def absolute(path: str, project: str | None) -> str:
    return os.path.normpath(os.path.join(project or "/", path))


def fenced(text: str) -> str:
    """The text as a block of code, whatever fences it contains."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _head(item: Item, version: int) -> Update:
    return {"toolCallId": item.id, "status": _STATUSES[version].get(item.status, "failed")}


def _content(block: JsonObject) -> JsonObject:
    return {"type": "content", "content": block}


def _diff(change: Change, path: str, version: int, texts: Mapping[str, str]) -> JsonObject:
    if version == 2:
        operation = {"create": "add", "modify": "modify", "delete": "delete"}[change.kind]
        found: JsonObject = {"type": "diff", "changes": [{"operation": operation, "path": path}]}
        if change.unified_diff and not change.truncated:
            found["patch"] = {"format": "git_patch", "text": git_patch(change)}
        return found
    old, new = _side(change.old_ref, texts), _side(change.new_ref, texts)
    if old is None or new is None or change.binary:
        text = change.unified_diff or f"{change.kind} {change.path}"
        return _content(text_block(fenced(text)))
    return {"type": "diff", "path": path, "oldText": None if change.kind == "create" else old, "newText": new}


def git_patch(change: Change) -> str:
    """The unified diff with the heading that `git apply` reads."""
    mode = {"create": "new file mode 100644\n", "delete": "deleted file mode 100644\n"}.get(change.kind, "")
    old, new = (quote_path(prefix + change.path, ascii_only=False).decode() for prefix in ("a/", "b/"))
    return f"diff --git {old} {new}\n{mode}{change.unified_diff}"


def _side(ref: str | None, texts: Mapping[str, str]) -> Any:
    """The text of one side of a change, empty when there is no file; None when it is not known as text."""
    return "" if ref is None else texts.get(ref)
