"""Which version of a file the model has: a copy from a turn or a compaction, plus the diffs sent since. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...model.content import SentBlock, Turn

DIFF_COST_FACTOR = 3
"""When the diffs since a copy are longer than a third of it, the whole file is sent again."""

FILE_COPIES = "gathered"
"""The block id that takes the place of a turn's id for a copy that came with a compaction."""


class KnownVersion(msgspec.Struct, frozen=True):
    """A version that the model has: its hash, the blob of its bytes, and the turns that it came with."""

    hash: str
    source: str | None
    diffs: tuple[str, ...]
    """Blobs of the diffs since the whole copy."""
    turns: frozenset[str]
    """The turns that brought it: without one of them, the model does not have it."""


def known_versions(file_copies: Sequence[SentBlock], turns: Iterable[Turn]) -> dict[str, KnownVersion]:
    """By path, the file versions that the model has when a request contains the compaction's copies and these turns."""
    known: dict[str, KnownVersion] = {}
    for kept in file_copies:
        _add_version(known, kept, FILE_COPIES)
    for turn in turns:
        for kept in turn.context:
            _add_version(known, kept, turn.id)
    return known


def _add_version(known: dict[str, KnownVersion], kept: SentBlock, turn: str) -> None:
    if not kept.path or not kept.hash:
        return
    before = known.get(kept.path)
    if kept.base is None:
        known[kept.path] = KnownVersion(kept.hash, kept.source, (), frozenset((turn,)))
    elif before and before.hash == kept.base:
        diffs = (*before.diffs, kept.ref) if kept.ref else before.diffs
        known[kept.path] = KnownVersion(kept.hash, kept.source, diffs, before.turns | {turn})
    else:
        known.pop(kept.path, None)  # a diff is useless without the version that it is based on


def without_files(turns: Sequence[Turn], up_to: str | None, otherwise: str | None) -> int:
    """How many of the first turns are sent without their files, because a compaction has collected those.

    `up_to` is the newest of them; when that turn is no longer among `turns`, `otherwise` is used.
    """
    if up_to is None:
        return 0
    places = {turn.id: place for place, turn in enumerate(turns)}
    for id in (up_to, otherwise):
        if id in places:
            return places[id] + 1
    return 0


def file_copies_text(file_copies: Iterable[SentBlock], texts: Mapping[str, str]) -> str:
    found = [texts.get(kept.ref or "") for kept in file_copies]
    return "\n\n".join(text for text in found if text)
