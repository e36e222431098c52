"""Bytes to frames and frames to bytes, for both framings. Does no IO and knows nothing of JSON.

`lines`: one message a line. `headers`: `Content-Length` headers, a blank line, the body. The first non-blank
byte of a connection decides (`auto`); replies use the same framing.
"""

from __future__ import annotations

from .limits import MAX_FRAME_BYTES

MAX_HEADER_BYTES = 16 * 1024
"""A header block is a few dozen bytes; without a bound, garbage without a blank line would be kept for ever."""

_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Oversized:
    """Stands for a frame over the limit, one whose headers make no sense, or one that there was no memory for; its
    bytes were skipped."""

    __slots__ = ("reason", "size")

    def __init__(self, size: int, reason: str) -> None:
        self.size = size
        self.reason = reason

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Oversized) and (self.size, self.reason) == (other.size, other.reason)

    def __hash__(self) -> int:
        return hash((self.size, self.reason))

    def __repr__(self) -> str:
        return f"Oversized({self.size}, {self.reason!r})"


Frame = bytes | bytearray | Oversized


class Deframer:
    """Collects bytes and returns whole frames. Nothing is decoded here, so no chunk border can split a character."""

    def __init__(self, framing: str = "auto", max_bytes: int = MAX_FRAME_BYTES) -> None:
        self.framing = framing
        self.max_bytes = max_bytes
        # Between two feeds of lines, the first `_searched` bytes of the buffer contain no newline. While a frame is
        # skipped, its bytes are only counted in `_skipped`: the buffer is empty, and `_searched` is 0.
        self._buffer = bytearray()
        self._searched = 0
        self._skipped = 0
        self._skipping = False
        self._reason = "too_large"
        self._body: int | None = None
        self._started = False

    def feed(self, data: bytes) -> list[Frame]:
        """Take more bytes and return the frames that are now whole, in order."""
        try:
            self._buffer += data
        # What was collected is given up, which frees enough for this piece: the end of the frame must still
        # be found.
        except MemoryError:
            self._skip_frame()
            self._buffer += data
        if not self._started and not self._detect():
            return []
        return self._lines() if self.framing == "lines" else self._headers()

    def end(self) -> list[Frame]:
        """The input has ended: a last line without its newline still counts."""
        if self.framing == "headers" or self._skipping:
            return [self._skipped_frame()] if self._skipping else []
        rest = bytes(self._buffer).strip(_BLANK)
        self._buffer.clear()
        return [rest] if rest else []

    def _detect(self) -> bool:
        """Skip a byte order mark and blanks, and settle the framing; False while too little is there to tell."""
        # A prefix of the mark is not yet a decision: chunks can end anywhere.
        if _BOM.startswith(bytes(self._buffer[:3])) and len(self._buffer) < len(_BOM):
            return False
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]
        start = bytes(self._buffer).lstrip(_BLANK)
        if not start:
            self._buffer.clear()
            return False
        self._buffer[:] = start
        if self.framing == "auto":
            word = start[:8].lower()
            if b"content-"[: len(word)] == word and len(word) < 8:
                return False
            self.framing = "headers" if word == b"content-" else "lines"
        self._started = True
        return True

    def _lines(self) -> list[Frame]:
        frames: list[Frame] = []
        start = 0
        # The search goes on where the last feed ended: from the start, a long line in small chunks would take
        # quadratic time.
        while (end := self._buffer.find(b"\n", max(start, self._searched))) >= 0:
            if self._skipping:
                frames.append(self._skipped_frame(end - start))
            elif end - start > self.max_bytes:
                frames.append(Oversized(end - start, "too_large"))
            elif line := self._part(start, end):
                frames.append(line)
            start = end + 1
        # Once per feed, not per frame: each deletion moves the rest of the buffer.
        del self._buffer[:start]
        if self._skipping or len(self._buffer) > self.max_bytes:
            self._skip_buffer()
        self._searched = len(self._buffer)
        return frames

    def _skip_buffer(self) -> None:
        self._skipping = True
        self._skipped += len(self._buffer)
        self._searched = 0
        self._buffer.clear()

    def _skip_frame(self) -> None:
        """There is no memory for the frame that is coming in: it is skipped like one over the limit."""
        if self._body is not None:
            self._body -= len(self._buffer)
        self._reason = "no_memory"
        self._skip_buffer()

    def _skipped_frame(self, more: int = 0) -> Oversized:
        frame = Oversized(self._skipped + more, self._reason)
        self._skipping, self._skipped, self._reason = False, 0, "too_large"
        return frame

    def _part(self, start: int, end: int) -> Frame:
        """These bytes as a frame, copied once."""
        try:
            # A slice of the bytearray would be copied twice. The view is closed at once: a bytearray with a view
            # cannot change its size.
            with memoryview(self._buffer) as view:
                part = bytes(view[start:end])
            return part.strip(_BLANK) if self.framing == "lines" else part
        except MemoryError:
            if start or bytes(self._buffer[end : end + 2]) not in (b"", b"\n"):
                return Oversized(end - start, "no_memory")
            # It is all that has come: no copy is needed, and whoever reads it can tell its sender.
            whole, self._buffer = self._buffer, bytearray()
            return whole

    def _headers(self) -> list[Frame]:
        frames: list[Frame] = []
        while True:
            if self._body is None and not self._read_headers(frames):
                return frames
            assert self._body is not None
            if self._skipping:
                taken = min(self._body, len(self._buffer))
                del self._buffer[:taken]
                self._body -= taken
                self._skipped += taken
                if self._body:
                    return frames
                frames.append(self._skipped_frame())
            else:
                if len(self._buffer) < self._body:
                    return frames
                if body := self._part(0, self._body):
                    frames.append(body)
                del self._buffer[: self._body]
            self._body = None

    def _read_headers(self, frames: list[Frame]) -> bool:
        """Read one header block; on nonsense, report it and look for the next block."""
        while True:
            stripped = len(self._buffer) - len(self._buffer.lstrip(b"\r\n"))
            del self._buffer[:stripped]
            end, gap = _block_end(self._buffer)
            if end < 0:
                if len(self._buffer) > MAX_HEADER_BYTES:
                    frames.append(Oversized(len(self._buffer), "bad_header"))
                    # The end mark may be cut anywhere: its first bytes stay.
                    del self._buffer[: -len(b"\r\n\r")]
                return False
            block = bytes(self._buffer[:end])
            del self._buffer[: end + gap]
            size = _content_length(block)
            if size is None:
                frames.append(Oversized(len(block), "bad_header"))
                continue
            self._body = size
            self._skipping = size > self.max_bytes
            return True


def encode(message: bytes, framing: str) -> bytes:
    """One message as it goes on the wire."""
    if framing == "headers":
        return b"Content-Length: %d\r\n\r\n%b" % (len(message), message)
    return message + b"\n"


def _block_end(buffer: bytearray) -> tuple[int, int]:
    """Where the header block ends and how long its end mark is; bare newlines are accepted."""
    strict, bare = buffer.find(b"\r\n\r\n"), buffer.find(b"\n\n")
    if strict >= 0 and (bare < 0 or strict < bare):
        return strict, 4
    return bare, 2


def _content_length(block: bytes) -> int | None:
    for line in block.split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon and name.strip().lower() == b"content-length":
            digits = value.strip()
            # More digits are beyond any limit, and `int` raises for thousands of them.
            return int(digits) if digits.isdigit() and len(digits) < 16 else None
    return None
