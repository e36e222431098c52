"""The loop's side of the pipes: messages go out without waiting, events wait for room."""

from __future__ import annotations

import asyncio

import anyio

from .stdio import Outlet


class Wire:
    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._loop = asyncio.get_running_loop()
        self._room: anyio.Event | None = None

    def send(self, message: bytes) -> None:
        self._outlet.send(message)

    async def room(self) -> None:
        """Wait until the client has read what was sent; then events may follow."""
        if self._outlet.has_room:
            return
        if self._room is None:
            self._room = anyio.Event()
            self._outlet.when_room(self._notify)
        await self._room.wait()

    def _notify(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._make_room)
        except RuntimeError:  # the loop has ended while the writer was still at work
            return

    def _make_room(self) -> None:
        if self._room is not None:
            self._room.set()
            self._room = None
