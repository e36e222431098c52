"""A text as it is kept, and as it is indexed: cut to what may be kept, packed, divided into slices of one commit.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from ..context.tokens.pieces import well_formed
from ..model.index import Chunk
from ..store.index_rows import Figures, Pending, Slice, packed
from .chunks import chunks
from .spelling import different

SLICE = 512 * 1024
"""Code points that one commit indexes: some 50 ms, which is what a turn's own commit may have to wait for it."""

COUNTED = 64 * 1024
"""Code points whose tokens are counted; those of a longer text are told by its beginning, middle and end."""

MAX_SEEN = 300_000
"""Words that are remembered while a text is divided; then it starts anew, and some are noted twice."""

CUT = "\n… the rest of {left} bytes was cut off here: more than `index.max_output_size` is not kept …\n"


def prepared(text: str, max_bytes: int, count: Callable[[str], int]) -> tuple[Figures, list[bytes]]:
    """What is told of a text, and its parts as they are kept."""
    whole = well_formed(text)
    kept = _cut(whole, max_bytes)
    lines = kept.count("\n") + (not kept.endswith("\n"))
    figures = Figures(len(kept), len(kept.encode()), lines, _tokens(kept, count), kept is not whole)
    return figures, packed(kept)


def rough_count(text: str) -> int:
    """About as many tokens as a text has. It stands in until the tables are loaded, for which no turn has to wait."""
    return len(text) // 4


def slices(text: str, pending: Pending, chunk_bytes: int, count: Callable[[str], int]) -> Iterator[Slice]:
    """What is left of a text to be indexed; the last one is marked as such, and tells how many tokens the text has."""
    seen: set[bytes] = set()
    group: list[Chunk] = []
    waiting: Slice | None = None
    for chunk in chunks(text, kind=pending.kind, path=pending.path, max_bytes=chunk_bytes):
        if chunk.start < pending.done:
            continue
        group.append(chunk)
        if chunk.end - group[0].start >= SLICE:
            if waiting:
                yield waiting
            waiting, group = _slice(text, group, seen, pending), []
    if group:
        if waiting:
            yield waiting
        waiting = _slice(text, group, seen, pending)
    last = waiting or Slice((), "", pending.done)
    yield msgspec.structs.replace(last, last=True, tokens=_tokens(text, count))


def _slice(text: str, group: Sequence[Chunk], seen: set[bytes], pending: Pending) -> Slice:
    start, end = group[0].start, group[-1].end
    if len(seen) > MAX_SEEN:
        seen.clear()
    entries = [(_named(chunk, pending), text[chunk.start : chunk.end]) for chunk in group]
    return Slice(entries, different(text[start:end], seen), end)


def _named(chunk: Chunk, pending: Pending) -> Chunk:
    """The first chunk is found by the text's own name."""
    if chunk.start or chunk.title:
        return chunk
    return msgspec.structs.replace(chunk, title=pending.label[:200])


def _cut(text: str, max_bytes: int) -> str:
    if len(text) * 4 <= max_bytes or (size := len(data := text.encode())) <= max_bytes:
        return text
    return data[:max_bytes].decode(errors="ignore") + CUT.format(left=size - max_bytes)


def _tokens(text: str, count: Callable[[str], int]) -> int:
    if len(text) <= COUNTED:
        return count(text)
    part = COUNTED // 4
    middle = len(text) // 2
    samples = (text[:part], text[middle : middle + part], text[-part:])
    return round(sum(map(count, samples)) * len(text) / (3 * part))
