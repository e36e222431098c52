"""Selects what is shown of the results, within a strict number of tokens. Pure.

Every result first shows its best line, with the heading of its chunk. Then come the best lines of further
results in the same texts, and more matching and surrounding lines of the first ones, until the limit is
reached. Lines keep their order, with a mark where some are omitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..model.index import IndexHit
from ..text.token_estimate import CountTokens, CutText
from .ranking import RankedChunk

FIRST_SHARE = 0.5
"""Share of the remaining tokens for each result in turn: the first are the most relevant."""

WORTH = 0.5
"""A line with this share of the best line's score comes before surrounding lines."""

MAX_FURTHER_CHUNKS = 12
EQUAL = 0.93
"""How many results after the hits can add their best lines, and the share of the score that they need. A log
repeats itself, and any of these lines may be meant."""

GAP = 2
"""Lines between two shown ones that are shown too: a mark would take as many tokens."""

MARK = 5
"""Tokens of an omission mark, and of the line end."""


def pack_hits(
    places: Sequence[RankedChunk], limit: int, max_tokens: int, count: CountTokens, cut: CutText
) -> list[IndexHit]:
    """Return the best results as hits with at most `max_tokens` together."""
    shown: list[_Excerpt] = []
    space = max_tokens
    for place in places[:limit]:
        excerpt = _Excerpt(place, count)
        taken = excerpt.begin(space)
        if not taken and not shown:
            taken = excerpt.squeeze(space, cut)
        if taken:
            shown.append(excerpt)
            space -= taken
    for place in places[limit : limit + MAX_FURTHER_CHUNKS]:
        space -= _add_further(shown, place, space)
    for share in (FIRST_SHARE, 1.0):
        for excerpt in shown:
            space -= excerpt.grow(int(space * share))
    return _bounded_hits([excerpt for excerpt in shown if excerpt.has_text()], max_tokens)


def _add_further(shown: Sequence[_Excerpt], place: RankedChunk, space: int) -> int:
    """Show the best line of a further result with a hit of the same text; return its tokens."""
    for excerpt in shown:
        if excerpt.place.source.id == place.source.id and _value(place) >= EQUAL * _value(excerpt.place):
            return excerpt.add(place, space)
    return 0


def _bounded_hits(shown: list[_Excerpt], max_tokens: int) -> list[IndexHit]:
    """Return the hits, counted exactly; the excess is removed from the last ones."""
    hits = [excerpt.hit() for excerpt in shown]
    while sum(hit.tokens for hit in hits) > max_tokens:
        at = next((at for at in range(len(shown) - 1, -1, -1) if shown[at].shrink()), None)
        if at is None:
            shown, hits = shown[:-1], hits[:-1]
        else:
            hits[at] = shown[at].hit()
    return hits


class _Excerpt:
    """Segments shown as one hit: of its own chunk, and of further results in the same text.

    A segment is identified by its result (0 is the hit's own) and number. Tokens are summed while it grows,
    and counted in `hit`.
    """

    def __init__(self, place: RankedChunk, count: CountTokens) -> None:
        self.place = place
        self._count = count
        self._places = [place]
        self._shown: list[tuple[int, int]] = []
        self._squeezed: str | None = None

    def begin(self, space: int) -> int:
        """Show the best segment and the heading of the chunk; return their tokens, 0 when they do not fit."""
        return self._show_best(0, space)

    def squeeze(self, space: int, cut: CutText) -> int:
        """Show as much of the best segment as fits."""
        best = _best(self.place)
        self._squeezed = cut(self.place.segments[best].text, space)
        self._shown = [(0, best)]
        return self._count(self._squeezed)

    def add(self, place: RankedChunk, space: int) -> int:
        """Show the best segment of a further result."""
        if self._squeezed is not None:
            return 0
        self._places.append(place)
        return self._show_best(len(self._places) - 1, space)

    def grow(self, space: int) -> int:
        """Show more of its own chunk within so many tokens; return those that it takes."""
        taken = 0
        for at in self._wishes() if self._squeezed is None else ():
            if (0, at) in self._shown:
                continue
            price = self._price(0, at)
            if taken + price > space:
                break
            self._shown.append((0, at))
            taken += price
        return taken

    def shrink(self) -> bool:
        """Remove what was shown last; False when only the best segment is left."""
        if len(self._shown) < 2:
            return False
        self._shown.pop()
        return True

    def has_text(self) -> bool:
        return bool(self._text().strip())

    def hit(self) -> IndexHit:
        text = self._text()
        chunk = self.place.candidate.chunk
        lines = [self._line(shown) for shown in self._shown]
        return IndexHit(
            id=f"{self.place.source.id}.{chunk.start}",
            source=self.place.source,
            title=chunk.title or self.place.source.label,
            lines=(min(lines), max(lines)),
            text=text,
            score=round(self.place.score, 6),
            tokens=self._count(text),
        )

    def _show_best(self, number: int, space: int) -> int:
        place = self._places[number]
        best = _best(place)
        taken = self._price(number, best)
        if taken > space:
            return 0
        self._shown.append((number, best))
        for at in [0, *range(1, best)] if place.candidate.chunk.title and best <= GAP + 1 else [0]:
            price = self._price(number, at)
            if place.candidate.chunk.title and at != best and taken + price <= space:
                self._shown.append((number, at))
                taken += price
        return taken

    def _wishes(self) -> list[int]:
        """Return all segments in display priority: high scores first, then what surrounds the best."""
        values = self.place.values
        best = _best(self.place)
        good = [at for at in values if values[at] >= WORTH * values[best]]
        around = sorted(range(len(self.place.segments)), key=lambda at: (abs(at - best), at))
        return list(dict.fromkeys([*sorted(good, key=lambda at: (-values[at], at)), *around]))

    def _price(self, number: int, at: int) -> int:
        return self._count(self._places[number].segments[at].text) + MARK

    def _line(self, shown: tuple[int, int]) -> int:
        place = self._places[shown[0]]
        return place.candidate.chunk.lines[0] + place.segments[shown[1]].line

    def _text(self) -> str:
        if self._squeezed is not None:
            return self._squeezed
        ordered = sorted(self._shown, key=lambda one: (self._places[one[0]].candidate.id, one[1]))
        text = self._piece(ordered[0])
        for before, after in pairwise(ordered):
            text += self._joint(before, after) + self._piece(after)
        return text

    def _piece(self, shown: tuple[int, int]) -> str:
        return self._places[shown[0]].segments[shown[1]].text

    def _joint(self, before: tuple[int, int], after: tuple[int, int]) -> str:
        gap = self._line(after) - self._line(before) - 1
        if gap < 0:
            return "" if before[0] == after[0] and before[1] + 1 == after[1] else " … "
        return f"\n… {gap} lines …\n" if gap else "\n"


def _value(place: RankedChunk) -> float:
    return place.values[_best(place)]


def _best(place: RankedChunk) -> int:
    return max(place.values, key=lambda at: (place.values[at], -at))
