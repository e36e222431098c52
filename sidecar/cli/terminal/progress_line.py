"""One line on a terminal with the progress of a long command; nothing when stderr is not a terminal."""

from __future__ import annotations

import sys
from typing import TextIO

from sidecar_protocol.messages import Status

from sidecar.text.plural import counted

CELLS = 24
"""Of the bar: the line with it fits in 60 columns."""


class ProgressLine:
    def __init__(self, verb: str, stream: TextIO | None = None) -> None:
        self._verb = verb
        self._stream = stream or sys.stderr
        self._shown = False

    def on_status(self, status: Status) -> None:
        """Redraw the line for a `progress` of the sidecar."""
        if status.type != "progress" or not self._stream.isatty():
            return
        done, total = status.data.get("done", 0), status.data.get("total")
        share = f"{_bar(done, total)} {100 * done // total:3} %" if total else str(done)
        chats = status.data.get("chats")
        what = f", {counted(chats, 'chats')}" if chats else ""
        self._stream.write(f"\r  {self._verb} {share}{what}")
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Clear the line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False


def _bar(done: int, total: int) -> str:
    """In ASCII, which every terminal shows."""
    full = min(CELLS * done // total, CELLS)
    return f"[{'=' * full}{' ' * (CELLS - full)}]"
