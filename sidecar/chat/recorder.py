"""Puts one chat's events in order, commits them, and only then publishes them.

Deltas are buffered and join into runs while a commit is under way, so the disk sets the pace and no commit
carries one word alone. Everything else is awaited until it is on disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..model.events import MAX_RUN_BYTES, NewEvent, StoredEvent
from ..model.failures import Failure, StorageFailed
from ..store.store import Store
from .feed import Feed

logger = logging.getLogger(__name__)

MAX_PENDING_BYTES = 1024 * 1024
"""How far a model may run ahead of the disk before it is made to wait."""


HOLD_S = 0.05
"""A model that answers sooner is on this machine; nobody sees the difference."""

MEMORY_S = 0.1
"""How soon what there was no memory for is tried again."""


class Recorder:
    """`last_seq` is committed; `generation` is the lease that this process holds, or None."""

    def __init__(
        self, store: Store, chat: int, last_seq: int, tasks: TaskGroup, client: Callable[[], str]
    ) -> None:
        self._store = store
        self._chat = chat
        self._tasks = tasks
        self._client = client
        self.feed = Feed(last_seq)
        self.last_seq = last_seq
        self.generation: int | None = None
        self._batch = _Batch()
        self._flushing = False
        self._failure: Failure | None = None
        self._unkept: list[NewEvent] = []

    async def record(self, *events: NewEvent, release: bool = False, last: bool = False) -> list[StoredEvent]:
        """Commit these events, after everything that was buffered before them, and return them as stored.

        `last` ones end something, and may use what is kept back for that on a full disk.
        """
        batch = self._batch
        start = len(batch.entries)
        batch.entries += events
        batch.told.update(range(start, len(batch.entries)))
        batch.release = release
        batch.last = batch.last or last
        self._start()
        stored = (await batch.done())[batch.older :]
        return stored[start : start + len(events)]

    async def buffer(self, event: NewEvent) -> None:
        """Commit this event soon, together with what follows it."""
        self.check()
        self._batch.entries.append(event)
        self._batch.buffered = True
        self._start()

    async def hold(self, event: NewEvent) -> None:
        """Commit this event with what follows it, or alone when nothing follows soon.

        For what is told just before the model is asked: a commit of its own would delay the model's first word.
        """
        self.check()
        self._batch.entries.append(event)
        self._batch.buffered = True
        self._tasks.start_soon(self._start_later)

    async def delta(self, type: str, turn_id: str, item_id: str, text: str) -> None:
        """Append to an item's text. Returns at once unless the disk is far behind."""
        self.check()
        batch = self._batch
        size = len(text.encode())
        run = batch.entries[-1] if batch.entries else None
        if not (isinstance(run, _Run) and run.takes(type, item_id, size)):
            run = _Run(type, turn_id, item_id)
            batch.entries.append(run)
        run.add(text, size)
        batch.size += size
        batch.buffered = True
        self._start()
        if batch.size > MAX_PENDING_BYTES:
            await batch.settled.wait()

    async def settle(self) -> None:
        """Wait until nothing is buffered. Failures of buffered events have been told to whoever buffers next."""
        while self._flushing or self._batch.entries:
            await self._batch.settled.wait()

    @property
    def busy(self) -> bool:
        """Whether a commit is under way or waits."""
        return self._flushing

    def forget_failure(self) -> None:
        """The turn whose events could not be kept has been told; they are tried again with the next commit."""
        self._failure = None

    def forget_unkept(self) -> None:
        """The chat is another process's now: what could not be kept here is of no use to it."""
        self._unkept = []

    def moved(self, last_seq: int) -> None:
        """Another process has written while this one did not hold the lease."""
        self.last_seq = last_seq
        self.feed.moved(last_seq)

    def check(self) -> None:
        """Raise what kept earlier events of the turn from being kept: nothing more is taken then."""
        if self._failure:
            raise self._failure

    def _start(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._tasks.start_soon(self._flush)

    async def _start_later(self) -> None:
        await anyio.sleep(HOLD_S)
        if self._batch.entries:
            self._start()

    async def _flush(self) -> None:
        with anyio.CancelScope(shield=True):
            while self._batch.entries:
                batch, self._batch = self._batch, _Batch()
                await self._commit(batch)
            self._flushing = False

    async def _commit(self, batch: _Batch) -> None:
        unkept, self._unkept = self._unkept, []
        batch.older = len(unkept)
        made = await _made(batch)
        events = unkept + made
        try:
            appended = await self._store.append(
                self._chat,
                self.last_seq,
                self.generation,
                events,
                client=self._client(),
                release=batch.release,
                last=batch.last,
            )
        except StorageFailed as failure:
            # Deltas that the disk did not take are part of their item's text: they go with what follows them.
            self._unkept = unkept + [event for place, event in enumerate(made) if place not in batch.told]
            self._fail(batch, failure)
        except Failure as failure:
            self._fail(batch, failure)
        except Exception:
            # A bug in what these events mean must not end the other chats.
            logger.exception("events could not be kept")
            self._fail(
                batch, Failure("internal_error", "The events could not be kept; the sidecar's log says why")
            )
        else:
            self.generation = None if batch.release else appended.generation
            if appended.events:
                self.last_seq = appended.events[-1].seq
            batch.stored = appended.events
            self.feed.publish(appended.events)
        batch.settled.set()

    def _fail(self, batch: _Batch, failure: Failure) -> None:
        batch.failure = failure
        if batch.buffered:
            self._failure = failure


async def _made(batch: _Batch) -> list[NewEvent]:
    """The batch as events; while there is no memory for them, they wait."""
    while True:
        try:
            return [entry.event() if isinstance(entry, _Run) else entry for entry in batch.entries]
        except MemoryError:
            await anyio.sleep(MEMORY_S)


class _Run(msgspec.Struct):
    """A run of deltas of one item, growing until it is committed."""

    type: str
    turn_id: str
    item_id: str
    texts: list[str] = []
    size: int = 0

    def takes(self, type: str, item_id: str, size: int) -> bool:
        return self.item_id == item_id and self.type == type and self.size + size <= MAX_RUN_BYTES

    def add(self, text: str, size: int) -> None:
        self.texts.append(text)
        self.size += size

    def event(self) -> NewEvent:
        data = {"itemId": self.item_id, "text": "".join(self.texts)}
        return NewEvent(self.type, data, self.turn_id, tuple(map(len, self.texts)))


class _Batch(msgspec.Struct):
    """What the next commit will carry."""

    entries: list[NewEvent | _Run] = []
    size: int = 0
    buffered: bool = False
    release: bool = False
    last: bool = False
    told: set[int] = set()
    """The entries whose callers wait, and hear when they cannot be kept."""
    older: int = 0
    """How many events of an earlier commit that failed go before these."""
    stored: list[StoredEvent] = []
    failure: Failure | None = None
    settled: anyio.Event = msgspec.field(default_factory=anyio.Event)

    async def done(self) -> list[StoredEvent]:
        await self.settled.wait()
        if self.failure:
            raise self.failure
        return self.stored
