"""The chats that this client follows: each is a cursor over the journal, sent on as fast as the client reads.

Nothing is queued for a slow client: its cursor stays where it is and the journal is the buffer. While a request is
about to change a chat, that chat's events are held, so that the answer precedes the events that it causes. How an
event is written is the dialect's: its `EventSink`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from ..chat.sessions.session import Session
from ..model.events import DELTA_TYPES, StoredEvent, coalesce
from ..model.failures import StorageFailed
from ..rpc.wire import MessageWriter

logger = logging.getLogger(__name__)

BATCH_EVENTS = 1024
BATCH_BYTES = 512 * 1024
"""Bytes read from the journal at once for a follower that is behind: half of what may be unwritten."""

REREAD_S = 0.5
"""How soon the journal is read again after a storage failure."""


class EventSink(Protocol):
    """Writes the events of one chat in the words of a dialect."""

    async def resolve(self, events: list[StoredEvent]) -> list[StoredEvent]:
        """Read what writing these events needs. They may come here again before they are sent."""

    def send(self, event: StoredEvent) -> None:
        """Write the next event; must not block."""

    def send_deletion(self, cursor: int) -> None:
        """Write that the chat was deleted after the event `cursor`."""


Sink = TypeVar("Sink", bound=EventSink)


class Attachment(Generic[Sink]):
    def __init__(
        self, session: Session, cursor: int, sink: Sink, wire: MessageWriter, delta_ms: int = 0
    ) -> None:
        self.session = session
        self.cursor = cursor
        self.sink = sink
        self._wire = wire
        self._delta_interval_s = delta_ms / 1000
        self._next_delta = 0.0
        self._holds = 0
        self._not_held = anyio.Event()
        self._not_held.set()
        self._cursor_moved = anyio.Event()
        self._scope = anyio.CancelScope()

    def hold(self) -> None:
        """Hold events until `release` was called as many times."""
        if not self._holds:
            self._not_held = anyio.Event()
        self._holds += 1

    def release(self) -> None:
        self._holds -= 1
        if not self._holds:
            self._not_held.set()

    def detach(self) -> None:
        self._scope.cancel()
        self._cursor_moved.set()

    async def wait_sent(self, seq: int) -> None:
        """Wait until the event `seq` is in the outgoing stream."""
        while self.cursor < seq and not self._scope.cancel_called:
            await self._cursor_moved.wait()

    async def run(self) -> None:
        """Send events until detached or the chat is deleted."""
        feed = self.session.recorder.feed
        with self._scope:
            while True:
                await feed.wait(self.cursor)
                await self._not_held.wait()
                await self._wire.wait_for_space()
                if feed.closed and not self._scope.cancel_called:
                    last = await self.sink.resolve(feed.recent(self.cursor) or [])
                    for event in coalesce(last):  # the last events before the deletion
                        self._send(event)
                    self.sink.send_deletion(self.cursor)
                    self._move_to(self.cursor + 1)
                    return
                events = await self._next_events()
                # Reading the journal awaits, and a request may have called `hold` meanwhile. Nothing is lost: the
                # cursor has not moved. A task that was about to run when its scope was cancelled gets here once
                # more, so that is checked too.
                if not self._holds and not self._scope.cancel_called:
                    try:
                        await self._send_all(events)
                    except MemoryError:
                        await anyio.sleep(REREAD_S)

    async def _next_events(self) -> list[StoredEvent]:
        recent = self.session.recorder.feed.recent(self.cursor)
        if recent is None:
            try:
                recent = await self.session.events_after(self.cursor, BATCH_EVENTS, BATCH_BYTES)
            except StorageFailed as failure:
                logger.warning("cannot read the events to send", extra={"error": failure.message})
                await anyio.sleep(REREAD_S)
                return []  # the cursor stays where it is
        return await self.sink.resolve(recent)

    async def _send_all(self, events: list[StoredEvent]) -> None:
        if self._delta_interval_s and all(event.type in DELTA_TYPES for event in events):
            wait = self._next_delta - anyio.current_time()
            if wait > 0:
                await anyio.sleep(wait)
                return  # events that arrived meanwhile are sent together
            self._next_delta = anyio.current_time() + self._delta_interval_s
        for event in coalesce(events):
            self._send(event)

    def _send(self, event: StoredEvent) -> None:
        self.sink.send(event)
        # Only after it is in the outgoing stream: a failure before leaves the cursor, and the event is sent
        # again.
        self._move_to(event.seq)

    def _move_to(self, seq: int) -> None:
        self.cursor = seq
        self._cursor_moved.set()
        self._cursor_moved = anyio.Event()


class Attachments(Generic[Sink]):
    """The attachments of one connection, by session id. `sink_of` makes the sink for a chat and its epoch."""

    def __init__(
        self, wire: MessageWriter, tasks: TaskGroup, sink_of: Callable[[Session, str], Sink]
    ) -> None:
        self._wire = wire
        self._tasks = tasks
        self._sink_of = sink_of
        self._attached: dict[str, Attachment[Sink]] = {}
        self.delta_ms = 0

    def get(self, session: Session) -> Attachment[Sink] | None:
        found = self._attached.get(session.chat.key.session_id)
        # A chat that was deleted and created again has another session under the same id.
        return found if found and found.session is session else None

    def find(self, session_id: str) -> Attachment[Sink] | None:
        """The attachment under this id, whichever session it is of."""
        return self._attached.get(session_id)

    def all(self) -> list[Attachment[Sink]]:
        return list(self._attached.values())

    def attach(self, session: Session, epoch: str, cursor: int) -> Attachment[Sink]:
        """Follow a chat from `cursor` on. Held from the start: release it once the answer is queued."""
        self.detach(session.chat.key.session_id)
        sink = self._sink_of(session, epoch)
        attachment = Attachment(session, cursor, sink, self._wire, self.delta_ms)
        # Before the task starts: its first event must not overtake the answer to `chat/open`.
        attachment.hold()
        self._attached[session.chat.key.session_id] = attachment
        self._tasks.start_soon(attachment.run)
        return attachment

    def detach_all(self) -> None:
        """Detach from all chats; the client must open them again."""
        for session_id in list(self._attached):
            self.detach(session_id)

    def detach(self, session_id: str) -> bool:
        found = self._attached.pop(session_id, None)
        if found:
            found.detach()
        return found is not None
