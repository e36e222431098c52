"""What a program prints, as text of a bounded length. Knows neither the program nor who reads the text."""

from __future__ import annotations

import codecs

MAX_TEXT = 24 * 1024
"""Bytes of output for the model: some six thousand tokens. Its beginning and its end tell most."""

MAX_WHOLE = 8 * 1024 * 1024
"""Bytes of output that are kept and shown. A command that goes on is read on, or it would hang."""


class Transcript:
    """The output as text: whole up to `most` bytes, and its end, for whatever bytes come in whatever pieces."""

    def __init__(self, most: int = MAX_WHOLE) -> None:
        self.size = 0
        """Bytes that came in, as text."""
        self._most = most
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes, *, final: bool = False) -> str:
        """Take the next bytes; returns the text to show, which never ends within a character."""
        # A NUL is a character like any other in JSON, but not to every provider.
        text = self._decoder.decode(data, final).replace("\0", "\ufffd")
        encoded = text.encode()
        room = max(0, self._most - len(self._kept))
        self._kept += encoded[:room]
        self._tail += encoded
        del self._tail[: -MAX_TEXT // 2]
        self.size += len(encoded)
        return text if len(encoded) <= room else encoded[:room].decode(errors="ignore")

    def short(self) -> str:
        """All of it when that is little, else its beginning and its end. The last line is closed."""
        return self._within(self._kept[: MAX_TEXT // 2] if self.size > MAX_TEXT else self._kept)

    def whole(self) -> str:
        """As much as was kept: the end too, of an output that was longer. The last line is closed."""
        return self._within(self._kept)

    def _within(self, head: bytearray) -> str:
        missing = self.size - len(head)
        if missing <= len(self._tail):
            return _line(_decoded(head + self._tail[len(self._tail) - missing :]))
        first, last = _decoded(head), _decoded(self._tail)
        lost = self.size - len(first.encode()) - len(last.encode())
        return f"{_line(first)}[… {lost} bytes left out …]\n{_line(last)}"


def _line(text: str) -> str:
    """The text with its last line closed."""
    return text if not text or text.endswith("\n") else text + "\n"


def _decoded(part: bytearray) -> str:
    """A part of well-formed text; a character that was cut at an edge is left out."""
    return part.decode(errors="ignore")
