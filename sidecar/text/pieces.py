"""Divides a text into a tree of pieces that are named by their hash.

A text that shares most of its lines with another, such as a history that has grown by a turn or lost its oldest one,
shares most of its pieces too: where a piece ends depends on the lines around that place alone.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator

import msgspec

HASH_BYTES = 16

PIECE_LINES = 8
"""A piece ends after every eighth line on average: a line that is added rewrites few others, and a piece is still
much longer than the row that stores it."""

LEAST_PIECE, MOST_PIECE = 512, 8 * 1024
"""Characters of a piece: short lines are collected, and long ones divided."""

NODE_CHILDREN, MOST_CHILDREN = 16, 128
"""Hashes of a node, on average and at most."""


class TextPiece(msgspec.Struct, frozen=True):
    """A part of a text, or a node: the hashes of its parts one after the other."""

    hash: bytes
    data: bytes
    is_node: bool = False

    @property
    def parts(self) -> list[bytes]:
        return split_hashes(self.data) if self.is_node else []


class PieceTree(msgspec.Struct, frozen=True):
    root: bytes
    pieces: dict[bytes, TextPiece]


def divide_text(text: str) -> PieceTree:
    """Return the tree of a text, which has at least one piece."""
    pieces: dict[bytes, TextPiece] = {}
    level = [_add(pieces, part.encode("utf-8", "surrogatepass"), is_node=False) for part in _parts(text)]
    while len(level) > 1:
        level = [_add(pieces, b"".join(group), is_node=True) for group in _groups(level)]
    return PieceTree(level[0], pieces)


def split_hashes(data: bytes) -> list[bytes]:
    return [data[start : start + HASH_BYTES] for start in range(0, len(data), HASH_BYTES)]


def _add(pieces: dict[bytes, TextPiece], data: bytes, *, is_node: bool) -> bytes:
    hash = hashlib.blake2b(data, digest_size=HASH_BYTES, person=b"node" if is_node else b"text").digest()
    pieces.setdefault(hash, TextPiece(hash, data, is_node))
    return hash


def _parts(text: str) -> Iterator[str]:
    """Yield the text in parts that end after lines whose checksum says so."""
    begin = end = 0
    for line in text.splitlines(keepends=True):
        end += len(line)
        is_long = end - begin >= MOST_PIECE
        if is_long or (end - begin >= LEAST_PIECE and _checksum(line) % PIECE_LINES == 0):
            yield from _cut(text[begin:end])
            begin = end
    if begin < len(text) or not text:
        yield text[begin:]


def _cut(part: str) -> Iterable[str]:
    return (part[start : start + MOST_PIECE] for start in range(0, len(part), MOST_PIECE))


def _checksum(line: str) -> int:
    return zlib.crc32(line.encode("utf-8", "surrogatepass"))


def _groups(level: list[bytes]) -> Iterator[list[bytes]]:
    """Yield the hashes in groups that end after a hash that says so; two in the first at least, so that it ends."""
    group: list[bytes] = []
    for hash in level:
        group.append(hash)
        is_end = len(group) > 1 and hash[0] % NODE_CHILDREN == 0
        if is_end or len(group) == MOST_CHILDREN:
            yield group
            group = []
    if group:
        yield group
