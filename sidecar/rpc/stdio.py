"""The two pipes of the process, each with a thread of its own and a private, blocking descriptor.

Standard library only: `server/bootstrap` starts it before anything else is imported. It moves whole frames and does
not know their content. Reading never waits for writing, except when far too much is unwritten.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from sidecar_protocol.framing import Deframer, Frame, encode
from sidecar_protocol.limits import MAX_FRAME_BYTES

READ_BYTES = 256 * 1024
"""More than any pipe holds, so that one read empties it."""

MAX_UNWRITTEN_BYTES = 16 * 1024 * 1024
"""Above this the client is not reading its replies, so its next requests must wait."""

HIGH_WATER_BYTES = 1024 * 1024
"""Above this, events wait in the journal instead of in memory."""

MEMORY_IS_SHORT_BYTES = 4 * 1024
"""The size of a read when there is no memory for more."""

POLL_MS = 50
"""How often a reader that must not read checks whether the other end was closed, or memory is available again."""


def take_over_stdio() -> tuple[int, int]:
    """Take private descriptors for stdin and stdout; what prints to stdout from now on goes to stderr.

    A missing descriptor is filled with the null device first: a database must never get descriptor 0, 1 or 2.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # Private copies first: from here on `print` in any library, or a child that inherits 1, cannot break
    # the frames.
    source, target = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    # A library or child that reads stdin gets the end of input instead of the client's frames.
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return source, target


class StdoutWriter:
    """Writes frames in the order in which they are sent. The only writer of stdout."""

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._on_broken = on_broken
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._state = threading.Condition()
        self._broken = False
        self._on_space: Callable[[], None] | None = None
        self.framing = "lines"

    def start(self) -> None:
        threading.Thread(target=self._write_forever, name="stdout", daemon=True).start()

    def send(self, message: bytes) -> None:
        """Queue one message; never blocks."""
        frame = encode(message, self.framing)
        with self._state:
            if not self._broken:
                # Counted under the same lock: the writer would otherwise subtract first, and `unwritten` be negative.
                self._frames.append(frame)
                self._size += len(frame)
                self._state.notify_all()

    @property
    def unwritten(self) -> int:
        return self._size

    @property
    def has_space(self) -> bool:
        return self._size <= HIGH_WATER_BYTES or self._broken

    @property
    def broken(self) -> bool:
        return self._broken

    def call_when_space(self, action: Callable[[], None]) -> None:
        """Call `action` once, from another thread, when few bytes are unwritten again."""
        with self._state:
            # Under the lock: between a check and the assignment the writer could finish, and nobody would call
            # `action`.
            if not self.has_space:
                self._on_space = action
                return
        action()

    def drain(self, timeout: float) -> bool:
        """Wait until everything is written; False on timeout."""
        with self._state:
            return self._state.wait_for(lambda: not self._size or self._broken, timeout)

    def _write_forever(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._frames)
                data = self._take_pending()
            if not self._write(data):
                self._mark_broken()
                return

    def _take_pending(self) -> bytes:
        try:
            data = b"".join(self._frames)
        except MemoryError:
            # Too little memory to join them: one frame at a time needs no copy.
            return self._frames.popleft()
        self._frames.clear()
        return data

    def _write(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                written = os.write(self._fd, view)
            except BlockingIOError:
                # The other end may have set the shared pipe to non-blocking mode.
                select.select([], [self._fd], [])
                continue
            except OSError:
                return False
            view = view[written:]
            self._count_written(written)
        return True

    def _count_written(self, count: int) -> None:
        with self._state:
            self._size -= count
            # Half the high-water mark (hysteresis): at the mark itself, every write would wake the sender for one
            # event.
            action = self._on_space if self._size <= HIGH_WATER_BYTES // 2 else None
            if action:
                self._on_space = None
            self._state.notify_all()
        if action:
            action()

    def _mark_broken(self) -> None:
        with self._state:
            self._broken = True
            self._frames.clear()
            self._size = 0
            action, self._on_space = self._on_space, None
            self._state.notify_all()
        if action:
            action()
        self._on_broken()


class StdinReader:
    """Reads frames and passes them on from its own thread; `on_end` is called once, after the last."""

    def __init__(
        self,
        fd: int,
        framing: str,
        stdout_writer: StdoutWriter,
        on_frames: Callable[[Sequence[Frame]], None],
        on_end: Callable[[], None],
    ) -> None:
        self._fd = fd
        self._stdout_writer = stdout_writer
        self._on_frames = on_frames
        self._on_end = on_end
        self._deframer = Deframer(framing, MAX_FRAME_BYTES)

    def start(self) -> None:
        threading.Thread(target=self._read_forever, name="stdin", daemon=True).start()

    def _read_forever(self) -> None:
        try:
            self._read_to_the_end()
        finally:  # without a reader the process would run on and receive nothing
            self._on_end()

    def _read_to_the_end(self) -> None:
        while self._may_read() and (data := self._read()):
            frames = self._deframer.feed(data)
            if self._deframer.framing != "auto":
                self._stdout_writer.framing = self._deframer.framing
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
            except MemoryError:  # what the client sends stays in the pipe until then
                size = MEMORY_IS_SHORT_BYTES
                time.sleep(POLL_MS / 1000)

    def _may_read(self) -> bool:
        """Wait while too much is unwritten. False when the other end was closed meanwhile."""
        # A client that writes without reading would fill our memory with replies: its pipe fills instead, and
        # it notices.
        while self._stdout_writer.unwritten > MAX_UNWRITTEN_BYTES and not self._stdout_writer.broken:
            if _hung_up(self._fd):
                return False
            self._stdout_writer.drain(POLL_MS / 1000)
        return True


def _hung_up(fd: int) -> bool:
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    # No events requested: POLLHUP and POLLERR are always reported, and waiting input must not count.
    poll.register(fd, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
