"""The log: one JSON object per line on stderr and in a file, each written by a thread of its own.

A pipe that nobody reads stalls nothing. Every secret that the process knows is redacted.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time

from .system.redact import redact_text

MAX_WAITING = 1000
"""Lines that wait for a stderr nobody drains; more are dropped and counted."""

FLUSH_SECONDS = 0.5
"""The longest that the end of the process waits for its last lines to be written."""

TRACE = 5
LEVELS = {
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE,
}

_TALKATIVE = (
    "aiosqlite",
    "asyncio",
    "client",
    "h11",
    "httpcore",
    "httpcore2",
    "httpx2",
    "keyring",
    "mcp",
    "truststore",
)

_STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {
    "message",
    "asctime",
    "taskName",
}


def start(level: str, file: str | None) -> None:
    """Write everything that this process logs to stderr, and to the file if there is one."""
    handlers = [_Handler(2)]
    if file is not None:
        handlers.append(_Handler(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)))
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(LEVELS[level])
    # Their debug lines carry values, headers among them; ours carry none.
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, LEVELS[level]))
    logging.raiseExceptions = False


def flush(seconds: float) -> None:
    """Wait until the lines logged so far are written, but no longer than `seconds`."""
    deadline = time.monotonic() + seconds
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Handler):
            handler.wait_until_written(deadline)


class _Handler(logging.Handler):
    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._lines: queue.Queue[bytes] = queue.Queue(MAX_WAITING)
        self._dropped = 0
        self._is_writing = True
        threading.Thread(target=self._write_forever, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(self._line(record))
        except queue.Full:
            self._dropped += 1

    def flush(self) -> None:
        """Wait for the lines in the queue. `logging` calls this when the interpreter exits."""
        self.wait_until_written(time.monotonic() + FLUSH_SECONDS)

    def wait_until_written(self, deadline: float) -> None:
        with self._lines.all_tasks_done:
            while self._is_writing and self._lines.unfinished_tasks:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return
                self._lines.all_tasks_done.wait(remaining)

    def _line(self, record: logging.LogRecord) -> bytes:
        entry = {
            "ts": int(record.created * 1000),
            "level": "trace" if record.levelno == TRACE else record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update((key, value) for key, value in vars(record).items() if key not in _STANDARD)
        if record.exc_info:
            entry["exception"] = logging.Formatter().formatException(record.exc_info)
        if self._dropped:
            entry["dropped"], self._dropped = self._dropped, 0
        return redact_text(json.dumps(entry, default=str)).encode() + b"\n"

    def _write_forever(self) -> None:
        while True:
            line = self._lines.get()
            try:
                os.write(self._fd, line)
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                self._is_writing = False
                return
            finally:
                self._lines.task_done()
