"""Extracts rows from the raw pages of a database file and its write-ahead log that SQLite can no longer
reach.

Pure: bytes in, records out. Knows SQLite's file format, which is stable, and no table.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

SqlValue = int | float | str | bytes | None

TABLE_LEAF, INDEX_LEAF, INDEX_INNER = 0x0D, 0x0A, 0x02
"""The pages with rows: a table WITHOUT ROWID is stored as an index, whose inner pages contain rows too."""

DEFAULT_PAGE = 4096
MAX_PAYLOAD = 256 * 1024 * 1024
"""A greater length is garbage, not a row of this program."""

_WAL_MAGIC = (0x377F0682, 0x377F0683)
_WIDTHS = (0, 1, 2, 3, 4, 6, 8)


class RawRecord(msgspec.Struct, frozen=True):
    """A row as stored in a page: `rowid` is None in a table WITHOUT ROWID."""

    rowid: int | None
    values: tuple[SqlValue, ...]


class DatabaseImage(msgspec.Struct):
    """The pages of a file by number: the newest version of each, and the older ones."""

    size: int
    newest: dict[int, bytes]
    older: list[tuple[int, bytes]]


def image_of(data: bytes, wal: bytes) -> DatabaseImage:
    """Return the pages of a database and its log. A damaged frame of the log does not hide the frames after
    it."""
    size = _page_size(data, wal)
    pages = {
        number: data[start : start + size]
        for number, start in enumerate(range(0, len(data) - size + 1, size), 1)
    }
    image = DatabaseImage(size, pages, [])
    for number, page in _frames(wal, size):
        # Older versions count as well: a row of the newest page may be the damaged one.
        if number in pages:
            image.older.append((number, pages[number]))
        pages[number] = page
    return image


def records(image: DatabaseImage) -> Iterator[RawRecord]:
    """Return every row of every readable page, the newest pages last."""
    for number, page in [*image.older, *image.newest.items()]:
        yield from _rows(image, number, page)


def _page_size(data: bytes, wal: bytes) -> int:
    found = int.from_bytes(data[16:18], "big")
    if data[:6] == b"SQLite" and found in (1, *(1 << n for n in range(9, 16))):
        return 65536 if found == 1 else found
    found = int.from_bytes(wal[8:12], "big")
    return found if found in [1 << n for n in range(9, 17)] else DEFAULT_PAGE


def _frames(wal: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    if len(wal) < 32 or int.from_bytes(wal[:4], "big") not in _WAL_MAGIC:
        return
    salts = wal[16:24]
    for start in range(32, len(wal) - size - 23, size + 24):
        number = int.from_bytes(wal[start : start + 4], "big")
        # Frames of an earlier run of the log are still behind the newest ones, with other salts.
        if wal[start + 8 : start + 16] == salts and 0 < number < 2**31:
            yield number, wal[start + 24 : start + 24 + size]


def _rows(image: DatabaseImage, number: int, page: bytes) -> Iterator[RawRecord]:
    start = 100 if number == 1 else 0
    kind = page[start]
    if kind not in (TABLE_LEAF, INDEX_LEAF, INDEX_INNER):
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    first, skipped = (start + 12, 4) if kind == INDEX_INNER else (start + 8, 0)
    for place in range(first, min(first + 2 * count, len(page) - 1), 2):
        offset = int.from_bytes(page[place : place + 2], "big") + skipped
        try:
            record = _cell(image, page, offset, kind)
        except (IndexError, ValueError, KeyError, struct.error, OverflowError):
            continue  # garbage
        if record:
            yield record


def _cell(image: DatabaseImage, page: bytes, offset: int, kind: int) -> RawRecord | None:
    length, offset = _varint(page, offset)
    rowid: int | None = None
    if kind == TABLE_LEAF:
        rowid, offset = _varint(page, offset)
        rowid = rowid - 2**64 if rowid >= 2**63 else rowid
    if not 1 < length < MAX_PAYLOAD:
        return None
    local = _local_bytes(length, image.size, kind)
    payload = page[offset : offset + local]
    if local < length:
        payload += _overflow(
            image, int.from_bytes(page[offset + local : offset + local + 4], "big"), length - local
        )
    return RawRecord(rowid, tuple(_values(payload))) if len(payload) == length else None


def _local_bytes(length: int, usable: int, kind: int) -> int:
    """Return how much of a payload is stored in the leaf itself."""
    limit = usable - 35 if kind == TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    if length <= limit:
        return length
    least = (usable - 12) * 32 // 255 - 23
    some = least + (length - least) % (usable - 4)
    return some if some <= limit else least


def _overflow(image: DatabaseImage, number: int, wanted: int) -> bytes:
    parts = []
    while number and wanted > 0:
        # A chain that leads in a circle ends with `wanted`.
        page = image.newest[number]
        part = page[4 : 4 + min(wanted, image.size - 4)]
        parts.append(part)
        wanted -= len(part)
        number = int.from_bytes(page[:4], "big")
    return b"".join(parts)


def _values(payload: bytes) -> Iterator[SqlValue]:
    size, place = _varint(payload, 0)
    offset = size
    while place < size:
        kind, place = _varint(payload, place)
        width = _WIDTHS[kind] if kind < 7 else 8 if kind == 7 else 0 if kind < 12 else (kind - 12) // 2
        part = payload[offset : offset + width]
        if len(part) != width:
            raise ValueError("a value ends after its row")
        offset += width
        yield _value(kind, part)


def _value(kind: int, part: bytes) -> SqlValue:
    if kind == 0:
        return None
    if kind < 7:
        return int.from_bytes(part, "big", signed=True)
    if kind == 7:
        return float(struct.unpack(">d", part)[0])
    if kind in (8, 9):
        return kind - 8
    if kind < 12:
        raise ValueError("an unknown type of value")
    return part if kind % 2 == 0 else part.decode()


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    # SQLite's varints: seven bits each, and all eight of a ninth byte.
    for step in range(8):
        byte = data[offset + step]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, offset + step + 1
    return value << 8 | data[offset + 8], offset + 9
