"""Keeps a chat's thread over a compaction and over the death of its process: takes snapshots of what the session has
come to, and says when the model must be told it again.

A snapshot is made of the journal and never goes into it, so it takes no lease, and a death loses none: what was
not kept yet is made anew. What it holds and how it is drawn is `context/continuity`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread
import msgspec

from ..model.content import EndReason
from ..model.failures import Failure
from ..store import restored as waiting
from ..store.compactions import Compaction
from ..store.snapshots import Since, SnapshotRow
from ..store.store import Store
from .desk import Desk
from .running import new_id, now

if TYPE_CHECKING:
    from ..context.continuity import Course, Entry

logger = logging.getLogger(__name__)

SNAPSHOT = waiting.BLOCK
RESTORED = waiting.GATE
RESUMED = "resumed"
COMPACTED = "compacted"
LABEL = "resume snapshot"

MAX_TURNS = 400
MAX_BYTES = 8 * 1024 * 1024
"""Of the turns since the last snapshot that are read: many times the interval, and a second's work. What lies further
back in a chat that was brought in at once is left to the summary and to retrieval."""

LEAVE_S = 1.0
"""How long the way out waits for a last snapshot. It can be made again, so it is not worth more."""

LEAST_TURNS = 3
"""A session that ends before so many turns, and without the work of a tool, has come to nothing that needs keeping: its
chat is sent whole."""

ANSWERED: frozenset[EndReason] = frozenset({"end_turn", "max_tokens", "max_steps", "refusal"})

Reason = Literal["interval", "compaction", "close", "exit"]


class Due(msgspec.Struct, frozen=True):
    """Why the next request should tell what the session has come to, and how that is found out."""

    gate: str
    label: str
    entries: Callable[[], Awaitable[list[Entry]]]


class Continuity:
    """One chat's, as this process knows it."""

    def __init__(self, store: Store, desk: Desk) -> None:
        self._store = store
        self._desk = desk
        self._resumed = desk.chat.turns > 0
        """Whether another process had this chat before, and the model has not been asked since."""
        self._told = 0
        """The newest compaction after which the model was asked."""
        self._asked: dict[str, int] = {}
        self._taking = anyio.Lock()
        self._unkept = 0
        """Turns that have ended here since the last snapshot; those with tools weigh as much as all that are needed."""

    def due(self, compaction: Compaction | None, restored: dict[str, object] | None) -> Due | None:
        """What a request that is made now should tell, if anything."""
        if restored:
            kept = restored.get("entries")
            return Due(RESTORED, f"snapshot {restored['snapshotId']}", partial(_stored_entries, kept))
        if self._resumed:
            return Due(RESUMED, LABEL, partial(self._entries, compaction))
        if compaction and compaction.seq > self._told:
            return Due(COMPACTED, LABEL, partial(self._entries, compaction))
        return None

    def asked(self, turn_id: str, compaction: Compaction | None, due: Due | None) -> None:
        """A turn's request was made. One that took along what somebody wished for has not told what is due."""
        if due is None or due.gate != RESTORED:
            self._asked = {turn_id: compaction.seq if compaction else 0}

    def turn_ended(self, turn_id: str, reason: EndReason, worked: bool) -> None:
        """A turn is over, in which tools may have worked; one that was not answered has told the model nothing."""
        self._unkept += LEAST_TURNS if worked else 1
        if turn_id in self._asked and reason in ANSWERED:
            self._resumed = False
            self._told = max(self._told, self._asked[turn_id])

    async def after_turn(self) -> None:
        """Keep a snapshot when it is time for one."""
        interval = self._desk.settings.snapshot_interval
        if interval and await self._store.snapshots.turns_since(self._desk.chat.id) >= interval:
            await self.keep("interval")

    async def keep(self, reason: Reason) -> None:
        """Keep a snapshot of now, unless nothing has happened since the last one; a failure harms nobody."""
        try:
            async with self._taking:
                unkept = self._unkept
                await self._take(reason)
                self._unkept -= unkept
        except Failure as failure:
            logger.info("no snapshot", extra={"error": failure.message})

    async def leave(self, reason: Reason) -> None:
        """The session ends here: keep what it has come to, if that does not take long."""
        if self._unkept >= LEAST_TURNS:
            with anyio.move_on_after(LEAVE_S):
                await self.keep(reason)

    async def course(self) -> Course:
        """What the session has come to by now."""
        return await self._course(await self._since())

    async def _take(self, reason: Reason) -> None:
        most = self._desk.settings.max_snapshots
        since = await self._since() if most else None
        if since is None or not since.turns:
            return
        chat, course = self._desk.chat, await self._course(since)
        row = SnapshotRow(new_id("sn"), course.up_to, reason, now(), msgspec.to_builtins(course))
        await self._store.snapshots.put(chat.id, chat.epoch, row, most)

    async def _since(self) -> Since:
        return await self._store.snapshots.since(self._desk.chat.id, MAX_TURNS, MAX_BYTES)

    async def _course(self, since: Since) -> Course:
        from ..context.continuity import Course, brought_up

        known = msgspec.convert(since.known.course, Course) if since.known else None
        turns = [since.first, *since.turns] if since.first else since.turns
        if not turns:
            return known or Course()
        return await anyio.to_thread.run_sync(brought_up, known, turns, abandon_on_cancel=True)

    async def _entries(self, compaction: Compaction | None) -> list[Entry]:
        from ..context.continuity import entries, with_summary
        from ..context.summary import Summary

        summary = msgspec.convert(compaction.summary, Summary) if compaction and compaction.summary else None
        return entries(with_summary(await self.course(), summary))


async def _stored_entries(kept: object) -> list[Entry]:
    from ..context.continuity import Entry

    return msgspec.convert(kept, list[Entry])
