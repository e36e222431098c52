"""Writes what a tool has planned: the intent goes to the journal first, the bytes then, the ledger last.

A process that dies in between leaves a tool call with its intent. Whoever closes the chat then looks at the
files: what was written is entered into the ledger, and a half-made temporary file is removed.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from ..model.content import Item
from ..model.events import NewEvent
from ..model.failures import Failure
from ..model.files import Change, Patch
from ..store.store import Store
from ..tools.base import Edit
from ..workspace import ledger, writing
from ..workspace.diff import summary
from ..workspace.paths import Workspace
from .running import new_id, now

logger = logging.getLogger(__name__)

MAX_LOOKED_BYTES = 64 * 1024 * 1024
"""Of a file whose hash is compared; edits are of far smaller ones."""


async def planned(store: Store, edits: Sequence[Edit], max_diff_bytes: int) -> list[Change]:
    """The edits as changes: with diffs for people, and the bytes of both sides kept."""
    data = [side for edit in edits for side in (edit.before, edit.after) if side is not None]
    refs = {kept.id for kept in await store.put_blobs(data, "application/octet-stream")}

    def ref(side: bytes | None) -> str | None:
        id = writing.digest(side) if side is not None else None
        assert id is None or id in refs
        return id

    def compute() -> list[Change]:
        return [
            ledger.change_of(
                edit.path, edit.before, edit.after, ref(edit.before), ref(edit.after), max_diff_bytes
            )
            for edit in edits
        ]

    return await anyio.to_thread.run_sync(compute)


async def write(workspace: Workspace, edits: Sequence[Edit], item_id: str) -> None:
    """Write all edits or none. Not to be cancelled: what is begun is ended, within the time of a few writes."""

    def work() -> None:
        done: list[Edit] = []
        try:
            for edit in edits:
                _replace(workspace, edit, token(item_id))
                done.append(edit)
        except Failure:
            for edit in reversed(done):
                _replace(workspace, Edit(edit.path, edit.after, edit.before), token(item_id))
            raise

    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(work)


def recorded(turn_id: str, item: Item, changes: Sequence[Change], edits: Sequence[Edit]) -> list[NewEvent]:
    """The ledger's entries of changes that were made."""
    return [
        _patch_event(turn_id, item, change, summary(edit.before, edit.after) if change.binary else None)
        for change, edit in zip(changes, edits, strict=True)
    ]


def patch_event(patch: Patch, turn_id: str | None = None) -> NewEvent:
    """An entry as it is now; a later event under the same id replaces it. `turn_id` is the turn that runs."""
    told = {"status": patch.status, "added": patch.added, "removed": patch.removed}
    entry = msgspec.to_builtins(msgspec.structs.replace(patch, unified_diff=None))
    return NewEvent("patch.recorded", {**entry, **told}, turn_id)


async def settle(
    workspace: Workspace | None, items: Sequence[Item], known: Sequence[Patch]
) -> list[NewEvent]:
    """After a crash: enter the changes that unfinished calls made, and remove what they left half made."""
    entered = {(patch.item_id, patch.file_path) for patch in known}
    if workspace is None:
        return []

    def look() -> list[NewEvent]:
        events = []
        for item in items:
            for change in _changes(item):
                _sweep(workspace, change.path, token(item.id))
                made = _hash_of(workspace, change.path) == change.after_hash
                if made and (item.id, change.path) not in entered:
                    events.append(_patch_event(item.turn_id, item, change))
        return events

    return await anyio.to_thread.run_sync(look)


def hash_on_disk(workspace: Workspace, path: str) -> str | None:
    """The sha256 of a file as it is now; None when there is none, or none that can be read."""
    return _hash_of(workspace, path)


def token(item_id: str) -> str:
    """Names the temporary file of a call, so that one that was left behind is known."""
    return hashlib.sha256(item_id.encode()).hexdigest()[:16]


def _replace(workspace: Workspace, edit: Edit, token: str) -> None:
    expected = writing.digest(edit.before) if edit.before is not None else None
    writing.replace(workspace, edit.path, expected, edit.after, mode=edit.mode, token=token)


def _patch_event(turn_id: str, item: Item, change: Change, summary: str | None = None) -> NewEvent:
    return patch_event(
        ledger.patch_of(
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
    raw: list[dict[str, Any]] = item.changes or []
    return [msgspec.convert(change, Change) for change in raw]


def _sweep(workspace: Workspace, path: str, token: str) -> None:
    try:
        writing.sweep(workspace, path, token)
    except (Failure, OSError) as error:
        logger.warning("a temporary file may be left behind", extra={"error": str(error)})


def _hash_of(workspace: Workspace, path: str) -> str | None:
    try:
        data = writing.current(workspace, path, MAX_LOOKED_BYTES)
    except Failure:
        return None
    return writing.digest(data) if data is not None else None
