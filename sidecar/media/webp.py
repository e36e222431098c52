"""WebP: walks the chunks of the RIFF container, and reads the header of the frame in it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .formats import BadMedia, Facts, truncated

_ANIMATED = 0x02


def inspect_webp(data: bytes) -> Facts:
    """Return the size of the image; raise BadMedia when a chunk is cut or no frame is there."""
    canvas: tuple[int, int] | None = None
    frame: tuple[int, int] | None = None
    animated = False
    if data[12:16] not in (b"VP8X", b"VP8 ", b"VP8L"):
        raise BadMedia("the WebP has no frame; save the image again")
    for kind, body in _chunks(data):
        if kind == b"VP8X":
            if len(body) < 10:
                raise truncated("WebP")
            animated = bool(body[0] & _ANIMATED)
            canvas = _uint24(body, 4) + 1, _uint24(body, 7) + 1
        elif kind == b"VP8 ":
            frame = frame or _lossy_size(body)
        elif kind == b"VP8L":
            frame = frame or _lossless_size(body)
        elif kind == b"ANMF" and animated:
            if len(body) < 24:
                raise truncated("WebP")
            frame = frame or (_uint24(body, 6) + 1, _uint24(body, 9) + 1)
    if frame is None:
        raise BadMedia("the WebP has no frame; save the image again")
    return Facts("image/webp", *(canvas or frame), animated)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    (size,) = struct.unpack_from("<I", data, 4)
    end, at = size + 8, 12
    if end > len(data):
        raise truncated("WebP")
    while at + 8 <= end:
        kind, length = struct.unpack_from("<4sI", data, at)
        if at + 8 + length > end:
            raise truncated("WebP")
        yield kind, data[at + 8 : at + 8 + length]
        at += 8 + length + (length & 1)


def _lossy_size(body: bytes) -> tuple[int, int]:
    if len(body) < 10:
        raise truncated("WebP")
    tag = _uint24(body, 0)
    if tag & 1 or body[3:6] != b"\x9d\x01\x2a":
        raise BadMedia("the WebP's frame header is malformed; save the image again")
    if tag >> 5 > len(body) - 10:
        raise truncated("WebP")
    width, height = struct.unpack_from("<HH", body, 6)
    return width & 0x3FFF, height & 0x3FFF


def _lossless_size(body: bytes) -> tuple[int, int]:
    if len(body) < 6:
        raise truncated("WebP")
    (bits,) = struct.unpack_from("<I", body, 1)
    if body[0] != 0x2F or bits >> 29:
        raise BadMedia("the WebP's frame header is malformed; save the image again")
    return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1


def _uint24(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 3], "little")
