"""Convert bytes to lines and to server-sent events, however the network splits them. No I/O.

Data stay bytes: they are decoded once, with the JSON in them, so that a split character is never seen.
"""

from __future__ import annotations

import msgspec

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""More than any provider sends in one piece (an image in base64); a stream without line ends must not fill the
memory.
"""


class TooLong(Exception):
    """A line or an event exceeds the limit."""


class SseEvent(msgspec.Struct, frozen=True):
    type: str
    data: bytes


class LineReader:
    """Lines that end in LF, CR LF or CR."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._after_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without their line ends."""
        if not data:
            return []
        if self._after_cr:
            data = data.removeprefix(b"\n")
        # A CR at the end may be the first half of CR LF, whose second half comes with the next piece.
        self._after_cr = data[-1:] == b"\r"
        if not data:
            return []
        if len(self._rest) + len(data) > MAX_EVENT_BYTES:
            raise TooLong
        whole = data[-1:] in (b"\n", b"\r")
        lines = data.splitlines()
        if self._rest and (whole or len(lines) > 1):
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        if not whole:
            self._rest += lines.pop()
        return lines

    def close(self) -> list[bytes]:
        """Return what follows the last line end."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [rest] if rest else []


class SseReader:
    """Events of a text/event-stream; comments, ids and retry times are ignored."""

    def __init__(self) -> None:
        self._lines = LineReader()
        self._type = ""
        self._data: list[bytes] = []
        self._size = 0
        self._started = False

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that `data` completes."""
        events = []
        for line in self._lines.feed(data):
            if not line:
                if self._data:
                    events.append(SseEvent(self._type, b"\n".join(self._data)))
                self._type, self._data, self._size = "", [], 0
            else:
                self._take(line)
        return events

    def close(self) -> list[SseEvent]:
        """Return the event that the stream ended in; some servers omit the last blank line."""
        return self.feed(b"\n\n\n")

    def _take(self, line: bytes) -> None:
        if not self._started:
            line = line.removeprefix(b"\xef\xbb\xbf")
            self._started = True
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._size += len(line)
            if self._size > MAX_EVENT_BYTES:
                raise TooLong
            self._data.append(value)
        elif field == b"event":
            self._type = value.decode(errors="replace")
