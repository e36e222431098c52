"""The form of a byte-pair table on disk: one token is found without reading the others. Knows neither which tables
exist nor how a text is encoded.

A file begins with the place of each bucket and of the end, four bytes each. A bucket has the tokens with one hash:
their length in one byte, their rank in three, and their bytes. All numbers are little-endian.
"""

from __future__ import annotations

import base64
import mmap
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

BUCKETS = 1 << 16
"""Three tokens in each: a few hundred nanoseconds to search one, 256 KiB for their places."""

SINGLES = 256
MAX_TOKEN_BYTES = 255
MAX_TOKENS = 1 << 24
_PLACES_BYTES = 4 * (BUCKETS + 1)
_HEAD_BYTES = 4


class RankTable:
    """The ranks of tokens in `data`, which is the content of a file."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self._data = data
        self._places = _numbers(data[:_PLACES_BYTES])

    def rank(self, token: bytes) -> int | None:
        data, bucket, length = self._data, _bucket(token), len(token)
        at, end = self._places[bucket], self._places[bucket + 1]
        while at < end:
            found = data[at]
            start = at + _HEAD_BYTES
            if found == length and data[start : start + length] == token:
                return data[at + 1] | data[at + 2] << 8 | data[at + 3] << 16
            at = start + found
        return None

    def read_all(self) -> dict[bytes, int]:
        """Return each token with its rank, in the order of the ranks."""
        data = self._data[:]
        tokens: dict[int, bytes] = {}
        at, end = _PLACES_BYTES, len(data)
        while at < end:
            start = at + _HEAD_BYTES
            rank = data[at + 1] | data[at + 2] << 8 | data[at + 3] << 16
            at = start + data[at]
            tokens[rank] = data[start:at]
        return {tokens[rank]: rank for rank in range(len(tokens))}


def open_table(path: Path) -> RankTable:
    """Map the file into memory: only the parts that are looked at are read."""
    with path.open("rb") as file:
        return RankTable(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def pack_ranks(tokens: Sequence[bytes]) -> bytes:
    """Return the content of a file for the tokens, given in the order of their ranks; ValueError when they are not a
    valid table.
    """
    if sorted(tokens[:SINGLES]) != [bytes([byte]) for byte in range(SINGLES)]:
        raise ValueError("The first 256 tokens are not the 256 single bytes.")
    if len(tokens) > MAX_TOKENS or max(map(len, tokens)) > MAX_TOKEN_BYTES:
        raise ValueError(f"More than {MAX_TOKENS} tokens, or one of more than {MAX_TOKEN_BYTES} bytes.")
    buckets: list[list[bytes]] = [[] for _ in range(BUCKETS)]
    for rank, token in enumerate(tokens):
        buckets[_bucket(token)].append(bytes([len(token)]) + rank.to_bytes(3, "little") + token)
    contents = [b"".join(bucket) for bucket in buckets]
    place, places = _PLACES_BYTES, []
    for content in contents:
        places.append(place)
        place += len(content)
    return b"".join(number.to_bytes(4, "little") for number in [*places, place]) + b"".join(contents)


def tiktoken_file(tokens: Iterable[bytes]) -> bytes:
    """Return the text of a `.tiktoken` file, whose sha256 identifies a table."""
    return b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))


def _bucket(token: bytes) -> int:
    return zlib.crc32(token) & (BUCKETS - 1)


def _numbers(data: bytes) -> array[int]:
    numbers = array("I", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
