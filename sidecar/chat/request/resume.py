"""Resume snapshots: stores the state of the session, and decides when to send it to the model again, such as after a
compaction or a restart.

A snapshot is derived from the journal and never written to it. So it needs no lease, and a crash loses none: a
missing one is made again. `context/resume` defines its content and its text.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread
import msgspec

from ...model import JsonObject
from ...model.content import EndReason
from ...model.failures import Failure
from ...store.store import Store
from ...store.tables import pending_snapshot as waiting
from ...store.tables.compactions import StoredCompaction
from ...store.tables.pending_snapshot import PendingSnapshot
from ...store.tables.snapshots import SnapshotBase, SnapshotRow
from ...system.clock import now
from ...system.lazy import lazy_module
from ..journal.running_turn import new_id
from ..tool_calls.environment import ToolEnvironment

if TYPE_CHECKING:
    from ...context import resume as session_resume
    from ...context import summary as summaries
else:
    session_resume = lazy_module("sidecar.context.resume")
    summaries = lazy_module("sidecar.context.summary")

logger = logging.getLogger(__name__)

SNAPSHOT = waiting.BLOCK
RESTORED = waiting.GATE
RESUMED = "resumed"
COMPACTED = "compacted"
LABEL = "resume snapshot"

MAX_TURNS = 400
MAX_BYTES = 8 * 1024 * 1024
"""How much of the turns since the last snapshot is read: many times the interval, and a second's work. Older turns of
a chat that was imported at once are covered by the summary and by retrieval.
"""

FINAL_SNAPSHOT_S = 1.0
"""How long shutdown waits for a last snapshot. It can be made again, so it is not worth more."""

MIN_TURNS = 3
"""A session that ends before this many turns, and without tool calls, needs no snapshot: its chat is sent whole."""

ANSWERED_REASONS: frozenset[EndReason] = frozenset({"end_turn", "max_tokens", "max_steps", "refusal"})

Reason = Literal["interval", "compaction", "close", "exit"]


class DueSnapshot(msgspec.Struct, frozen=True):
    """Why the next request should contain the state of the session, and how to obtain it."""

    gate: str
    label: str
    entries: Callable[[], Awaitable[list[session_resume.ResumeEntry]]]


class ResumeSnapshots:
    """The resume snapshots of one chat in this process."""

    def __init__(self, store: Store, environment: ToolEnvironment) -> None:
        self._store = store
        self._environment = environment
        self._resumed = environment.chat.turns > 0
        """Whether another process had this chat before, and no request was sent since."""
        self._sent_compaction = 0
        """The newest compaction after which a request was sent."""
        self._requests: dict[str, int] = {}
        self._lock = anyio.Lock()
        self._unsaved_turns = 0
        """Turns that have ended here since the last snapshot; one with tool calls counts as `MIN_TURNS`."""

    def due_snapshot(
        self, compaction: StoredCompaction | None, restored: PendingSnapshot | None
    ) -> DueSnapshot | None:
        """The snapshot that a request should contain now, if any."""
        if restored:
            entries = partial(_stored_entries, restored.entries)
            # First, because the user asked for it; the due one is then sent with the next prompt.
            return DueSnapshot(RESTORED, f"snapshot {restored.snapshot_id}", entries)
        if self._resumed:
            return DueSnapshot(RESUMED, LABEL, partial(self._entries, compaction))
        if compaction and compaction.seq > self._sent_compaction:
            return DueSnapshot(COMPACTED, LABEL, partial(self._entries, compaction))
        return None

    def note_request(
        self, turn_id: str, compaction: StoredCompaction | None, due_snapshot: DueSnapshot | None
    ) -> None:
        """Record that a request was built. One with a snapshot that the user restored does not contain the due one."""
        if due_snapshot is None or due_snapshot.gate != RESTORED:
            # Only a note so far. It counts when the turn has an answer: a request that failed has not told the
            # model anything.
            self._requests = {turn_id: compaction.seq if compaction else 0}

    def turn_ended(self, turn_id: str, reason: EndReason, used_tools: bool) -> None:
        """Record the end of a turn. One that failed before an answer has sent the model nothing."""
        self._unsaved_turns += MIN_TURNS if used_tools else 1
        if turn_id in self._requests and reason in ANSWERED_REASONS:
            self._resumed = False
            self._sent_compaction = max(self._sent_compaction, self._requests[turn_id])

    async def after_turn(self) -> None:
        """Store a snapshot when one is due."""
        interval = self._environment.settings.values.session.snapshot_interval
        if interval and await self._store.snapshots.turns_since(self._environment.chat.id) >= interval:
            await self.take_snapshot("interval")

    async def take_snapshot(self, reason: Reason) -> None:
        """Store a snapshot, unless nothing has happened since the last one. A failure is logged only."""
        try:
            async with self._lock:
                unsaved_turns = self._unsaved_turns
                await self._take(reason)
                # Not set to 0: a turn may have ended while the snapshot was stored.
                self._unsaved_turns -= unsaved_turns
        except Failure as failure:
            logger.info("no snapshot", extra={"error": failure.message})

    async def take_final_snapshot(self, reason: Reason) -> None:
        """Store the final state of the session, within `FINAL_SNAPSHOT_S`."""
        if self._unsaved_turns >= MIN_TURNS:
            with anyio.move_on_after(FINAL_SNAPSHOT_S):
                await self.take_snapshot(reason)

    async def session_state(self) -> session_resume.SessionState:
        """The current state of the session."""
        return await self._updated_state(await self._since())

    async def _take(self, reason: Reason) -> None:
        most = self._environment.settings.values.session.max_snapshots
        since = await self._since() if most else None
        if since is None or not since.turns:
            return
        chat, session_state = self._environment.chat, await self._updated_state(since)
        row = SnapshotRow(
            new_id("sn"), session_state.up_to, reason, now(), msgspec.to_builtins(session_state)
        )
        await self._store.snapshots.put(chat.id, chat.epoch, row, most)

    async def _since(self) -> SnapshotBase:
        return await self._store.snapshots.since(self._environment.chat.id, MAX_TURNS, MAX_BYTES)

    async def _updated_state(self, since: SnapshotBase) -> session_resume.SessionState:
        known = (
            msgspec.convert(since.known.session_state, session_resume.SessionState) if since.known else None
        )
        turns = [since.first, *since.turns] if since.first else since.turns
        if not turns:
            return known or session_resume.SessionState()
        # It computes from the values that it gets, so a thread that a cancel leaves behind changes nothing.
        return await anyio.to_thread.run_sync(
            session_resume.update_state, known, turns, abandon_on_cancel=True
        )

    async def _entries(self, compaction: StoredCompaction | None) -> list[session_resume.ResumeEntry]:
        summary = (
            msgspec.convert(compaction.summary, summaries.Summary)
            if compaction and compaction.summary
            else None
        )
        return session_resume.entries(session_resume.with_summary(await self.session_state(), summary))


async def _stored_entries(kept: list[JsonObject]) -> list[session_resume.ResumeEntry]:
    return msgspec.convert(kept, list[session_resume.ResumeEntry])
