"""Checksums of rows: what was written is what is read, also where SQLite would not notice.

A row's sum covers its key too, so that a row which turns up in a damaged file is known for what it is.
"""

from __future__ import annotations

from zlib import crc32


def of_event(
    chat: int, seq: int, first: int, ts: int, turn: str | None, type: str, data: bytes, pieces: bytes | None
) -> int:
    head = f"{chat} {seq} {first} {ts} {turn} {type} ".encode(errors="surrogatepass")
    return crc32(pieces or b"", crc32(data, crc32(head)))


def of_message(chat: int, turn: str, item: str, role: str, ts: int, text: str) -> int:
    head = f"{chat} {turn} {item} {role} {ts} ".encode(errors="surrogatepass")
    return crc32(text.encode(errors="surrogatepass"), crc32(head))
