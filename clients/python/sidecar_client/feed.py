"""The order of a chat's events: nothing lost, nothing doubled, whatever arrives. Knows no prompt, no process.

A `Feed` takes the events of one chat as they arrive; each `Subscription` has its own cursor and applies
the contract's rule: drop if seq <= last; apply if from = last + 1; otherwise read the journal. The journal is
also the buffer: a subscriber that falls behind drops what it cannot hold and reads it later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Self
from weakref import WeakSet

import anyio

from .errors import SidecarError
from .events import Event

MAX_QUEUED = 512
"""Events that wait in a subscription; a coalesced one is up to 64 KiB, so some 32 MiB at worst."""

MAX_EARLY = 256
"""Events kept while the result of `chat/open` is on its way; older ones come from the journal."""

Read = Callable[[str, int], Awaitable[list[Event]]]
"""The stored events of the chat after `(epoch, seq)`, at least one if there is any."""


class Feed:
    """What has arrived of one chat. `epoch` is empty until the chat is open."""

    def __init__(self, read: Read) -> None:
        self.epoch = ""
        self.last = 0
        self.read = read
        self.watch: Callable[[Event], None] | None = None
        self._early: deque[Event] = deque(maxlen=MAX_EARLY)
        # Weak, so that a loop over a chat's events that is simply left leaves nothing behind.
        self._subscriptions: WeakSet[Subscription] = WeakSet()

    def open(self, epoch: str, seq: int) -> None:
        """The chat stands at `seq`; what arrived before this was known counts from here on."""
        self.epoch, self.last = epoch, seq
        early, self._early = self._early, deque(maxlen=MAX_EARLY)
        for event in early:
            self.receive(event)

    def receive(self, event: Event) -> None:
        if event.epoch != self.epoch:
            self._early.append(event)
        elif event.seq > self.last:
            self.last = event.seq
            if self.watch is not None:
                self.watch(event)
            for subscription in self._subscriptions:
                subscription.push(event)

    def catch_up(self, seq: int) -> None:
        """The journal is known to reach to `seq`, though no event said so."""
        self.last = max(self.last, seq)
        for subscription in self._subscriptions:
            subscription.reach(seq)

    def fail(self, error: Exception) -> None:
        """Whoever follows gets `error` after what has arrived."""
        for subscription in self._subscriptions:
            subscription.fail(error)
        self._subscriptions.clear()

    def subscribe(self, after: int | None = None) -> Subscription:
        """Follow from now on, or from an earlier seq."""
        subscription = Subscription(self, self.last if after is None else after)
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)


class Subscription:
    """The events of a chat in order, from a cursor on. An async iterator that ends only with the chat."""

    def __init__(self, feed: Feed, after: int) -> None:
        self.last = after
        self._feed = feed
        self.epoch = feed.epoch
        self._high = feed.last
        self._queue: deque[Event] = deque()
        self._failure: Exception | None = None
        self._news = anyio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            while self._queue:
                event = self._queue.popleft()
                if event.seq <= self.last:
                    continue
                if event.first == self.last + 1:
                    self.last = event.seq
                    return event
                self._queue.appendleft(event)
                await self._read_journal()
            await self._await_news()

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        self._feed.unsubscribe(self)

    def push(self, event: Event) -> None:
        if len(self._queue) < MAX_QUEUED:
            self._queue.append(event)
        self.reach(event.seq)

    def reach(self, seq: int) -> None:
        self._high = max(self._high, seq)
        self._news.set()

    def fail(self, error: Exception) -> None:
        self._failure = error
        self._news.set()

    def rewind(self, seq: int) -> None:
        """Go back to `seq`: what followed it comes (again)."""
        self.last = min(self.last, seq)

    async def _await_news(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._high > self.last:
            await self._read_journal()
        else:
            self._news = anyio.Event()
            await self._news.wait()

    async def _read_journal(self) -> None:
        page = await self._feed.read(self.epoch, self.last)
        if not page or page[0].first != self.last + 1:
            raise SidecarError(
                f"The journal does not go on after {self.last}, though {self._high} was announced"
            )
        self._queue.extendleft(reversed(page))
