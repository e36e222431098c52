"""What a user does with a chat's patches: list, show, clear, revert, apply again, export."""

from __future__ import annotations

from functools import partial

import anyio.to_thread
import msgspec

from ...model.events import NewEvent
from ...model.failures import Refused
from ...model.files import Patch
from ...workspace import ledger
from ...workspace.ledger import HashOnDisk, RestorePlan
from ..journal import event_factory
from ..sessions.session import Session
from ..tool_calls import edits
from . import revert_plan
from .revert_plan import RevertedFile

MAX_SHOWN = 50
"""Patches whose diffs are shown at once."""


class PatchSelector(msgspec.Struct, frozen=True):
    """Selects patches; `number` counts from the newest, which is 1."""

    id: str | None = None
    number: int | None = None
    path: str | None = None
    turn_id: str | None = None

    def select(self, patches: list[Patch]) -> list[Patch]:
        return ledger.select_patches(
            patches, id=self.id, number=self.number, path=self.path, turn_id=self.turn_id
        )


class PatchExport(msgspec.Struct, frozen=True):
    """A patch for `git apply`, the number of its files, and the files outside the project, which it cannot contain."""

    patch: bytes
    files: int
    left_out: list[str]


class PatchesChanged(msgspec.Struct, frozen=True):
    items: list[Patch]
    files: list[RevertedFile]
    seq: int | None = None


async def list_patches(session: Session, selector: PatchSelector) -> list[Patch]:
    """The chat's patches, newest first, with their current status."""
    patches = await _visible_patches(session)
    if selector != PatchSelector():
        patches = selector.select(patches) if patches else []
    return patches[::-1]


async def show_patches(session: Session, selector: PatchSelector) -> list[Patch]:
    """The selected patches, newest first, with diffs computed from the stored bytes."""
    found = selector.select(await _visible_patches(session))[::-1]
    return [await _with_diff(session, patch) for patch in found[:MAX_SHOWN]]


async def clear_patches(session: Session) -> tuple[int, int]:
    """Remove all patches from the list; they can still be exported and undone by a rewind."""

    async def make() -> tuple[int, list[NewEvent]]:
        entries = await session.store.patches.all(session.chat.id)
        ids = [entry.patch.id for entry in entries if entry.visible and not entry.cleared]
        return len(ids), [NewEvent("patches.cleared", {"ids": ids})] if ids else []

    return await session.apply(make)


async def revert_patches(session: Session, selector: PatchSelector, dry_run: bool) -> PatchesChanged:
    return await _change_patches(session, selector, dry_run, revert=True)


async def apply_patches(session: Session, selector: PatchSelector, dry_run: bool) -> PatchesChanged:
    return await _change_patches(session, selector, dry_run, revert=False)


async def export_patches(session: Session, turn_id: str | None) -> PatchExport:
    """All changes of the chat's branch, or of one turn."""
    entries = await session.store.patches.all(session.chat.id)
    patches = [entry.patch for entry in entries if entry.visible]
    if turn_id is not None:
        patches = ledger.select_patches(patches, turn_id=turn_id)
    outside = sorted({patch.file_path for patch in patches if patch.file_path.startswith("/")})
    patches = [patch for patch in patches if patch.file_path not in outside]
    refs = {ref for patch in patches for ref in (patch.old_ref, patch.new_ref) if ref}
    blobs = {ref: (await session.store.blobs.read(ref, 0, edits.MAX_COMPARED_BYTES))[1] for ref in refs}

    def work() -> PatchExport:
        files = len(ledger.changed_files(patches, blobs.__getitem__))
        return PatchExport(ledger.export_patches(patches, blobs.__getitem__), files, outside)

    return await anyio.to_thread.run_sync(work)


async def _change_patches(
    session: Session, selector: PatchSelector, dry_run: bool, *, revert: bool
) -> PatchesChanged:
    status, make_plan = ("reverted", ledger.plan_revert) if revert else ("applied", ledger.plan_apply)

    async def make() -> tuple[PatchesChanged, list[NewEvent]]:
        if session.turn:
            raise event_factory.turn_in_progress()
        entries = await session.store.patches.all(session.chat.id)
        patches = [entry.patch for entry in entries if entry.visible]
        uncleared = [entry.patch for entry in entries if entry.visible and not entry.cleared]
        wanted = selector.select(uncleared if selector.number is not None else patches)

        def plan(hash_on_disk: HashOnDisk) -> RestorePlan:
            return make_plan(patches, wanted, hash_on_disk)

        workspace, planned = await revert_plan.read_plan(session, plan)
        if dry_run:
            return PatchesChanged(wanted[::-1], revert_plan.file_changes(planned, "would_restore")), []
        if not planned.restores and not planned.conflicts:
            raise _nothing_to_do(status)
        await revert_plan.apply_plan(session.store, workspace, planned)
        ids = {id for step in planned.restores for id in step.patches}
        changed = [msgspec.structs.replace(patch, status=status) for patch in patches if patch.id in ids]
        files = revert_plan.file_changes(planned, "restored")
        return PatchesChanged(changed[::-1], files), [edits.patch_event(patch) for patch in changed]

    changed, seq = await session.apply(make)
    return changed if dry_run else msgspec.structs.replace(changed, seq=seq)


async def _visible_patches(session: Session) -> list[Patch]:
    """The listed patches: the newest of the branch, without those that were cleared."""
    entries = await session.store.patches.all(session.chat.id)
    patches = [entry.patch for entry in entries if entry.visible and not entry.cleared]
    newest = patches[
        -session.environment.settings.values.patches.max_entries :
    ]  # a patch's status depends only on later ones
    workspace = session.environment.workspace()
    if workspace is None:
        return newest
    statuses = partial(ledger.with_statuses, newest, partial(edits.hash_on_disk, workspace))
    return await anyio.to_thread.run_sync(statuses)


async def _with_diff(session: Session, patch: Patch) -> Patch:
    sides = []
    for ref in (patch.old_ref, patch.new_ref):
        sides.append((await session.store.blobs.read(ref, 0, edits.MAX_COMPARED_BYTES))[1] if ref else None)
    most = session.environment.settings.values.patches.max_bytes

    def work() -> Patch:
        change = ledger.make_change(patch.file_path, sides[0], sides[1], None, None, most)
        return msgspec.structs.replace(patch, unified_diff=change.unified_diff, truncated=change.truncated)

    return await anyio.to_thread.run_sync(work)


def _nothing_to_do(status: str) -> Refused:
    already = "reverted" if status == "reverted" else "applied"
    return Refused("precondition_failed", f"These patches are {already} already")
