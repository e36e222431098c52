"""Checksums of rows, which detect damage that SQLite would not notice.

A checksum covers the key of the row too, so that a row found in a damaged file can be identified.
"""

from __future__ import annotations

from zlib import crc32


def event_checksum(
    chat: int, seq: int, first: int, ts: int, turn: str | None, type: str, data: bytes, pieces: bytes | None
) -> int:
    head = f"{chat} {seq} {first} {ts} {turn} {type} ".encode(errors="surrogatepass")
    return crc32(pieces or b"", crc32(data, crc32(head)))


def message_checksum(chat: int, turn: str, item: str, role: str, ts: int, text: str) -> int:
    head = f"{chat} {turn} {item} {role} {ts} ".encode(errors="surrogatepass")
    return crc32(text.encode(errors="surrogatepass"), crc32(head))
