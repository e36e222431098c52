"""Keys and lines from a terminal while something else may end the wait. Knows no question and draws nothing.

Python's `input` cannot be told that its answer is no longer needed, and loses a Ctrl-C that comes between its prompt
and its wait. Here every wait looks up a few times a second, and Ctrl-C is a key like any other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK_UP_SECONDS = 0.1
"""How soon a wait notices that it is over."""

REST_OF_KEY_SECONDS = 0.05
"""What a terminal sends for an arrow or a function key comes in one go; a slow line may cut it in two."""

MAX_BYTES = 4096
"""More than a terminal hands over at once: a line of its own editor has at most so many."""

INTERRUPT = "\x03"

Over = Callable[[], bool]


@contextmanager
def single_keys() -> Iterator[Callable[[Over], str | None]]:
    """A function that waits for the next key. What was typed before is forgotten: no answer is given ahead.

    It returns INTERRUPT for Ctrl-C and for a terminal that is gone, and None when it is `over`. What is pasted, and
    what an arrow or a function key sends, counts as no key at all: that is an empty text.
    """

    def key(over: Over) -> str | None:
        while not over():
            typed = _typed()
            if typed is not None:
                gone = not typed or INTERRUPT in typed
                return INTERRUPT if gone else typed if len(typed) == 1 else ""
        return None

    with _without_echo():
        yield key


def read_line(over: Over) -> str | None:
    """A line, with what editing the terminal itself has; None when it is `over` before its end.

    Ctrl-C is a signal meanwhile; whoever handles that makes it `over`.
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

    def _typed() -> str | None:
        if not msvcrt.kbhit():
            time.sleep(LOOK_UP_SECONDS)
            return None
        return "".join(iter(lambda: msvcrt.getwch() if msvcrt.kbhit() else "", ""))

    def _typed_line() -> str | None:
        return sys.stdin.readline()  # it is waited for to its end, whatever is over meanwhile

    def forget_typed() -> None:
        """Drop what was typed before there was a question."""
        while msvcrt.kbhit():
            msvcrt.getwch()

else:
    import select
    import termios

    @contextmanager
    def _without_echo() -> Iterator[None]:
        """Keys come at once, unseen, and Ctrl-C as one of them."""
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

    def _typed() -> str | None:
        """What was typed; None when nothing was for a while; empty at the end of the input."""
        terminal = sys.stdin.fileno()
        if not select.select([terminal], [], [], LOOK_UP_SECONDS)[0]:
            return None
        data = _read(terminal)
        if data == b"\x1b" and select.select([terminal], [], [], REST_OF_KEY_SECONDS)[0]:
            data += _read(terminal)
        return data.decode(errors="replace")

    _typed_line = _typed  # the terminal hands over whole lines now

    def _read(terminal: int) -> bytes:
        try:
            return os.read(terminal, MAX_BYTES)
        except OSError:
            return b""  # the terminal is gone

    def forget_typed() -> None:
        """Drop what was typed before there was a question."""
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
