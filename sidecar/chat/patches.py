"""What a person does with a chat's ledger: list, show, clear, revert, apply again, export."""

from __future__ import annotations

from functools import partial

import anyio.to_thread
import msgspec

from ..model.events import NewEvent
from ..model.failures import Refused
from ..model.files import Patch
from ..workspace import ledger
from ..workspace.ledger import HashOnDisk, Plan
from . import edits, facts, restoring
from .restoring import FileChange
from .session import Session

MAX_SHOWN = 50
"""Patches whose diffs are shown at once."""


class Chosen(msgspec.Struct, frozen=True):
    """Which patches are meant; `number` counts from the newest, which is 1."""

    id: str | None = None
    number: int | None = None
    path: str | None = None
    turn_id: str | None = None

    def of(self, patches: list[Patch]) -> list[Patch]:
        return ledger.select(patches, id=self.id, number=self.number, path=self.path, turn_id=self.turn_id)


class Export(msgspec.Struct, frozen=True):
    """A patch for `git apply`, how many files it has, and which it cannot name: those outside the project."""

    patch: bytes
    files: int
    left_out: list[str]


class PatchesChanged(msgspec.Struct, frozen=True):
    items: list[Patch]
    files: list[FileChange]
    seq: int | None = None


async def listed(session: Session, chosen: Chosen) -> list[Patch]:
    """The chat's patches, newest first, as they stand now."""
    patches = await _visible(session)
    if chosen != Chosen():
        patches = chosen.of(patches) if patches else []
    return patches[::-1]


async def shown(session: Session, chosen: Chosen) -> list[Patch]:
    """The chosen patches, newest first, with their diffs made anew from the bytes that were kept."""
    found = chosen.of(await _visible(session))[::-1]
    return [await _with_diff(session, patch) for patch in found[:MAX_SHOWN]]


async def cleared(session: Session) -> tuple[int, int]:
    """Leave all patches out of the list; they can still be exported and undone by a rewind."""

    async def make() -> tuple[int, list[NewEvent]]:
        entries = await session.store.patches(session.chat.id)
        ids = [entry.patch.id for entry in entries if entry.visible and not entry.cleared]
        return len(ids), [NewEvent("patches.cleared", {"ids": ids})] if ids else []

    return await session.apply(make)


async def reverted(session: Session, chosen: Chosen, dry_run: bool) -> PatchesChanged:
    return await _change(session, chosen, dry_run, revert=True)


async def applied(session: Session, chosen: Chosen, dry_run: bool) -> PatchesChanged:
    return await _change(session, chosen, dry_run, revert=False)


async def exported(session: Session, turn_id: str | None) -> Export:
    """All changes of the chat's branch, or of one turn."""
    entries = await session.store.patches(session.chat.id)
    patches = [entry.patch for entry in entries if entry.visible]
    if turn_id is not None:
        patches = ledger.select(patches, turn_id=turn_id)
    outside = sorted({patch.file_path for patch in patches if patch.file_path.startswith("/")})
    patches = [patch for patch in patches if patch.file_path not in outside]
    refs = {ref for patch in patches for ref in (patch.old_ref, patch.new_ref) if ref}
    blobs = {ref: (await session.store.read_blob(ref, 0, edits.MAX_LOOKED_BYTES))[1] for ref in refs}

    def work() -> Export:
        files = len(ledger.changed(patches, blobs.__getitem__))
        return Export(ledger.export(patches, blobs.__getitem__), files, outside)

    return await anyio.to_thread.run_sync(work)


async def _change(session: Session, chosen: Chosen, dry_run: bool, *, revert: bool) -> PatchesChanged:
    status, make_plan = ("reverted", ledger.plan_revert) if revert else ("applied", ledger.plan_apply)

    async def make() -> tuple[PatchesChanged, list[NewEvent]]:
        if session.turn:
            raise facts.busy()
        entries = await session.store.patches(session.chat.id)
        patches = [entry.patch for entry in entries if entry.visible]
        listed = [entry.patch for entry in entries if entry.visible and not entry.cleared]
        wanted = chosen.of(listed if chosen.number is not None else patches)

        def plan(hash_on_disk: HashOnDisk) -> Plan:
            return make_plan(patches, wanted, hash_on_disk)

        workspace, planned = await restoring.look(session, plan)
        if dry_run:
            return PatchesChanged(wanted[::-1], restoring.shown(planned, "would_restore")), []
        if not planned.restores and not planned.conflicts:
            raise _nothing_to_do(status)
        await restoring.do(session.store, workspace, planned)
        ids = {id for step in planned.restores for id in step.patches}
        changed = [msgspec.structs.replace(patch, status=status) for patch in patches if patch.id in ids]
        files = restoring.shown(planned, "restored")
        return PatchesChanged(changed[::-1], files), [edits.patch_event(patch) for patch in changed]

    changed, seq = await session.apply(make)
    return changed if dry_run else msgspec.structs.replace(changed, seq=seq)


async def _visible(session: Session) -> list[Patch]:
    """What the list has: the newest of the branch, without what was cleared."""
    entries = await session.store.patches(session.chat.id)
    patches = [entry.patch for entry in entries if entry.visible and not entry.cleared]
    newest = patches[-session.desk.settings.max_patches :]  # a patch's status depends on later ones alone
    workspace = session.desk.workspace()
    if workspace is None:
        return newest
    statuses = partial(ledger.with_statuses, newest, partial(edits.hash_on_disk, workspace))
    return await anyio.to_thread.run_sync(statuses)


async def _with_diff(session: Session, patch: Patch) -> Patch:
    sides = []
    for ref in (patch.old_ref, patch.new_ref):
        sides.append((await session.store.read_blob(ref, 0, edits.MAX_LOOKED_BYTES))[1] if ref else None)
    most = session.desk.settings.max_patch_bytes

    def work() -> Patch:
        change = ledger.change_of(patch.file_path, sides[0], sides[1], None, None, most)
        return msgspec.structs.replace(patch, unified_diff=change.unified_diff, truncated=change.truncated)

    return await anyio.to_thread.run_sync(work)


def _nothing_to_do(status: str) -> Refused:
    already = "reverted" if status == "reverted" else "applied"
    return Refused("precondition_failed", f"These patches are {already} already")
