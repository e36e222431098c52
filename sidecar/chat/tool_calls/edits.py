"""Writes the edits that a tool has planned: first the intent to the journal, then the bytes, then the patch ledger.

A process that dies in between leaves a tool call with its intent. Crash closure then compares the files with that
intent: it records the changes that were written and removes temporary files.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence

import anyio
import anyio.to_thread
import msgspec

from ...model import JsonObject
from ...model.content import Item
from ...model.events import NewEvent
from ...model.failures import Failure
from ...model.files import Change, Patch
from ...store.store import Store
from ...system.clock import now
from ...tools.base import Edit
from ...workspace import ledger, writing
from ...workspace.diff import summary
from ...workspace.paths import Workspace
from ..journal.running_turn import new_id

logger = logging.getLogger(__name__)

MAX_COMPARED_BYTES = 64 * 1024 * 1024
"""The largest file whose hash is compared; edited files are far smaller."""


async def plan_changes(store: Store, edits: Sequence[Edit], max_diff_bytes: int) -> list[Change]:
    """Return the edits as changes: with diffs for people, and both versions stored as blobs."""
    data = [side for edit in edits for side in (edit.before, edit.after) if side is not None]
    refs = {kept.id for kept in await store.blobs.put_all(data, "application/octet-stream")}

    def ref(side: bytes | None) -> str | None:
        id = writing.digest(side) if side is not None else None
        assert id is None or id in refs
        return id

    def compute() -> list[Change]:
        return [
            ledger.make_change(
                edit.path, edit.before, edit.after, ref(edit.before), ref(edit.after), max_diff_bytes
            )
            for edit in edits
        ]

    return await anyio.to_thread.run_sync(compute)


async def write_edits(
    workspace: Workspace, edits: Sequence[Edit], item_id: str, approved: Mapping[str, str] | None = None
) -> None:
    """Write all edits or none. Shielded from cancellation, for the time of a few writes.

    `approved` maps each path to the real path that permission was given for. A path that resolves to another file by
    the time of the write is refused.
    """
    real = approved or {}

    def work() -> None:
        done: list[Edit] = []
        try:
            for edit in edits:
                _replace(workspace, edit, temp_file_token(item_id), real.get(edit.path))
                done.append(edit)
        except Failure:
            # Backwards, because two edits may concern one path. A file that somebody else changed meanwhile is
            # refused and stays as they left it.
            for edit in reversed(done):
                back = Edit(edit.path, edit.after, edit.before)
                _replace(workspace, back, temp_file_token(item_id), real.get(edit.path))
            raise

    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(work)


def patch_events(
    turn_id: str, item: Item, changes: Sequence[Change], edits: Sequence[Edit]
) -> list[NewEvent]:
    """Return the ledger events for changes that were written."""
    return [
        _patch_event(turn_id, item, change, summary(edit.before, edit.after) if change.binary else None)
        for change, edit in zip(changes, edits, strict=True)
    ]


def patch_event(patch: Patch, turn_id: str | None = None) -> NewEvent:
    """Return the current state of a patch as an event; a later event with the same id replaces it.

    `turn_id` is the running turn.
    """
    totals = {"status": patch.status, "added": patch.added, "removed": patch.removed}
    entry = msgspec.to_builtins(msgspec.structs.replace(patch, unified_diff=None))
    return NewEvent("patch.recorded", {**entry, **totals}, turn_id)


async def recover_patches(
    workspace: Workspace | None, items: Sequence[Item], known: Sequence[Patch]
) -> list[NewEvent]:
    """After a crash: record the changes that unfinished calls have written, and remove their temporary files."""
    entered = {(patch.item_id, patch.file_path) for patch in known}
    if workspace is None:
        return []

    def look() -> list[NewEvent]:
        events = []
        for item in items:
            for change in _changes(item):
                _remove_temp_file(workspace, change.path, temp_file_token(item.id))
                # By content: the process may have died right after the rename, before the ledger was written.
                made = _hash_of(workspace, change.path) == change.after_hash
                if made and (item.id, change.path) not in entered:
                    events.append(_patch_event(item.turn_id, item, change))
        return events

    return await anyio.to_thread.run_sync(look)


def hash_on_disk(workspace: Workspace, path: str) -> str | None:
    """The sha256 of the file on disk; None when it does not exist or cannot be read."""
    return _hash_of(workspace, path)


def temp_file_token(item_id: str) -> str:
    """The name part of a call's temporary file, by which crash closure recognises one that was left behind."""
    return hashlib.sha256(item_id.encode()).hexdigest()[:16]


def _replace(workspace: Workspace, edit: Edit, temp_file_token: str, real: str | None = None) -> None:
    expected = writing.digest(edit.before) if edit.before is not None else None
    writing.replace(
        workspace, edit.path, expected, edit.after, mode=edit.mode, token=temp_file_token, real=real
    )


def _patch_event(turn_id: str, item: Item, change: Change, summary: str | None = None) -> NewEvent:
    return patch_event(
        ledger.make_patch(
            change,
            id=new_id("pa"),
            turn_id=turn_id,
            item_id=item.id,
            tool_name=item.name or "",
            ts=now(),
            mode=None,
            summary=summary,
        ),
        turn_id,
    )


def _changes(item: Item) -> list[Change]:
    raw: list[JsonObject] = item.changes or []
    return [msgspec.convert(change, Change) for change in raw]


def _remove_temp_file(workspace: Workspace, path: str, temp_file_token: str) -> None:
    try:
        writing.remove_leftovers(workspace, path, temp_file_token)
    except (Failure, OSError) as error:
        logger.warning("a temporary file may be left behind", extra={"error": str(error)})


def _hash_of(workspace: Workspace, path: str) -> str | None:
    try:
        data = writing.read_current(workspace, path, MAX_COMPARED_BYTES)
    except Failure:
        return None
    return writing.digest(data) if data is not None else None
