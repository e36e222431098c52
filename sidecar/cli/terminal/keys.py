"""Read keys and lines from a terminal with a wait that can be ended. Knows no question and prints nothing.

Python's `input` cannot be cancelled, and loses a Ctrl-C that comes between its prompt and its wait. Here every wait
polls a few times per second, and Ctrl-C is a key like any other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_SECONDS = 0.1
"""How soon a wait notices that it is over."""

REST_OF_KEY_SECONDS = 0.05
"""The bytes of an arrow or a function key arrive together; a slow line may split them."""

MAX_BYTES = 4096
"""More than a terminal delivers at once: the limit of a line in canonical mode."""

INTERRUPT = "\x03"

IsOver = Callable[[], bool]


@contextmanager
def single_keys() -> Iterator[Callable[[IsOver], str | None]]:
    """Yield a function that waits for the next key. Input from before is dropped: no answer is given ahead.

    It returns INTERRUPT for Ctrl-C and for a closed terminal, and None when it is `over`. Pasted text, arrows and
    function keys count as no key: an empty text.
    """

    def key(over: IsOver) -> str | None:
        while not over():
            typed = _read_keys()
            if typed is not None:
                gone = not typed or INTERRUPT in typed
                return INTERRUPT if gone else typed if len(typed) == 1 else ""
        return None

    with _without_echo():
        yield key


def read_line(over: IsOver) -> str | None:
    """Read a line with the terminal's own editing; None when it is `over` before its end.

    Ctrl-C is a signal meanwhile; its handler must make it `over`.
    """
    while not over():
        typed = _typed_line()
        if typed is not None:
            return typed.rstrip("\r\n")
    forget_typed()
    return None


if sys.platform == "win32":
    import msvcrt
    import time

    @contextmanager
    def _without_echo() -> Iterator[None]:
        forget_typed()
        yield

    def _read_keys() -> str | None:
        if not msvcrt.kbhit():
            time.sleep(POLL_SECONDS)
            return None
        return "".join(iter(lambda: msvcrt.getwch() if msvcrt.kbhit() else "", ""))

    def _typed_line() -> str | None:
        return sys.stdin.readline()  # this wait always lasts to its end

    def forget_typed() -> None:
        """Drop what was typed before the question."""
        while msvcrt.kbhit():
            msvcrt.getwch()

else:
    import select
    import termios

    @contextmanager
    def _without_echo() -> Iterator[None]:
        """Deliver keys at once, without echo, and Ctrl-C as one of them."""
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        changed = termios.tcgetattr(terminal)
        changed[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG)
        changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
        termios.tcsetattr(terminal, termios.TCSAFLUSH, changed)
        try:
            yield
        finally:
            termios.tcsetattr(terminal, termios.TCSANOW, before)

    def _read_keys() -> str | None:
        """Return what was typed; None when nothing was for a while; empty at the end of the input."""
        terminal = sys.stdin.fileno()
        if not select.select([terminal], [], [], POLL_SECONDS)[0]:
            return None
        data = _read(terminal)
        if data == b"\x1b" and select.select([terminal], [], [], REST_OF_KEY_SECONDS)[0]:
            data += _read(terminal)
        return data.decode(errors="replace")

    _typed_line = _read_keys  # the terminal delivers whole lines now

    def _read(terminal: int) -> bytes:
        try:
            return os.read(terminal, MAX_BYTES)
        except OSError:
            return b""  # the terminal is closed

    def forget_typed() -> None:
        """Drop what was typed before the question."""
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
