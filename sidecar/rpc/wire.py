"""The event loop's side of the pipes: messages are sent without waiting, events wait until the client reads."""

from __future__ import annotations

import asyncio

import anyio

from .stdio import StdoutWriter


class MessageWriter:
    def __init__(self, stdout_writer: StdoutWriter) -> None:
        self._stdout_writer = stdout_writer
        self._loop = asyncio.get_running_loop()
        self._space_event: anyio.Event | None = None

    def send(self, message: bytes) -> None:
        self._stdout_writer.send(message)

    async def wait_for_space(self) -> None:
        """Wait until the client has read most of what was sent; then events may follow."""
        if self._stdout_writer.has_space:
            return
        if self._space_event is None:
            self._space_event = anyio.Event()
            self._stdout_writer.call_when_space(self._notify)
        await self._space_event.wait()

    def _notify(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._set_space)
        except RuntimeError:  # the loop has ended while the writer was still active
            return

    def _set_space(self) -> None:
        if self._space_event is not None:
            self._space_event.set()
            self._space_event = None
