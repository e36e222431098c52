"""Restores files by a plan of the ledger: all of them, or none with the reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import anyio.to_thread
import msgspec

from ...model.failures import Refused
from ...model.files import ChangeKind
from ...store.store import Store
from ...tools.base import Edit
from ...workspace import writing
from ...workspace.ledger import ConflictReason, HashOnDisk, Restore, RestorePlan
from ...workspace.paths import Workspace
from ..journal.running_turn import new_id
from ..sessions.session import Session
from ..tool_calls import edits


class RevertedFile(msgspec.Struct, frozen=True, rename="camel"):
    """What happened to a file, or would happen."""

    path: str
    kind: ChangeKind
    status: Literal["restored", "would_restore", "conflict", "unchanged"]
    reason: str | None = None
    reason_code: ConflictReason | None = None


async def read_plan(
    session: Session, make: Callable[[HashOnDisk], RestorePlan]
) -> tuple[Workspace, RestorePlan]:
    """The plan for the files as they are now."""
    workspace = session.environment.require_workspace()
    plan = await anyio.to_thread.run_sync(make, partial(edits.hash_on_disk, workspace))
    return workspace, plan


async def restore_files(
    session: Session, make: Callable[[HashOnDisk], RestorePlan], dry_run: bool
) -> list[RevertedFile]:
    """Apply the plan, unless something prevents it."""
    workspace, plan = await read_plan(session, make)
    if dry_run:
        return file_changes(plan, "would_restore")
    await apply_plan(session.store, workspace, plan)
    return file_changes(plan, "restored")


async def apply_plan(store: Store, workspace: Workspace, plan: RestorePlan) -> None:
    if plan.conflicts:
        changes = [change for change in file_changes(plan, "would_restore") if change.status == "conflict"]
        words = "; ".join(f"{conflict.path}: {conflict.words}" for conflict in plan.conflicts[:5])
        raise Refused(
            "precondition_failed",
            f"Nothing was changed. {words}",
            params={"paths": [conflict.path for conflict in plan.conflicts]},
            facts={"fileChanges": [msgspec.to_builtins(change) for change in changes]},
        )
    steps = [step for step in plan.restores if step.expected != step.target]
    planned = [await _edit(store, workspace, step) for step in steps]
    await edits.write_edits(workspace, planned, new_id("i"))


def file_changes(plan: RestorePlan, status: Literal["restored", "would_restore"]) -> list[RevertedFile]:
    """The plan, file by file."""
    changes = [
        RevertedFile(step.path, _kind(step), "unchanged" if step.expected == step.target else status)
        for step in plan.restores
    ]
    changes += [
        RevertedFile(found.path, "modify", "conflict", found.words, found.reason) for found in plan.conflicts
    ]
    changes += [
        RevertedFile(found.path, "modify", "unchanged", found.words, found.reason) for found in plan.kept
    ]
    return sorted(changes, key=lambda change: change.path)


async def _edit(store: Store, workspace: Workspace, step: Restore) -> Edit:
    before = await anyio.to_thread.run_sync(
        writing.read_current, workspace, step.path, edits.MAX_COMPARED_BYTES
    )
    after = None
    if step.ref is not None:
        _, after = await store.blobs.read(step.ref, 0, edits.MAX_COMPARED_BYTES)
    return Edit(step.path, before, after, step.mode)


def _kind(step: Restore) -> ChangeKind:
    return "create" if step.expected is None else "delete" if step.target is None else "modify"
