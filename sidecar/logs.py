"""The log: one JSON object a line on stderr, from a thread of its own, so that an unread pipe stalls nothing.

No line leaves with a secret that the process knows.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time

from .system.redact import redacted

MAX_WAITING = 1000
"""Lines that wait for a stderr nobody drains; more are dropped and counted."""

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
    """Send everything of this process's loggers to stderr, or to a file."""
    fd = 2 if file is None else os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    handler = _Handler(fd)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    # Their debug lines carry values, headers among them; ours carry none.
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, LEVELS[level]))
    logging.raiseExceptions = False


class _Handler(logging.Handler):
    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._lines: queue.Queue[bytes] = queue.Queue(MAX_WAITING)
        self._dropped = 0
        threading.Thread(target=self._write_forever, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(self._line(record))
        except queue.Full:
            self._dropped += 1

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
        return redacted(json.dumps(entry, default=str)).encode() + b"\n"

    def _write_forever(self) -> None:
        while True:
            line = self._lines.get()
            try:
                os.write(self._fd, line)
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                return
