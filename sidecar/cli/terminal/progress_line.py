"""One line on a terminal with the progress of a long command; nothing when stderr is not a terminal."""

from __future__ import annotations

import sys
from typing import TextIO

from sidecar_protocol.messages import Status


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
        share = f"{100 * done // total:3} %" if total else str(done)
        self._stream.write(f"\r  {self._verb} {share}")
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Clear the line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
