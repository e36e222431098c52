"""GIF: walks the blocks to the trailer, and cuts an animation down to its first frame."""

from __future__ import annotations

import struct

from .formats import BadMedia, Facts, truncated

_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B


def inspect_gif(data: bytes) -> Facts:
    """Return the size of the image; raise BadMedia when it has no complete frame or ends too early."""
    width, height, _ = _walk(data)
    frames = _frame_ends(data)
    if not frames:
        raise BadMedia("the GIF has no frame; save the image again")
    return Facts("image/gif", width, height, len(frames) > 1)


def first_frame(data: bytes) -> bytes:
    """Return the GIF with its first frame alone and a trailer: some APIs refuse animations."""
    return data[: _frame_ends(data)[0]] + bytes([_TRAILER])


def _walk(data: bytes) -> tuple[int, int, int]:
    """Return width, height, and where the blocks begin."""
    if len(data) < 13:
        raise truncated("GIF")
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    return width, height, 13 + _table_bytes(flags)


def _frame_ends(data: bytes) -> list[int]:
    """Return where each frame ends; raise BadMedia when the blocks do not lead to the trailer."""
    _, _, at = _walk(data)
    has_table, ends = bool(data[10] & 0x80), list[int]()
    while True:
        if at == len(data) and ends:
            return ends  # some programs write no trailer, and every decoder accepts that
        if at >= len(data):
            raise truncated("GIF")
        kind = data[at]
        if kind == _TRAILER:
            return ends
        if kind == _EXTENSION:
            at, _ = _sub_blocks(data, at + 2)
        elif kind == _IMAGE:
            at = _frame(data, at, has_table)
            ends.append(at)
        else:
            raise BadMedia("the GIF is damaged between its blocks; save the image again")


def _frame(data: bytes, at: int, has_table: bool) -> int:
    """Return where the frame ends that begins here."""
    if at + 11 > len(data):
        raise truncated("GIF")
    width, height, flags = struct.unpack_from("<HHB", data, at + 5)
    local = _table_bytes(flags)
    start = at + 10 + local
    if start >= len(data):
        raise truncated("GIF")
    if not width or not height or not (local or has_table) or not 1 <= data[start] <= 11:
        raise BadMedia("the GIF has a malformed frame; save the image again")
    end, size = _sub_blocks(data, start + 1)
    if not size:
        raise BadMedia("the GIF has a frame without pixels; save the image again")
    return end


def _table_bytes(flags: int) -> int:
    return 3 * (2 << (flags & 7)) if flags & 0x80 else 0


def _sub_blocks(data: bytes, at: int) -> tuple[int, int]:
    """Return where a run of sub-blocks ends, and how many bytes are in it."""
    size = 0
    while at < len(data):
        length = data[at]
        at += 1 + length
        size += length
        if not length:
            return at, size
    raise truncated("GIF")
