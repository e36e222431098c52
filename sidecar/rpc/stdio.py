"""The two pipes of the process, each on a thread of its own with a private, blocking descriptor.

Standard library only: the door starts it before anything else is imported. It moves whole frames and knows
nothing of what they say. Reading never waits for writing, save when far too much is unwritten.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from sidecar_protocol.framing import MAX_FRAME_BYTES, Deframer, Frame, encode

READ_BYTES = 256 * 1024
"""More than any pipe holds, so that one read empties it."""

MAX_UNWRITTEN_BYTES = 16 * 1024 * 1024
"""Over this the client is not reading its replies, and asking for more of them must wait."""

HIGH_WATER_BYTES = 1024 * 1024
"""Over this events wait in the journal instead of in memory."""

MEMORY_IS_SHORT_BYTES = 4 * 1024
"""What is read at a time when there is no memory for more."""

POLL_MS = 50
"""How often a reader that must not read looks whether the other end has gone, or whether there is memory again."""


def take_over_stdio() -> tuple[int, int]:
    """Private descriptors for stdin and stdout; whatever prints to stdout from now on reaches stderr instead.

    A missing descriptor is filled with the null device first: a database must never be opened as number 0, 1 or 2.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    source, target = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return source, target


class Outlet:
    """Writes frames in the order in which they are sent. The only writer of stdout."""

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._on_broken = on_broken
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._state = threading.Condition()
        self._broken = False
        self._on_room: Callable[[], None] | None = None
        self.framing = "lines"

    def start(self) -> None:
        threading.Thread(target=self._write_forever, name="stdout", daemon=True).start()

    def send(self, message: bytes) -> None:
        """Queue one message; never blocks."""
        frame = encode(message, self.framing)
        with self._state:
            if not self._broken:
                self._frames.append(frame)
                self._size += len(frame)
                self._state.notify_all()

    @property
    def unwritten(self) -> int:
        return self._size

    @property
    def has_room(self) -> bool:
        return self._size <= HIGH_WATER_BYTES or self._broken

    @property
    def broken(self) -> bool:
        return self._broken

    def when_room(self, action: Callable[[], None]) -> None:
        """Call `action` once, from another thread, when the unwritten bytes are few again."""
        with self._state:
            if not self.has_room:
                self._on_room = action
                return
        action()

    def drain(self, timeout: float) -> bool:
        """Wait until everything is written; False when that takes too long."""
        with self._state:
            return self._state.wait_for(lambda: not self._size or self._broken, timeout)

    def _write_forever(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._frames)
                data = self._take()
            if not self._write(data):
                self._break()
                return

    def _take(self) -> bytes:
        try:
            data = b"".join(self._frames)
        except MemoryError:
            return self._frames.popleft()
        self._frames.clear()
        return data

    def _write(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                written = os.write(self._fd, view)
            except BlockingIOError:
                select.select([], [self._fd], [])
                continue
            except OSError:
                return False
            view = view[written:]
            self._wrote(written)
        return True

    def _wrote(self, count: int) -> None:
        with self._state:
            self._size -= count
            action = self._on_room if self._size <= HIGH_WATER_BYTES // 2 else None
            if action:
                self._on_room = None
            self._state.notify_all()
        if action:
            action()

    def _break(self) -> None:
        with self._state:
            self._broken = True
            self._frames.clear()
            self._size = 0
            action, self._on_room = self._on_room, None
            self._state.notify_all()
        if action:
            action()
        self._on_broken()


class Inlet:
    """Reads frames and hands them on from its own thread; `on_end` is called once, after the last."""

    def __init__(
        self,
        fd: int,
        framing: str,
        outlet: Outlet,
        on_frames: Callable[[Sequence[Frame]], None],
        on_end: Callable[[], None],
    ) -> None:
        self._fd = fd
        self._outlet = outlet
        self._on_frames = on_frames
        self._on_end = on_end
        self._deframer = Deframer(framing, MAX_FRAME_BYTES)

    def start(self) -> None:
        threading.Thread(target=self._read_forever, name="stdin", daemon=True).start()

    def _read_forever(self) -> None:
        try:
            self._read_to_the_end()
        finally:  # one that can read no more must not leave a process behind that hears nothing
            self._on_end()

    def _read_to_the_end(self) -> None:
        while self._may_read() and (data := self._read()):
            frames = self._deframer.feed(data)
            if self._deframer.framing != "auto":
                self._outlet.framing = self._deframer.framing
            if frames:
                self._on_frames(frames)
        if frames := self._deframer.end():
            self._on_frames(frames)

    def _read(self) -> bytes:
        size = READ_BYTES
        while True:
            try:
                return os.read(self._fd, size)
            except BlockingIOError:
                select.select([self._fd], [], [])
            except OSError:
                return b""
            except MemoryError:  # what the client sends stays in the pipe meanwhile
                size = MEMORY_IS_SHORT_BYTES
                time.sleep(POLL_MS / 1000)

    def _may_read(self) -> bool:
        """True when a frame may be read; False when the other end has gone while we had to wait."""
        while self._outlet.unwritten > MAX_UNWRITTEN_BYTES and not self._outlet.broken:
            if _hung_up(self._fd):
                return False
            self._outlet.drain(POLL_MS / 1000)
        return True


def _hung_up(fd: int) -> bool:
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(fd, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
