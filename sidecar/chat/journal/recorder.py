"""Orders one chat's events, commits them, and only then publishes them.

Deltas are buffered and join into runs while a commit is in progress, so that the disk sets the pace and no commit
carries a single token. Every other event is awaited until it is on disk. What the model was sent is no event: it is
written after the commit of the event that describes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
import msgspec
from anyio.abc import TaskGroup
from sidecar_protocol.limits import MAX_DELTA_BYTES

from ...model.events import NewEvent, StoredEvent
from ...model.failures import Failure, StorageFailed
from ...model.sent import SentRequest
from ...store.store import Store
from .feed import Feed

logger = logging.getLogger(__name__)

MAX_PENDING_BYTES = 1024 * 1024
"""How far a model may run ahead of the disk before it has to wait."""


DEFER_S = 0.05
"""A model that answers sooner is on this machine, where the delay is not noticeable."""

MEMORY_RETRY_S = 0.1
"""How soon a batch is tried again that there was no memory for."""


class Recorder:
    """`last_seq` is committed; `generation` is that of the lease that this process holds, or None."""

    def __init__(
        self, store: Store, chat: int, epoch: str, last_seq: int, tasks: TaskGroup, client: Callable[[], str]
    ) -> None:
        self._store = store
        self._chat = chat
        self._epoch = epoch
        self._tasks = tasks
        self._client = client
        self.feed = Feed(last_seq)
        self.last_seq = last_seq
        self.generation: int | None = None
        self._batch = _Batch()
        self._committing: _Batch | None = None
        self._flushing = False
        self._failure: Failure | None = None
        self._unwritten: list[NewEvent] = []
        self._sent: list[SentRequest] = []
        """Requests whose events are committed, and whose texts are not stored yet."""
        self._putting_sent = anyio.Lock()

    async def record(
        self, *events: NewEvent, release: bool = False, last: bool = False, yields: bool = False
    ) -> list[StoredEvent]:
        """Commit these events, after everything that was buffered before them, and return them as stored.

        `last` events end something, and may use the reserve of a full disk. So they share no commit with other
        awaited events, which would use the reserve too. `yields` marks events of a long operation.
        """
        # A loop: after the wait, another caller may have filled the next batch with the other kind.
        while self._batch.awaited and self._batch.last != last:
            await self._batch.committed.wait()
        batch = self._batch
        start = len(batch.entries)
        batch.entries += events
        # Those that are awaited are not retried after a failure: their caller gets it and decides.
        batch.awaited.update(range(start, len(batch.entries)))
        batch.release = release
        batch.last = last
        batch.yields = yields
        self._start()
        # Entries map one to one to stored events, in order: a run of deltas is one event. The `retried` events of a
        # failed commit come before them.
        stored = (await batch.done())[batch.retried :]
        return stored[start : start + len(events)]

    async def buffer(self, event: NewEvent) -> None:
        """Commit this event soon, together with those that follow."""
        self.raise_failure()
        self._batch.entries.append(event)
        self._batch.buffered = True
        self._start()

    async def defer(self, event: NewEvent, sent: SentRequest | None = None) -> None:
        """Commit this event with those that follow, or alone when none follows soon. `sent` is written after it.

        For events just before a request to the model: a commit of their own would delay the first token.
        """
        self.raise_failure()
        self._batch.entries.append(event)
        if sent is not None:
            self._batch.sent.append(sent)
        self._batch.buffered = True
        self._tasks.start_soon(self._start_later)

    async def delta(self, type: str, turn_id: str, item_id: str, text: str) -> None:
        """Append to an item's text. Returns at once unless the disk is far behind."""
        self.raise_failure()
        batch = self._batch
        size = len(text.encode())
        run = batch.entries[-1] if batch.entries else None
        if not (isinstance(run, _DeltaRun) and run.has_space_for(type, item_id, size)):
            run = _DeltaRun(type, turn_id, item_id)
            batch.entries.append(run)
        run.add(text, size)
        batch.size += size
        batch.buffered = True
        self._start()
        # The only place where a fast model waits for a slow disk.
        if batch.size > MAX_PENDING_BYTES:
            await batch.committed.wait()

    async def wait_flushed(self) -> None:
        """Wait until nothing is buffered. A failure of buffered events is raised by the next call that buffers."""
        while self._flushing or self._batch.entries:
            # The batch that is being committed is not the one that collects: nothing may follow in that one.
            await (self._committing or self._batch).committed.wait()
        await self._put_sent()

    @property
    def busy(self) -> bool:
        """Whether a commit is in progress or waiting."""
        return self._flushing

    def forget_failure(self) -> None:
        """Forget the failure, once the turn has reported it. The unwritten events are part of the next commit."""
        self._failure = None

    def drop_unwritten(self) -> None:
        """Drop the events that could not be committed, because another process owns the chat now."""
        self._unwritten = []

    def catch_up(self, last_seq: int) -> None:
        """Move on to `last_seq`, because another process has written while this one did not hold the lease."""
        self.last_seq = last_seq
        self.feed.catch_up(last_seq)

    def raise_failure(self) -> None:
        """Raise the failure of earlier events of the turn: nothing more is accepted after it."""
        if self._failure:
            raise self._failure

    def _start(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._tasks.start_soon(self._flush)

    async def _start_later(self) -> None:
        await anyio.sleep(DEFER_S)
        if self._batch.entries:
            self._start()

    async def _flush(self) -> None:
        with anyio.CancelScope(shield=True):
            # Shielded: a commit that is cancelled half way would leave its callers without an answer.
            # The flag is cleared with no await after this condition: an event that arrives later starts a new
            # flush.
            while self._batch.entries:
                batch, self._batch = self._batch, _Batch()
                self._committing = batch
                await self._commit(batch)
                if batch.sent and batch.failure is None:
                    self._sent += batch.sent
                    self._tasks.start_soon(self._put_sent_later)
            self._committing = None
            self._flushing = False

    async def _commit(self, batch: _Batch) -> None:
        unwritten, self._unwritten = self._unwritten, []
        batch.retried = len(unwritten)
        new_events = await _batch_events(batch)
        events = unwritten + new_events
        try:
            appended = await self._store.journal.append(
                self._chat,
                self.last_seq,
                self.generation,
                events,
                client=self._client(),
                release=batch.release,
                last=batch.last,
                yields=batch.yields,
            )
        except StorageFailed as failure:
            # Deltas that were not committed are part of their item's text, so they go into the next commit.
            self._unwritten = unwritten + [
                event for position, event in enumerate(new_events) if position not in batch.awaited
            ]
            self._fail(batch, failure)
        except Failure as failure:
            self._fail(batch, failure)
        except Exception:
            # A bug in the handling of these events must not end the other chats.
            logger.exception("events could not be stored")
            self._fail(
                batch, Failure("internal_error", "The events could not be stored; the sidecar's log says why")
            )
        else:
            self.generation = None if batch.release else appended.generation
            if appended.events:
                self.last_seq = appended.events[-1].seq
            batch.stored = appended.events
            # Only after the commit: what a client has seen is never lost.
            self.feed.publish(appended.events)
        # After every outcome, or callers would wait forever.
        batch.committed.set()

    async def _put_sent_later(self) -> None:
        """Store what the model was sent when the events of the same commit, maybe a first token, are on their way."""
        try:
            await anyio.sleep(DEFER_S)
        finally:
            with anyio.CancelScope(shield=True):
                await self._put_sent()

    async def _put_sent(self) -> None:
        async with self._putting_sent:
            waiting, self._sent = self._sent, []
            for sent in waiting:
                try:
                    await self._store.sent_requests.put(self._chat, self._epoch, sent)
                except Failure as failure:
                    # It is no part of the history, so the chat goes on without it.
                    error = {"error": str(failure)}
                    logger.warning("what the model was sent could not be stored", extra=error)

    def _fail(self, batch: _Batch, failure: Failure) -> None:
        batch.failure = failure
        if batch.buffered:
            self._failure = failure


async def _batch_events(batch: _Batch) -> list[NewEvent]:
    """The batch as events; retries while there is no memory for them."""
    while True:
        try:
            return [entry.event() if isinstance(entry, _DeltaRun) else entry for entry in batch.entries]
        except MemoryError:
            await anyio.sleep(MEMORY_RETRY_S)


class _DeltaRun(msgspec.Struct):
    """A run of deltas of one item, growing until it is committed."""

    type: str
    turn_id: str
    item_id: str
    texts: list[str] = []
    size: int = 0

    def has_space_for(self, type: str, item_id: str, size: int) -> bool:
        return self.item_id == item_id and self.type == type and self.size + size <= MAX_DELTA_BYTES

    def add(self, text: str, size: int) -> None:
        self.texts.append(text)
        self.size += size

    def event(self) -> NewEvent:
        data = {"itemId": self.item_id, "text": "".join(self.texts)}
        return NewEvent(self.type, data, self.turn_id, tuple(map(len, self.texts)))


class _Batch(msgspec.Struct):
    """What the next commit will contain."""

    entries: list[NewEvent | _DeltaRun] = []
    sent: list[SentRequest] = []
    size: int = 0
    buffered: bool = False
    release: bool = False
    last: bool = False
    yields: bool = False
    awaited: set[int] = set()
    """Indices of the entries whose callers wait, and get the failure when the commit fails."""
    retried: int = 0
    """How many events of an earlier, failed commit come before these."""
    stored: list[StoredEvent] = []
    failure: Failure | None = None
    committed: anyio.Event = msgspec.field(default_factory=anyio.Event)

    async def done(self) -> list[StoredEvent]:
        await self.committed.wait()
        if self.failure:
            raise self.failure
        return self.stored
