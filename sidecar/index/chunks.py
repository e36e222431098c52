"""Where a text is divided so that its parts can be found: on natural borders, never inside a code point. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.index import Chunk

CHUNK_BYTES = 4 * 1024


def chunks(text: str, max_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """The whole text in order, in chunks of at most so many bytes."""
    start = size = at = 0
    first = line = 1
    for piece in text.splitlines(keepends=True) if "\n" not in text else _lines(text):
        length = len(piece.encode())
        if size and size + length > max_bytes:
            yield Chunk(start, at, (first, line - 1))
            start, first, size = at, line, 0
        if length > max_bytes:
            yield from _long(piece, at, line, max_bytes)
            start, first, size = at + len(piece), line + 1, 0
        else:
            size += length
        at += len(piece)
        line += 1
    if size:
        yield Chunk(start, at, (first, line - 1))


def _lines(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield text[at:end]
        at = end


def _long(piece: str, start: int, line: int, max_bytes: int) -> Iterator[Chunk]:
    step = max_bytes // 4
    for at in range(0, len(piece), step):
        yield Chunk(start + at, start + min(at + step, len(piece)), (line, line))
