"""The last steps of the process: the signals that start them, the processes that must end with it, the time limit."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from .. import logs

EXIT_TIMEOUT_S = 1.8
"""The limit when the shutdown itself hangs; still within the contract's two seconds."""

FLUSH_LOG_S = 0.1
"""The longest wait for the last lines of the log; together with the limit above it is within the two seconds."""


class SignalHandlers:
    """Signals start an orderly shutdown while this context lasts."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, numbers: list[int], act: Callable[[int], None]
    ) -> None:
        self._loop, self._numbers, self._act = loop, numbers, act

    def __enter__(self) -> None:
        for number in self._numbers:
            try:
                self._loop.add_signal_handler(number, self._act, number)
            except NotImplementedError:  # Windows has no signal handlers on the event loop
                signal.signal(
                    number, lambda received, _: self._loop.call_soon_threadsafe(self._act, received)
                )

    def __exit__(self, *_: object) -> None:
        """Ignore further signals during the last steps: shutdown is bounded already."""


def kill_commands() -> None:
    """Kill the commands that still run. A cancelled turn has ended its own."""
    children = sys.modules.get("sidecar.system.process_tree")
    if children:
        children.kill_all()


def start_exit_timer(code: int) -> None:
    """End the process at the contract's limit, whatever hangs."""
    timer = threading.Timer(EXIT_TIMEOUT_S, exit_now, [code])
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:  # no memory for a thread, so none for an orderly shutdown either
        exit_now(code)


def exit_now(code: int) -> NoReturn:
    logs.flush(FLUSH_LOG_S)
    sys.stderr.flush()
    os._exit(code)
