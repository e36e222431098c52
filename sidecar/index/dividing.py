"""Prepares a text for storage and indexing: cut to the limit, compressed, divided into slices of one commit.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from ..model.index import IndexChunk
from ..store.search.index_rows import IndexSlice, PendingSource, TextFigures, compressed_parts
from ..text.surrogates import well_formed
from .chunks import chunks
from .spelling import new_words

SLICE_CHARACTERS = 256 * 1024
"""Code points indexed per commit: about 25 ms, which is how long a turn's own commit may have to wait."""

COUNTED = 64 * 1024
"""Code points whose tokens are counted; a longer text is estimated from its beginning, middle and end."""

MAX_SEEN = 300_000
"""Words that are remembered while a text is divided; then the set is cleared, and some are stored twice."""

CUT_NOTICE = (
    "\n… the rest of {left} bytes was cut off here: more than `index.max_output_size` is not kept …\n"
)


def prepare_text(text: str, max_bytes: int, count: Callable[[str], int]) -> tuple[TextFigures, list[bytes]]:
    """Return the measurements of a text, and its parts in stored form."""
    whole = well_formed(text)
    kept = _cut(whole, max_bytes)
    lines = kept.count("\n") + (not kept.endswith("\n"))
    figures = TextFigures(len(kept), len(kept.encode()), lines, count_tokens(kept, count), kept is not whole)
    return figures, compressed_parts(kept)


def slices(
    text: str, pending: PendingSource, chunk_bytes: int, count: Callable[[str], int]
) -> Iterator[IndexSlice]:
    """Return the slices of a text that are not indexed yet; the last one is marked, and has the token count
    of the text."""
    seen: set[bytes] = set()
    group: list[IndexChunk] = []
    waiting: IndexSlice | None = None
    for chunk in chunks(text, kind=pending.kind, path=pending.path, max_bytes=chunk_bytes):
        if chunk.start < pending.done:
            continue
        group.append(chunk)
        if chunk.end - group[0].start >= SLICE_CHARACTERS:
            if waiting:
                yield waiting
            waiting, group = _slice(text, group, seen, pending), []
    if group:
        if waiting:
            yield waiting
        waiting = _slice(text, group, seen, pending)
    last = waiting or IndexSlice((), "", pending.done)
    yield msgspec.structs.replace(last, last=True, tokens=count_tokens(text, count))


def _slice(text: str, group: Sequence[IndexChunk], seen: set[bytes], pending: PendingSource) -> IndexSlice:
    start, end = group[0].start, group[-1].end
    if len(seen) > MAX_SEEN:
        seen.clear()
    entries = [(_with_label(chunk, pending), text[chunk.start : chunk.end]) for chunk in group]
    return IndexSlice(entries, new_words(text[start:end], seen), end)


def _with_label(chunk: IndexChunk, pending: PendingSource) -> IndexChunk:
    """Add the label of the text to its first chunk, which is found by it."""
    if chunk.start or chunk.title:
        return chunk
    return msgspec.structs.replace(chunk, title=pending.label[:200])


def _cut(text: str, max_bytes: int) -> str:
    if len(text) * 4 <= max_bytes or (size := len(data := text.encode())) <= max_bytes:
        return text
    return data[:max_bytes].decode(errors="ignore") + CUT_NOTICE.format(left=size - max_bytes)


def count_tokens(text: str, count: Callable[[str], int]) -> int:
    """Return the tokens of a text: counted, or computed from samples of a long one."""
    if len(text) <= COUNTED:
        return count(text)
    part = COUNTED // 4
    middle = len(text) // 2
    samples = (text[:part], text[middle : middle + part], text[-part:])
    return round(sum(map(count, samples)) * len(text) / (3 * part))
