"""The keyboard of a conversation: reads keys while a prompt is edited and while an answer streams.

From entry to exit the terminal does not echo and delivers keys at once, so that nothing that is typed garbles the
screen or is lost. Knows no prompt. Not available on Windows, where the console edits lines itself.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO, Any, Literal

from .key_input import Input, KeyDecoder, KeyPress

REST_OF_KEY_SECONDS = 0.05
"""The bytes of an arrow or a function key arrive together; a slow line may split them."""

REST_OF_PASTE_SECONDS = 5.0
"""A terminal sends a paste without pauses; over a slow line there may be some."""

MAX_BYTES = 65536
"""Read at once: a long paste arrives in few pieces."""

Mode = Literal["released", "ahead", "editing"]
"""`ahead`: keys are delivered, Ctrl-C is a signal. `editing`: Ctrl-C is a key. `released`: as before the entry."""


if sys.platform == "win32":

    class Keyboard:
        """Never used."""

        def __init__(self, out: IO[str]) -> None:
            raise NotImplementedError

        def __enter__(self) -> Keyboard:
            return self

        def __exit__(self, *_: object) -> None: ...

        def use(self, mode: Mode) -> None: ...

        @property
        def quiet_seconds(self) -> float:
            return 0.0

        @contextmanager
        def release(self) -> Iterator[None]:
            yield

        def read(self, seconds: float | None) -> list[Input] | None: ...

    def can_edit(out: IO[str]) -> bool:
        """Return whether lines can be edited here key by key."""
        return False

else:
    import select
    import termios

    _PASTES_MARKED, _PASTES_PLAIN = "\x1b[?2004h", "\x1b[?2004l"
    _RESIZED, _RESUMED = b"r", b"c"

    class Keyboard:
        def __init__(self, out: IO[str]) -> None:
            self._terminal = sys.stdin.fileno()
            self._out = out
            self._mode: Mode = "released"
            self._decoder = KeyDecoder()
            self._closed = False
            self._last = -1e9
            self._before: list[Any] = []
            self._handlers: dict[int, Any] = {}

        def __enter__(self) -> Keyboard:
            self._before = termios.tcgetattr(self._terminal)
            self._woken, self._wake = os.pipe()
            for each in (self._woken, self._wake):
                os.set_blocking(each, False)
            handlers = {
                signal.SIGWINCH: self._resize,
                signal.SIGCONT: self._continue,
                signal.SIGTERM: self._terminate,
            }
            self._handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}
            self.use("ahead")
            return self

        def __exit__(self, *_: object) -> None:
            self.use("released")
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            os.close(self._woken)
            os.close(self._wake)

        def use(self, mode: Mode) -> None:
            if mode == self._mode:
                return
            if "released" in (mode, self._mode):
                self._write(_PASTES_PLAIN if mode == "released" else _PASTES_MARKED)
            self._mode = mode
            self._apply()

        @contextmanager
        def release(self) -> Iterator[None]:
            """The terminal as it was, for others who read from it."""
            before = self._mode
            self.use("released")
            try:
                yield
            finally:
                self.use(before)

        @property
        def quiet_seconds(self) -> float:
            """How long nobody has typed."""
            return time.monotonic() - self._last

        def read(self, seconds: float | None) -> list[Input] | None:
            """Return what was typed within this time; empty if nothing was, None once the terminal is closed."""
            if self._closed:
                return None
            found = list(self._arrived(seconds))
            while self._decoder.pending:
                rest = REST_OF_PASTE_SECONDS if self._decoder.pasting else REST_OF_KEY_SECONDS
                more = list(self._arrived(rest))
                found += more
                if not more and not self._progressed:
                    found += self._decoder.flush()
            return None if self._closed and not found else found

        def _arrived(self, seconds: float | None) -> Iterator[Input]:
            self._progressed = False
            ready, _, _ = select.select([self._terminal, self._woken], [], [], seconds)
            if self._woken in ready:
                woken = os.read(self._woken, MAX_BYTES)
                yield KeyPress("resumed" if _RESUMED in woken else "resized")
            if self._terminal in ready:
                try:
                    data = os.read(self._terminal, MAX_BYTES)
                except OSError:
                    data = b""
                self._closed, self._progressed = not data, bool(data)
                self._last = time.monotonic()
                yield from self._decoder.decode(data)

        def _apply(self) -> None:
            changed = [*self._before[:6], list(self._before[6])]
            if self._mode != "released":
                changed[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
                # A signal must not drop what was typed before it.
                changed[3] |= termios.NOFLSH
                changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
            if self._mode == "editing":
                disabled = os.fpathconf(self._terminal, "PC_VDISABLE").to_bytes(1, "big")
                changed[6][termios.VINTR] = changed[6][termios.VQUIT] = disabled
            try:
                termios.tcsetattr(self._terminal, termios.TCSANOW, changed)
            except termios.error:
                self._closed = True

        def _write(self, text: str) -> None:
            try:
                self._out.write(text)
                self._out.flush()
            except OSError:
                self._closed = True

        def _resize(self, number: int, frame: FrameType | None) -> None:
            self._wake_reader(_RESIZED)

        def _continue(self, number: int, frame: FrameType | None) -> None:
            self._apply()
            if self._mode != "released":
                # Past the buffer of the stream, in which the handler may have interrupted a write.
                os.write(self._terminal, _PASTES_MARKED.encode())
            self._wake_reader(_RESUMED)

        def _wake_reader(self, reason: bytes) -> None:
            # Only wakes the reader, which redraws: a handler may run in the middle of a drawing.
            with suppress(BlockingIOError):  # it is awake already
                os.write(self._wake, reason)

        def _terminate(self, number: int, frame: FrameType | None) -> None:
            """Restore the terminal, then end as without this handler."""
            self._mode = "released"
            self._apply()
            os.write(self._terminal, _PASTES_PLAIN.encode())
            signal.signal(number, self._handlers[number])
            os.kill(os.getpid(), number)

    def can_edit(out: IO[str]) -> bool:
        """Return whether lines can be edited here key by key."""
        return sys.stdin is not None and sys.stdin.isatty() and out.isatty()
