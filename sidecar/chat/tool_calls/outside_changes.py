"""Records what an engine has changed in the project by itself in the patch ledger, with the bytes before and after.

Whatever changes a file of the project during the turn counts as the engine's. What our own tools have written is in
the ledger already.
"""

from __future__ import annotations

import logging

import anyio
import anyio.to_thread

from ...model.failures import Failure
from ...model.files import Change, ChangeKind, Patch
from ...system.clock import now
from ...workspace import file_states, ledger
from ...workspace.file_states import FileStates, OutsideChange
from ...workspace.paths import Workspace
from ..journal.running_turn import RunningTurn, new_id
from . import edits
from .environment import ToolEnvironment

logger = logging.getLogger(__name__)

MAX_RECORDED = 500
"""Changed files of one turn that are recorded: a checkout may change all of a repository."""


class OutsideChanges:
    """The files of one chat's project, compared before and after each turn."""

    def __init__(self, environment: ToolEnvironment) -> None:
        self._environment = environment
        self._states: FileStates = {}

    async def note_before(self) -> None:
        """Remember the files as they are."""
        self._states = await self._take()

    async def record(self, turn: RunningTurn, engine: str) -> None:
        """Record what has changed since. Also for a turn that was cancelled or failed."""
        with anyio.CancelScope(shield=True):
            before, self._states = self._states, await self._take()
            changes = file_states.changes_between(before, self._states)
            if not changes:
                return
            try:
                await self._record(turn, engine, await self._unrecorded(turn, changes))
            except Failure as failure:
                logger.warning("changes of an engine were not recorded", extra={"error": failure.message})

    async def _take(self) -> FileStates:
        try:
            workspace = self._environment.workspace()
            if workspace is None:
                return {}
            opened = (_relative(workspace, file["path"]) for file in self._environment.files.state())
            further = [path for path in opened if path is not None]
            return await anyio.to_thread.run_sync(file_states.take_states, workspace, self._states, further)
        except (Failure, OSError) as error:
            logger.warning("the files of a project cannot be compared", extra={"error": str(error)})
            return {}

    async def _unrecorded(self, turn: RunningTurn, changes: list[OutsideChange]) -> list[OutsideChange]:
        """The changes without what the turn's own tool calls have recorded of the same files."""
        entries = await self._environment.services.store.patches.all(self._environment.chat.id)
        last = {entry.patch.file_path: entry.patch for entry in entries if entry.patch.turn_id == turn.id}
        found: list[OutsideChange] = []
        for change in changes:
            patch = last.get(change.path)
            if patch is None:
                found.append(change)
            elif patch.after_hash != file_states.digest_of(change.after):
                found.append(await self._since(patch, change))
        return found

    async def _since(self, patch: Patch, change: OutsideChange) -> OutsideChange:
        """The change since our own write of the same file."""
        before = None
        if patch.new_ref is not None:
            _, before = await self._environment.services.store.blobs.read(
                patch.new_ref, 0, file_states.MAX_FILE_BYTES
            )
        kind: ChangeKind = (
            "delete" if change.kind == "delete" else "create" if patch.kind == "delete" else "modify"
        )
        return OutsideChange(change.path, kind, before, change.after, change.known)

    async def _record(self, turn: RunningTurn, engine: str, changes: list[OutsideChange]) -> None:
        settings = self._environment.settings.values.patches
        events = []
        for change in changes[:MAX_RECORDED]:
            made = await self._change(change, settings.max_bytes)
            patch = ledger.make_patch(
                made, id=new_id("pa"), turn_id=turn.id, item_id=None, tool_name=engine, ts=now(), mode=None
            )
            events.append(edits.patch_event(patch, turn.id))
        if events:
            await turn.record(*events)
        if len(changes) > MAX_RECORDED:
            params = {"recorded": MAX_RECORDED, "changed": len(changes)}
            await turn.notice("changes_left_out", params)

    async def _change(self, change: OutsideChange, max_diff_bytes: int) -> Change:
        if not change.known:
            after = file_states.digest_of(change.after)
            return Change(path=change.path, kind=change.kind, after_hash=after)
        data = [side for side in (change.before, change.after) if side is not None]
        await self._environment.services.store.blobs.put_all(data, "application/octet-stream")
        before, after = file_states.digest_of(change.before), file_states.digest_of(change.after)
        return await anyio.to_thread.run_sync(
            ledger.make_change, change.path, change.before, change.after, before, after, max_diff_bytes
        )


def _relative(workspace: Workspace, path: str) -> str | None:
    """The path in the project; None for a file of another folder."""
    try:
        place = workspace.resolve(path)
    except Failure:
        return None
    return "/".join(place.parts) if place.root == workspace.root else None
