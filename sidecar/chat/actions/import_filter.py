"""What an imported file may bring into a chat. Does no IO.

A file contains what was said and done. What a chat may do here is decided by the app and its user, so everything
else is left out and named.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

import msgspec

from ...model import JsonObject
from ...model.chats import TAKEN_FROM_ELSEWHERE
from ...model.content import Block, Item, Turn, output_media, with_output_media
from ...model.failures import Refused
from ...model.files import Patch
from ...policy.protected import edit_reason, secret_reason
from ..sessions import config
from .history_import import ImportedHistory

HEADER_KEYS = ("sidecar", "version", "title", "titleBy", "head", "config")

TITLE_CHARACTERS = 500
"""The limit of `chat/rename`."""

JOINERS = "\u200c\u200d"
"""Format characters that occur inside words and emoji."""

MODE_BITS = 0o777
"""Allowed bits of a file's mode; never set-user-id and the like."""


AllNames = Callable[[str], Sequence[str]]
"""All names of a path in the project: its spelling, links in either direction, and hard links."""


def filter_import(
    imported: ImportedHistory, project: str | None, all_names: AllNames, *, model_is_configured: bool
) -> list[str]:
    """Remove from `imported` what a file may not set, as `filter_turn` does for each turn; return the names of what
    was left out, sorted.

    `model_is_configured`: the file's model belongs to a provider that is configured here.
    """
    ignored = {name for name in imported.header_keys if name not in HEADER_KEYS}
    kept, dropped = _filter_config(imported.config, model_is_configured)
    imported.config = kept
    ignored |= dropped
    imported.title = clean_title(imported.title)
    if imported.title_by not in ("user", "model", "sidecar"):
        imported.title_by = None
    carried, turns = imported.blob_ids, imported.turn_ids
    place = _Place(project, all_names)
    patches = [patch for patch in imported.patches if _may_import_patch(patch, turns, carried, place)]
    files = [entry for entry in imported.open_files if _may_open_file(entry, place)]
    if len(patches) < len(imported.patches):
        ignored.add("patches")
    if len(files) < len(imported.open_files):
        ignored.add("openFiles")
    imported.patches = [_filter_mode(patch) for patch in patches]
    imported.open_files = [_filter_open_file(entry) for entry in files]
    return sorted(ignored)


def names_path(model: str) -> bool:
    """Whether the part after the provider may be the path of a file."""
    name = model.partition(":")[2]
    parts = name.replace("\\", "/").split("/")
    return not name or name[0] in "/\\~." or ".." in parts or "\0" in name or name[1:2] == ":"


def clean_title(title: str | None) -> str | None:
    """The title in one line, without control and format characters."""
    if title is None:
        return None
    shown = "".join(char if char.isprintable() or char in JOINERS else " " for char in title)
    return " ".join(shown.split())[:TITLE_CHARACTERS] or None


def _filter_config(given: JsonObject, model_is_configured: bool) -> tuple[JsonObject, set[str]]:
    kept: JsonObject = {}
    for key, value in given.items():
        if key in TAKEN_FROM_ELSEWHERE or (key == "model" and model_is_configured):
            try:
                kept |= config.merged({}, config.checked_changes({key: value}, engines=()))
            except Refused:
                continue  # it is reported as ignored, and the chat is as if the file had not set it
    return kept, {key for key, value in given.items() if value is not None and key not in kept}


def filter_turn(turn: Turn, carried: Set[str]) -> Turn:
    """The turn without what a file may not set."""
    return msgspec.structs.replace(turn, items=[_filter_item(item, carried) for item in turn.items])


def _filter_item(item: Item, carried: Set[str]) -> Item:
    """The item without references to bytes that the file does not contain: those would be another chat's.

    A call with the status `running` would be closed as one that this process had started.
    """
    if item.type == "tool" and item.output:
        media = [block for block in output_media(item) if block.blob_id in carried]
        item = with_output_media(item, media)
    changes = [_without_refs(change, ("oldRef", "newRef"), carried) for change in item.changes or ()]
    return msgspec.structs.replace(
        item,
        status="interrupted" if item.status == "running" else item.status,
        content=[_filter_block(block, carried) for block in item.content] if item.content else item.content,
        output=_without_refs(item.output, ("ref",), carried) if item.output else item.output,
        changes=changes if item.changes else item.changes,
    )


def _filter_block(block: Block, carried: Set[str]) -> Block:
    if block.blob_id is None or block.blob_id in carried:
        return block
    return Block(type="text", text=f"({block.type}: {block.name or 'without its bytes'})")


def _without_refs(value: JsonObject, names: Iterable[str], carried: Set[str]) -> JsonObject:
    foreign = {name for name in names if value.get(name) is not None and value[name] not in carried}
    return {key: kept for key, kept in value.items() if key not in foreign}


class _Place(msgspec.Struct, frozen=True):
    """The project that a file is imported into, with the targets of its links."""

    project: str | None
    all_names: AllNames

    def takes(self, path: str, stops: Callable[[str], str | None]) -> bool:
        """Whether each name of the path is in the project, and `stops` refuses none of them."""
        if not self._holds(path):
            return False
        names = (path, *self.all_names(path))
        return all(self._holds(name) and stops(self._relative(name)) is None for name in names)

    def _holds(self, path: str) -> bool:
        if not path or "\0" in path or ".." in path.replace("\\", "/").split("/"):
            return False
        if self.project is None:
            return True  # without a project nothing is opened; with one, its own confinement applies
        whole = posixpath.normpath(os.path.join(self.project, path))
        return whole.startswith(self.project.rstrip("/") + "/")

    def _relative(self, path: str) -> str:
        """The path without the folders above the project, whose names say nothing about its files."""
        if self.project is None:
            return path
        return posixpath.normpath(os.path.join(self.project, path))[len(self.project.rstrip("/")) + 1 :]


def _may_import_patch(patch: Patch, turns: Set[str], carried: Set[str], place: _Place) -> bool:
    """Whether reverting the patch could only restore, in the project, bytes that came with the file."""
    refs = {ref for ref in (patch.old_ref, patch.new_ref) if ref is not None}
    return patch.turn_id in turns and refs <= carried and place.takes(patch.file_path, edit_reason)


def _may_open_file(entry: Any, place: _Place) -> bool:
    path = entry.get("path") if isinstance(entry, dict) else None
    return isinstance(path, str) and place.takes(path, secret_reason)


def may_import_patch(
    patch: Patch, turns: Set[str], carried: Set[str], project: str | None, all_names: AllNames
) -> bool:
    """Whether reverting the patch could only restore, in the project, bytes that came with it."""
    return _may_import_patch(patch, turns, carried, _Place(project, all_names))


def _filter_open_file(entry: JsonObject) -> JsonObject:
    """The entry as one that nobody here has chosen: a file that a person opened is sent without a question."""
    return {**entry, "imported": True}


def _filter_mode(patch: Patch) -> Patch:
    return patch if patch.mode is None else msgspec.structs.replace(patch, mode=patch.mode & MODE_BITS)
