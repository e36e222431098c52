"""Long operations in short transactions: how long each may take, and the pauses in which others write. Knows no
table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio
import msgspec

from .database import Database
from .sqlite import Connection

T = TypeVar("T")

SLICE_S = 0.025
"""How long one transaction of a long operation should take. Another chat waits for one of them at each commit, and
commits twice before the first token of an answer is shown."""

PARTS = 4
"""A transaction consists of parts, and ends after the part in which its time is over: a part that takes longer than
expected, such as one in which SQLite merges a full-text table, is not followed by others."""

PAUSE_S, PAUSE_SHARE = 0.008, 0.5
"""The least pause between two of them, and the pause as a share of how long the last one took. Processes that wait for
the database check every `BEGIN_RETRY_S`, so each gets its turn in this gap."""

LEAST_ROWS, MOST_ROWS = 8, 2000
"""The range of rows per part; the time of the last one decides."""


class Pace:
    """How many rows the next part of a long operation changes, by how long the last one took."""

    def __init__(self, least: int = LEAST_ROWS, most: int = MOST_ROWS, seconds: float = SLICE_S) -> None:
        self.most = least
        self._range = (least, most)
        self._seconds = seconds
        self._begun: float | None = None
        self._took = 0.0

    def begin(self) -> None:
        self._begun = time.monotonic()

    def adjust(self) -> None:
        """Set the size of the next part by the time since `begin`."""
        assert self._begun is not None
        self._took = max(time.monotonic() - self._begun, 0.0001)
        # At most double: the last part may have been quick by chance.
        factor = min(2.0, self._seconds / self._took)
        least, most = self._range
        self.most = max(least, min(most, int(self.most * factor)))

    async def rest(self) -> None:
        """Adjust, and pause so that others can write."""
        if self._begun is not None:
            self.adjust()
            await pause_after(self._took)


async def pause_after(took: float) -> None:
    """Pause after a transaction of a long operation that took so long."""
    await anyio.sleep(max(PAUSE_S, took * PAUSE_SHARE))


async def write_slices(
    db: Database, change: Callable[[Connection, int], T | None], *, last: bool = False
) -> list[T]:
    """Run `change` in one short transaction after the other until it returns None; return its results.

    It gets how many rows it may change, and is called several times in a transaction. Others write in between, so it
    must check each time that its rows are still meant.
    """
    # Each slice is a transaction of its own, so a crash between two leaves the work half done: callers mark what they
    # change first, and the next start goes on from the mark.
    pace, results = Pace(seconds=SLICE_S / PARTS), list[T]()
    while True:
        done = await db.write(lambda db: _run_slice(db, change, pace), last=last, yields=True)
        results += done.results
        if done.is_last:
            return results
        await pause_after(done.took)


class _Slice(msgspec.Struct, Generic[T]):
    """What one transaction of a long operation did; `is_last` when nothing is left."""

    results: list[T]
    is_last: bool
    took: float


def _run_slice(db: Connection, change: Callable[[Connection, int], T | None], pace: Pace) -> _Slice[T]:
    """Run `change`, with the number of rows that it may change, until it returns None or the time is over."""
    results, start = list[T](), time.monotonic()
    while time.monotonic() < start + SLICE_S:
        pace.begin()
        result = change(db, pace.most)
        if result is None:
            return _Slice(results, True, time.monotonic() - start)
        results.append(result)
        pace.adjust()
    return _Slice(results, False, time.monotonic() - start)
