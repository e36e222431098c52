"""The output of a program, as text of bounded length. Knows neither the program nor who reads the text."""

from __future__ import annotations

import codecs

MAX_SHORT_BYTES = 24 * 1024
"""Bytes of output for the model: some six thousand tokens. Its beginning and its end say most."""

MAX_KEPT_BYTES = 8 * 1024 * 1024
"""Bytes of output that are stored and shown. Beyond it, a command's output is still read, or the command would hang.
"""


class Transcript:
    """The output as text: in full up to `most` bytes, then its end, for any bytes in any pieces."""

    def __init__(self, most: int = MAX_KEPT_BYTES) -> None:
        self.size = 0
        """Bytes that came in, as text."""
        self._most = most
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes, *, final: bool = False) -> str:
        """Take the next bytes; returns the text to show, which never ends within a character."""
        # NUL is valid in JSON, but not every provider accepts it.
        text = self._decoder.decode(data, final).replace("\0", "\ufffd")
        encoded = text.encode()
        space = max(0, self._most - len(self._kept))
        self._kept += encoded[:space]
        self._tail += encoded
        del self._tail[: -MAX_SHORT_BYTES // 2]
        self.size += len(encoded)
        return text if len(encoded) <= space else encoded[:space].decode(errors="ignore")

    def short(self) -> str:
        """Return all of a short output, else its beginning and its end. The last line ends with a line feed."""
        return self._within(self._kept[: MAX_SHORT_BYTES // 2] if self.size > MAX_SHORT_BYTES else self._kept)

    def whole(self) -> str:
        """Return as much as was stored, including the end of a longer output. The last line ends with a line feed."""
        return self._within(self._kept)

    def _within(self, head: bytearray) -> str:
        missing = self.size - len(head)
        if missing <= len(self._tail):
            return _closed_line(_decode_part(head + self._tail[len(self._tail) - missing :]))
        first, last = _decode_part(head), _decode_part(self._tail)
        lost = self.size - len(first.encode()) - len(last.encode())
        return f"{_closed_line(first)}[… {lost} bytes left out …]\n{_closed_line(last)}"


def _closed_line(text: str) -> str:
    """Return the text with a line feed at its end."""
    return text if not text or text.endswith("\n") else text + "\n"


def _decode_part(part: bytearray) -> str:
    """Decode a part of well-formed UTF-8; a character that is cut at an edge is omitted."""
    return part.decode(errors="ignore")
