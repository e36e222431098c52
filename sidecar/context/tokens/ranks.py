"""The compact form of a byte-pair table. Knows neither which tables exist nor how a text is encoded.

The rank of a token is its position in the table. The first 256 are the single bytes; every later one is the
concatenation of two earlier ones. So a table is stored as the order of its bytes and, for each later token,
the ranks of its two parts. The parts are stored as byte planes, all lowest bytes first, which compresses to
less than a third of the published file.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence

SINGLES = 256
WIDTH = 3
"""Bytes of a rank: enough for 16 million tokens."""


def pack_ranks(tokens: Sequence[bytes]) -> bytes:
    """Return the compact form of the tokens, given in the order of their ranks; ValueError when they are not
    a valid table."""
    if sorted(tokens[:SINGLES]) != [bytes([byte]) for byte in range(SINGLES)]:
        raise ValueError("The first 256 tokens are not the 256 single bytes.")
    ranks = {token: rank for rank, token in enumerate(tokens)}
    parts = [_parts(token, rank, ranks) for rank, token in enumerate(tokens[SINGLES:], SINGLES)]
    columns = [_bytes_at(place, side) for side in zip(*parts, strict=True) for place in range(WIDTH)]
    return zlib.compress(b"".join([*tokens[:SINGLES], *columns]), 9)


def unpack_ranks(data: bytes) -> dict[bytes, int]:
    """Return each token with its rank, in the order of the ranks."""
    raw = zlib.decompress(data)
    tokens = [raw[at : at + 1] for at in range(SINGLES)]
    half = (len(raw) - SINGLES) // 2
    lefts, rights = _numbers(raw[SINGLES : SINGLES + half]), _numbers(raw[SINGLES + half :])
    for left, right in zip(lefts, rights, strict=True):
        tokens.append(tokens[left] + tokens[right])
    return {token: rank for rank, token in enumerate(tokens)}


def tiktoken_file(tokens: Iterable[bytes]) -> bytes:
    """Return the text of a `.tiktoken` file, whose sha256 identifies a table."""
    return b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))


def _parts(token: bytes, rank: int, ranks: dict[bytes, int]) -> tuple[int, int]:
    """Split the token into two earlier ones; of all splits, the one with the most common end compresses best."""
    splits = ((ranks.get(token[:at], rank), ranks.get(token[at:], rank)) for at in range(1, len(token)))
    earlier = [(right, left) for left, right in splits if left < rank and right < rank]
    if not earlier:
        raise ValueError(f"Token {rank} is not made of two earlier ones: {token!r}.")
    right, left = min(earlier)
    return left, right


def _bytes_at(place: int, numbers: Iterable[int]) -> bytes:
    return bytes(number >> 8 * place & 0xFF for number in numbers)


def _numbers(columns: bytes) -> tuple[int, ...]:
    count = len(columns) // WIDTH
    words = bytearray(4 * count)
    for place in range(WIDTH):
        words[place::4] = columns[place * count : (place + 1) * count]
    return struct.unpack(f"<{count}I", words)
