"""A chat's committed events, for those who follow them.

A follower is a cursor: it takes new events from the last few that are held here, and from the journal when it is
further behind. So a slow follower costs no memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import anyio

from ...model.events import StoredEvent, part_after

RECENT_BYTES = 256 * 1024
"""What one chat holds for followers that are nearly up to date; the journal has everything."""

EVENT_BYTES = 300
"""The overhead of an event besides its data."""


class Feed:
    def __init__(self, last_seq: int) -> None:
        self.last_seq = last_seq
        self._recent: deque[StoredEvent] = deque()
        self._bytes = 0
        self._changed = anyio.Event()
        self.closed = False

    def publish(self, events: Sequence[StoredEvent]) -> None:
        """Add events that this process has committed."""
        for event in events:
            self._recent.append(event)
            self._bytes += len(event.data) + EVENT_BYTES
        while self._bytes > RECENT_BYTES:
            self._bytes -= len(self._recent.popleft().data) + EVENT_BYTES
        if events:
            self._advance(events[-1].seq)

    def catch_up(self, last_seq: int) -> None:
        """Note that the journal is longer than was known: another process has written."""
        if last_seq != self.last_seq:
            self.rest()
            self._advance(last_seq)

    def rest(self) -> None:
        """Drop the recent events while there is no follower."""
        self._recent.clear()
        self._bytes = 0

    def close(self) -> None:
        """Close the feed, because the chat was deleted."""
        self.closed = True
        self._changed.set()

    async def wait(self, seq: int) -> None:
        """Wait until there are events after `seq`, or the feed is closed."""
        while self.last_seq <= seq and not self.closed:
            await self._changed.wait()

    def recent(self, seq: int) -> list[StoredEvent] | None:
        """The events after `seq`, or None when they must be read from the journal."""
        # A run of deltas is one event with several seqs: `first` says whether the gap is closed.
        if not self._recent or self._recent[0].first > seq + 1 or self.last_seq != self._recent[-1].seq:
            return None
        return [rest for event in self._recent if (rest := part_after(event, seq)) is not None]

    def _advance(self, last_seq: int) -> None:
        self.last_seq = last_seq
        self._changed.set()
        # An event cannot be cleared. Those who wait have the old one, and look at `last_seq` again.
        self._changed = anyio.Event()
