"""Decodes images as far as the providers' servers do before they answer. Independent of the program's own check of
media, so that tests can compare the two.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

MAX_PIXELS = 8_000 * 8_000


def signature(data: bytes) -> str:
    """Return the media type of the first bytes; "" for what is no image."""
    return next((media_type for start, media_type, _ in _FORMATS if data.startswith(start)), "")


def decode(data: bytes) -> None:
    """Raise ValueError when a server could not decode the image."""
    for start, _, walk in _FORMATS:
        if data.startswith(start):
            try:
                width, height = walk(data)
            except (IndexError, struct.error, zlib.error) as error:
                raise ValueError("Could not process image") from error
            if not 0 < width * height <= MAX_PIXELS:
                raise ValueError(f"Image dimensions {width}x{height} are not supported")
            return
    raise ValueError("Could not process image")


def _png(data: bytes) -> tuple[int, int]:
    at, pixels, header = 8, b"", b""
    while data[at + 4 : at + 8] != b"IEND":
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack_from(">I", data, at + 8 + length)
        if zlib.crc32(kind + body) != checksum:
            raise ValueError("Could not process image")
        header = body if kind == b"IHDR" else header
        pixels += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height = struct.unpack_from(">II", header)
    if width * height > MAX_PIXELS:
        return width, height
    if len(zlib.decompressobj().decompress(pixels)) < height * (1 + width // 8):
        raise ValueError("Could not process image")
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    at, size = 2, (0, 0)
    while data[at + 1] != 0xDA:
        if data[at : at + 2] == b"\xff\xff":
            at += 1
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        if data[at] != 0xFF or length < 2:
            raise ValueError("Could not process image")
        if 0xC0 <= data[at + 1] <= 0xCF and data[at + 1] not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            size = width, height
        at += 2 + length
    if b"\xff\xd9" not in data[at:]:
        raise ValueError("Could not process image")
    return size


def _gif(data: bytes) -> tuple[int, int]:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    at, frames = 13 + (3 * (2 << (flags & 7)) if flags & 0x80 else 0), 0
    while data[at] != 0x3B:
        if data[at] == 0x2C:
            frames += 1
            at += 11 + (3 * (2 << (data[at + 9] & 7)) if data[at + 9] & 0x80 else 0)
        else:
            at += 2
        while data[at]:
            at += 1 + data[at]
        at += 1
    if frames != 1:
        raise ValueError("Animated or empty GIFs are not supported")
    return width, height


def _webp(data: bytes) -> tuple[int, int]:
    (size,) = struct.unpack_from("<I", data, 4)
    if data[8:12] != b"WEBP" or size + 8 > len(data):
        raise ValueError("Could not process image")
    kind, at = data[12:16], 20
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, at + 1)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and data[at + 3 : at + 6] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, at + 6)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[at + by : at + by + 3], "little") + 1 for by in (4, 7))
        return width, height
    raise ValueError("Could not process image")


_FORMATS: tuple[tuple[bytes, str, Callable[[bytes], tuple[int, int]]], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png", _png),
    (b"\xff\xd8\xff", "image/jpeg", _jpeg),
    (b"GIF8", "image/gif", _gif),
    (b"RIFF", "image/webp", _webp),
)
