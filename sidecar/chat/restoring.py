"""Puts files back as a plan of the ledger says: all of them, or none and why not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import anyio.to_thread
import msgspec

from ..model.failures import Refused
from ..model.files import ChangeKind
from ..store.store import Store
from ..tools.base import Edit
from ..workspace import writing
from ..workspace.ledger import HashOnDisk, Plan, Restore
from ..workspace.paths import Workspace
from . import edits
from .running import new_id
from .session import Session


class FileChange(msgspec.Struct, frozen=True):
    """What became of a file, or would."""

    path: str
    kind: ChangeKind
    status: Literal["restored", "would_restore", "conflict", "unchanged"]
    reason: str | None = None


async def look(session: Session, make: Callable[[HashOnDisk], Plan]) -> tuple[Workspace, Plan]:
    """The plan as the files are now."""
    workspace = session.desk.needed_workspace()
    plan = await anyio.to_thread.run_sync(make, partial(edits.hash_on_disk, workspace))
    return workspace, plan


async def carry_out(session: Session, make: Callable[[HashOnDisk], Plan], dry_run: bool) -> list[FileChange]:
    """Do what the plan says, unless something stands against it."""
    workspace, plan = await look(session, make)
    if dry_run:
        return shown(plan, "would_restore")
    await do(session.store, workspace, plan)
    return shown(plan, "restored")


async def do(store: Store, workspace: Workspace, plan: Plan) -> None:
    if plan.conflicts:
        changes = [change for change in shown(plan, "would_restore") if change.status == "conflict"]
        words = "; ".join(f"{conflict.path}: {conflict.words}" for conflict in plan.conflicts[:5])
        raise Refused(
            "precondition_failed",
            f"Nothing was changed. {words}",
            params={"paths": [conflict.path for conflict in plan.conflicts]},
            facts={"fileChanges": [msgspec.to_builtins(change) for change in changes]},
        )
    steps = [step for step in plan.restores if step.expected != step.target]
    planned = [await _edit(store, workspace, step) for step in steps]
    await edits.write(workspace, planned, new_id("i"))


def shown(plan: Plan, status: Literal["restored", "would_restore"]) -> list[FileChange]:
    """The plan, file by file."""
    changes = [
        FileChange(step.path, _kind(step), "unchanged" if step.expected == step.target else status)
        for step in plan.restores
    ]
    changes += [FileChange(found.path, "modify", "conflict", found.words) for found in plan.conflicts]
    return sorted(changes, key=lambda change: change.path)


async def _edit(store: Store, workspace: Workspace, step: Restore) -> Edit:
    before = await anyio.to_thread.run_sync(writing.current, workspace, step.path, edits.MAX_LOOKED_BYTES)
    after = None
    if step.ref is not None:
        _, after = await store.read_blob(step.ref, 0, edits.MAX_LOOKED_BYTES)
    return Edit(step.path, before, after, step.mode)


def _kind(step: Restore) -> ChangeKind:
    return "create" if step.expected is None else "delete" if step.target is None else "modify"
