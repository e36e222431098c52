"""A chat's committed events as they become known, for whoever follows them.

A follower is a cursor: it takes what it has not seen from the last few events kept here, and from the journal
when it has fallen behind. So a slow one costs no memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import anyio

from ..model.events import StoredEvent, after

RECENT_BYTES = 256 * 1024
"""What one chat keeps for followers that are nearly up to date; the journal has everything."""

EVENT_BYTES = 300
"""What an event takes beside its data."""


class Feed:
    def __init__(self, last_seq: int) -> None:
        self.last_seq = last_seq
        self._recent: deque[StoredEvent] = deque()
        self._bytes = 0
        self._changed = anyio.Event()
        self.closed = False

    def publish(self, events: Sequence[StoredEvent]) -> None:
        """These events were committed by this process."""
        for event in events:
            self._recent.append(event)
            self._bytes += len(event.data) + EVENT_BYTES
        while self._bytes > RECENT_BYTES:
            self._bytes -= len(self._recent.popleft().data) + EVENT_BYTES
        if events:
            self._advance(events[-1].seq)

    def moved(self, last_seq: int) -> None:
        """The journal reaches further than was known: another process has written."""
        if last_seq != self.last_seq:
            self.rest()
            self._advance(last_seq)

    def rest(self) -> None:
        """Nobody follows for now: keep nothing."""
        self._recent.clear()
        self._bytes = 0

    def close(self) -> None:
        """The chat is gone: nothing follows."""
        self.closed = True
        self._changed.set()

    async def wait(self, seq: int) -> None:
        """Until there is something behind `seq`, or the feed is closed."""
        while self.last_seq <= seq and not self.closed:
            await self._changed.wait()

    def recent(self, seq: int) -> list[StoredEvent] | None:
        """What lies behind `seq`, or None when only the journal knows."""
        if not self._recent or self._recent[0].first > seq + 1 or self.last_seq != self._recent[-1].seq:
            return None
        return [rest for event in self._recent if (rest := after(event, seq)) is not None]

    def _advance(self, last_seq: int) -> None:
        self.last_seq = last_seq
        self._changed.set()
        self._changed = anyio.Event()
