"""Chats that this client follows: each a cursor over the journal, sent on as fast as the client reads.

Nothing is queued for a slow client: its cursor stays where it is and the journal is the buffer. While a request
is about to change a chat, that chat's events are held, so that the answer precedes what it causes.
"""

from __future__ import annotations

import logging

import anyio
from anyio.abc import TaskGroup

from ...chat.running import now
from ...chat.session import Session
from ...model.events import DELTA_TYPES, StoredEvent, coalesce, encode
from ...model.failures import StorageFailed
from ...rpc.wire import Wire
from .wire import EventEncoder

logger = logging.getLogger(__name__)

BATCH_EVENTS = 1024
BATCH_BYTES = 512 * 1024
"""What is read from the journal at once for a follower that is behind: half of what may stand unwritten."""

REREAD_S = 0.5
"""How soon the journal is read again after the disk has failed to give it."""


class Attachment:
    def __init__(self, session: Session, epoch: str, cursor: int, wire: Wire, delta_ms: int) -> None:
        self.session = session
        self.cursor = cursor
        self._encoder = EventEncoder(session.chat.key, epoch)
        self._wire = wire
        self._pace = delta_ms / 1000
        self._next_delta = 0.0
        self._holds = 0
        self._free = anyio.Event()
        self._free.set()
        self._moved = anyio.Event()
        self._scope = anyio.CancelScope()

    def hold(self) -> None:
        """Keep events back until `release` is called as often."""
        if not self._holds:
            self._free = anyio.Event()
        self._holds += 1

    def release(self) -> None:
        self._holds -= 1
        if not self._holds:
            self._free.set()

    def detach(self) -> None:
        self._scope.cancel()
        self._moved.set()

    async def reached(self, seq: int) -> None:
        """Wait until the event `seq` stands in the outgoing stream."""
        while self.cursor < seq and not self._scope.cancel_called:
            await self._moved.wait()

    async def run(self) -> None:
        """Send events until detached or the chat is gone."""
        feed = self.session.recorder.feed
        with self._scope:
            while True:
                await feed.wait(self.cursor)
                await self._free.wait()
                await self._wire.room()
                if feed.closed and not self._scope.cancel_called:
                    for event in coalesce(feed.recent(self.cursor) or []):  # what was said of it last
                        self._send(event)
                    self._send(_deletion(self.cursor))
                    return
                events = await self._next()
                # A task that was about to run when its scope was cancelled gets here once more.
                if not self._holds and not self._scope.cancel_called:
                    try:
                        await self._send_all(events)
                    except MemoryError:
                        await anyio.sleep(REREAD_S)

    async def _next(self) -> list[StoredEvent]:
        recent = self.session.recorder.feed.recent(self.cursor)
        if recent is None:
            try:
                recent = await self.session.events_after(self.cursor, BATCH_EVENTS, BATCH_BYTES)
            except StorageFailed as failure:
                logger.warning("cannot read what to send", extra={"error": failure.message})
                await anyio.sleep(REREAD_S)
                return []  # the cursor stays where it is
        return recent

    async def _send_all(self, events: list[StoredEvent]) -> None:
        if self._pace and all(event.type in DELTA_TYPES for event in events):
            wait = self._next_delta - anyio.current_time()
            if wait > 0:
                await anyio.sleep(wait)
                return  # more may have come meanwhile, and goes along
            self._next_delta = anyio.current_time() + self._pace
        for event in coalesce(events):
            self._send(event)

    def _send(self, event: StoredEvent) -> None:
        self._wire.send(self._encoder.notification(event))
        self.cursor = event.seq
        self._moved.set()
        self._moved = anyio.Event()


class Attachments:
    """What one connection follows, by session id."""

    def __init__(self, wire: Wire, tasks: TaskGroup) -> None:
        self._wire = wire
        self._tasks = tasks
        self._open: dict[str, Attachment] = {}
        self.delta_ms = 0

    def get(self, session: Session) -> Attachment | None:
        found = self._open.get(session.chat.key.session_id)
        return found if found and found.session is session else None

    def attach(self, session: Session, epoch: str, cursor: int) -> Attachment:
        """Follow a chat from `cursor` on. Held from the start: release it when the answer is on its way."""
        self.detach(session.chat.key.session_id)
        made = Attachment(session, epoch, cursor, self._wire, self.delta_ms)
        made.hold()
        self._open[session.chat.key.session_id] = made
        self._tasks.start_soon(made.run)
        return made

    def detach_all(self) -> None:
        """Follow nothing more: what was followed is to be opened again."""
        for session_id in list(self._open):
            self.detach(session_id)

    def detach(self, session_id: str) -> bool:
        found = self._open.pop(session_id, None)
        if found:
            found.detach()
        return found is not None


def _deletion(cursor: int) -> StoredEvent:
    return StoredEvent(cursor + 1, cursor + 1, now(), None, "chat.deleted", encode({}))
