"""Which version of a file the model has in view: a copy that came with a turn or was gathered by a compaction, and the
diffs that were appended since. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..model.content import Kept, Turn

MOST_DIFFS = 3
"""Of a copy a third: when the diffs since it are longer than that, the file is sent anew."""

GATHERED = "gathered"
"""Stands for a turn where a copy came with a compaction: the id of its block."""


class Copy(msgspec.Struct, frozen=True):
    """The version that is known: its hash, its bytes' blob, and where it stands."""

    hash: str
    source: str | None
    diffs: tuple[str, ...]
    """Blobs of the diffs since the whole copy."""
    turns: frozenset[str]
    """The turns that brought it: without one of them, the model does not have it."""


def copies(gathered: Sequence[Kept], turns: Iterable[Turn]) -> dict[str, Copy]:
    """By path, what the model has of the files when a request holds what was gathered and all of these turns."""
    known: dict[str, Copy] = {}
    for kept in gathered:
        _take(known, kept, GATHERED)
    for turn in turns:
        for kept in turn.context:
            _take(known, kept, turn.id)
    return known


def _take(known: dict[str, Copy], kept: Kept, turn: str) -> None:
    if not kept.path or not kept.hash:
        return
    before = known.get(kept.path)
    if kept.base is None:
        known[kept.path] = Copy(kept.hash, kept.source, (), frozenset((turn,)))
    elif before and before.hash == kept.base:
        diffs = (*before.diffs, kept.ref) if kept.ref else before.diffs
        known[kept.path] = Copy(kept.hash, kept.source, diffs, before.turns | {turn})
    else:
        known.pop(kept.path, None)  # the diff of a version that is not in view tells nothing


def without_files(turns: Sequence[Turn], up_to: str | None, otherwise: str | None) -> int:
    """How many of the first turns are sent without their files, because a compaction has gathered those.

    `up_to` is the newest of them; where that has left the view, `otherwise` stands for it.
    """
    if up_to is None:
        return 0
    places = {turn.id: place for place, turn in enumerate(turns)}
    for id in (up_to, otherwise):
        if id in places:
            return places[id] + 1
    return 0


def gathered_text(gathered: Iterable[Kept], texts: Mapping[str, str]) -> str:
    found = [texts.get(kept.ref or "") for kept in gathered]
    return "\n\n".join(text for text in found if text)
