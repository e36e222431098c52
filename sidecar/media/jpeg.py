"""JPEG: walks the segments and skips over the scans, to the end marker."""

from __future__ import annotations

import re
import struct

from .formats import BadMedia, Facts, truncated

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Start of frame, for each coding method; the three others of the range are tables."""

_ARITHMETIC = frozenset(range(0xC9, 0xD0))
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD8)})
_SOS, _DHT, _EOI = 0xDA, 0xC4, 0xD9

_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)
"""What ends a scan: any marker but a stuffed zero and the restarts, which belong to it."""


def inspect_jpeg(data: bytes) -> Facts:
    """Return the size of the image; raise BadMedia when segments are cut or the pixels are missing."""
    size: tuple[int, int] | None = None
    has_tables = has_scan = False
    at = 2
    while True:
        marker, at = _next_marker(data, at)
        if marker == _EOI:
            break
        if marker in _STANDALONE:
            continue
        body, at = _segment(data, at)
        if marker in _FRAMES:
            size = _frame_size(body)
            has_tables |= marker in _ARITHMETIC
        elif marker == _DHT:
            has_tables = True
        elif marker == _SOS:
            if size is None or not has_tables:
                raise BadMedia("the JPEG has pixels before their description; save the image again")
            has_scan, at = True, _end_of_scan(data, at)
    if size is None or not has_scan:
        raise BadMedia("the JPEG has no pixels; save the image again")
    return Facts("image/jpeg", *size)


def _next_marker(data: bytes, at: int) -> tuple[int, int]:
    """Return the marker at this position, and where its segment begins; fill bytes before it are skipped."""
    if at >= len(data):
        raise truncated("JPEG")
    if data[at] != 0xFF:
        raise BadMedia("the JPEG is damaged between its segments; save the image again")
    while at < len(data) and data[at] == 0xFF:
        at += 1
    if at >= len(data):
        raise truncated("JPEG")
    return data[at], at + 1


def _segment(data: bytes, at: int) -> tuple[bytes, int]:
    if at + 2 > len(data):
        raise truncated("JPEG")
    (length,) = struct.unpack_from(">H", data, at)
    if length < 2:
        raise BadMedia("the JPEG has a segment without length; save the image again")
    if at + length > len(data):
        raise truncated("JPEG")
    return data[at + 2 : at + length], at + length


def _frame_size(body: bytes) -> tuple[int, int]:
    if len(body) < 6 or not 1 <= body[5] <= 4 or len(body) < 6 + 3 * body[5]:
        raise BadMedia("the JPEG's frame header is malformed; save the image again")
    height, width = struct.unpack_from(">HH", body, 1)
    return width, height


def _end_of_scan(data: bytes, at: int) -> int:
    found = _MARKER.search(data, at)
    if found is None:
        raise truncated("JPEG")
    if found.start() == at:
        raise BadMedia("the JPEG has an empty scan; save the image again")
    return found.start()
