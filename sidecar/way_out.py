"""The last steps of the process: signals that begin them, what must not outlive them, and their bound."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

LAST_RESORT_S = 1.8
"""When the way out itself hangs; still within the contract's two seconds."""


class Signals:
    """Signals end the process by its own way out while this context lasts."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, numbers: list[int], act: Callable[[int], None]
    ) -> None:
        self._loop, self._numbers, self._act = loop, numbers, act

    def __enter__(self) -> None:
        for number in self._numbers:
            try:
                self._loop.add_signal_handler(number, self._act, number)
            except NotImplementedError:  # Windows has no signal handlers on the loop
                signal.signal(
                    number, lambda received, _: self._loop.call_soon_threadsafe(self._act, received)
                )

    def __exit__(self, *_: object) -> None:
        """Stay deaf on the last steps: the way out is bounded already."""


def kill_commands() -> None:
    """A turn that was cancelled has ended its command; what still runs ends now."""
    children = sys.modules.get("sidecar.system.children")
    if children:
        children.kill_all()


def count_down(code: int) -> None:
    """Whatever hangs, the process is gone when the contract says so."""
    timer = threading.Timer(LAST_RESORT_S, exit_now, [code])
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:  # no memory for one more thread: then there is none for an orderly end either
        exit_now(code)


def exit_now(code: int) -> NoReturn:
    sys.stderr.flush()
    os._exit(code)
