"""PNG: walks the chunks with their checksums, and inflates the pixels without storing them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from .formats import BadMedia, Facts, check_dimensions, truncated

SIGNATURE = b"\x89PNG\r\n\x1a\n"

_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
"""Bit depths that each colour type allows."""

_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}

_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Where each pass of an interlaced image begins, and its steps, in columns and rows."""

INFLATE_STEP = 256 * 1024
"""Bytes of pixels that are in memory at a time."""


def inspect_png(data: bytes) -> Facts:
    """Return the size of the image; raise BadMedia when a decoder would stop before its end."""
    header: bytes | None = None
    pixels: list[memoryview] = []
    has_palette = animated = False
    for kind, body in _chunks(data):
        if header is None and kind != b"IHDR":
            raise BadMedia("the PNG has no header chunk; save the image again")
        if kind == b"IHDR":
            header = bytes(body)
            _check_header(header)
        elif kind == b"IDAT":
            pixels.append(body)
        has_palette |= kind == b"PLTE"
        animated |= kind == b"acTL"
        if kind == b"IEND":
            break
    assert header is not None
    if header[9] == 3 and not has_palette:
        raise BadMedia("the PNG has no palette; save the image again")
    _check_pixels(pixels, _expected_bytes(header))
    width, height = struct.unpack(">II", header[:8])
    return Facts("image/png", width, height, animated)


def _chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the type and content of each chunk, to IEND; raise when one is cut or its checksum differs."""
    view, at = memoryview(data), len(SIGNATURE)
    while True:
        if at + 12 > len(data):
            raise truncated("PNG")
        (length,) = struct.unpack_from(">I", data, at)
        end = at + 12 + length
        if end > len(data):
            raise truncated("PNG")
        (checksum,) = struct.unpack_from(">I", data, end - 4)
        if zlib.crc32(view[at + 4 : end - 4]) != checksum:
            raise BadMedia("the PNG is damaged: a chunk's checksum differs; save the image again")
        kind = data[at + 4 : at + 8]
        yield kind, view[at + 8 : end - 4]
        if kind == b"IEND":
            return
        at = end


def _check_header(header: bytes) -> None:
    if len(header) != 13:
        raise BadMedia("the PNG's header chunk is malformed; save the image again")
    width, height, depth, colour, compression, filtering, interlace = struct.unpack(">IIBBBBB", header)
    if depth not in _DEPTHS.get(colour, ()) or compression or filtering or interlace > 1:
        raise BadMedia("the PNG's header names a pixel format that does not exist; save the image again")
    # Checked before the pixels are inflated: a decompression bomb is detected by its header.
    check_dimensions(width, height)


def _expected_bytes(header: bytes) -> int:
    """Return how many bytes the pixels inflate to: rows of samples, each after one filter byte."""
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", header)
    bits = depth * _SAMPLES[colour]
    passes = _ADAM7 if interlace else ((0, 0, 1, 1),)
    total = 0
    for left, top, step_x, step_y in passes:
        columns = max(0, -(-(width - left) // step_x))
        rows = max(0, -(-(height - top) // step_y))
        if columns and rows:
            total += rows * (1 + -(-columns * bits // 8))
    return total


def _check_pixels(pixels: list[memoryview], expected: int) -> None:
    inflate, found = zlib.decompressobj(), 0
    try:
        for piece in pixels:
            rest: bytes | memoryview = piece
            while rest and found < expected:
                found += len(inflate.decompress(rest, INFLATE_STEP))
                rest = inflate.unconsumed_tail
    except zlib.error as error:
        raise BadMedia("the PNG's pixels do not decompress; save the image again") from error
    if found < expected:
        raise truncated("PNG's pixel data")
