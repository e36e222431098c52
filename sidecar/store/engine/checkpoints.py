"""When the write-ahead log is checkpointed: in a pause between commits, and at the latest soon after one."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

from ...model.failures import StorageFailed
from .sqlite import STORAGE_ERRORS

IDLE_S, BUSY_S = 0.4, 0.5
"""A checkpoint runs when no commit came for `IDLE_S`, and at the latest after `BUSY_S`: a streaming turn
commits every few milliseconds."""

MAX_FREE_PAGES = 1024
"""More free pages than this are returned to the disk."""


class CheckpointSchedule:
    """`checkpoint` returns the number of free pages; `shrink` returns them to the disk."""

    def __init__(
        self,
        checkpoint: Callable[[], Awaitable[int]],
        shrink: Callable[[], Awaitable[None]],
        closing: anyio.Event,
    ) -> None:
        self.last_write = time.monotonic()
        self._checkpoint = checkpoint
        self._shrink = shrink
        self._closing = closing
        self._log_grew = anyio.Event()

    def on_commit(self) -> None:
        self.last_write = time.monotonic()
        self._log_grew.set()

    def wake(self) -> None:
        """End the wait for a commit, because the database is closing."""
        self._log_grew.set()

    async def run_forever(self) -> None:
        while not self._closing.is_set():
            await self._log_grew.wait()
            await self._wait_for_pause()
            # Replaced before the checkpoint, so that a commit during it causes another one.
            self._log_grew = anyio.Event()
            with suppress(*STORAGE_ERRORS, StorageFailed):  # the next round tries again
                await self.checkpoint_and_shrink()

    async def checkpoint_and_shrink(self) -> None:
        free = await self._checkpoint()
        if free > MAX_FREE_PAGES and time.monotonic() > self.last_write + IDLE_S:
            await self._shrink()

    async def _wait_for_pause(self) -> None:
        """Wait until no commit came for `IDLE_S`, at most `BUSY_S`."""
        end = time.monotonic() + BUSY_S
        while (
            not self._closing.is_set() and (now := time.monotonic()) < end and now < self.last_write + IDLE_S
        ):
            with anyio.move_on_after(self.last_write + IDLE_S - now):
                await self._closing.wait()
