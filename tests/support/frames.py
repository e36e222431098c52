"""The two framings, read as strictly as a sidecar may write them. Independent of the sidecar's own reader."""

from __future__ import annotations

import re

_HEADER = re.compile(rb"Content-Length: (\d+)\r\n\r\n")


class FrameReader:
    """Collects bytes and returns the bodies of whole frames; what is no frame stays in `rest` for ever."""

    def __init__(self, framing: str) -> None:
        self.framing = framing
        self._parts: list[bytes] = []

    @property
    def rest(self) -> bytes:
        return b"".join(self._parts)

    def feed(self, data: bytes) -> list[bytes]:
        self._parts.append(data)
        if self.framing == "headers":
            return self._headers()
        if b"\n" not in data:
            return []
        *lines, tail = self.rest.split(b"\n")
        self._parts = [tail]
        return lines

    def _headers(self) -> list[bytes]:
        buffer, bodies = self.rest, []
        while match := _HEADER.match(buffer):
            end = match.end() + int(match[1])
            if len(buffer) < end:
                break
            bodies.append(buffer[match.end() : end])
            buffer = buffer[end:]
        self._parts = [buffer]
        return bodies


def encode(body: bytes, framing: str) -> bytes:
    if framing == "headers":
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    return body + b"\n"
