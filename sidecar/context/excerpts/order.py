"""Ranks the lines of a text by importance when not all can be shown. Pure, and independent of the token
limit.

One order serves every limit: with more tokens, more of the same order is shown. First what the prompt refers
to, with the heads of the definitions around it; then the rest of those definitions; then less certain
positions; then the outline; then head and tail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .outline import Definition, Outline
from .pointing import Position

AROUND_LINES = 4
"""Lines on both sides of a position that is certainly meant."""

NEAR_LINES = 1
"""The same for one that may be meant: there are many of these."""

WIDE_LINES = 20
"""Used instead of a definition where the text has none."""

WHOLE_LINES = 400
"""Of one definition, on both sides of a position: the rest of a very long one comes after the outline."""

IMPORT_LINES = 24
"""Imports before the definitions; a longer list would displace them."""


def order_lines(count: int, structure: Outline, places: Sequence[Position]) -> list[int]:
    """Return all lines, each once."""
    return list(dict.fromkeys(_LineOrder(count, structure).lines(places)))


class _LineOrder:
    def __init__(self, count: int, structure: Outline) -> None:
        self._count = count
        self._imports = structure.imports
        self._all = structure.definitions
        self._heads = {line for one in self._all for line in _head(one)}
        self._owners = [-1] * count
        for at, one in enumerate(self._all):
            self._owners[one.first : one.last + 1] = [at] * (one.last + 1 - one.first)

    def lines(self, places: Sequence[Position]) -> Iterator[int]:
        strong = [place for place in places if place.strong]
        weak = [place for place in places if not place.strong]
        for group, around in ((strong, AROUND_LINES), (weak, NEAR_LINES)):
            for place in group:
                yield from range(place.first, place.last + 1)
            for place in group:
                yield from self._enclosing_lines(place, around)
            for place in group if group is strong else ():
                yield from self._definition(place)
        yield from self._outline()
        for place in weak:
            yield from self._definition(place)
        yield from self._ends()

    def _enclosing_lines(self, place: Position, around: int) -> Iterator[int]:
        """Return the heads that enclose a position, and some lines on both sides, within its definition."""
        for one in self._enclosing(place.first):
            yield from _head(one)
        low, high = self._borders(self._owners[place.first])
        for distance in range(1, around + 1):
            if place.last + distance <= high:
                yield place.last + distance
            if place.first - distance >= low:
                yield place.first - distance

    def _definition(self, place: Position) -> list[int]:
        """Return the innermost definition around a position, nearest lines first; of nested definitions, the
        heads first."""
        owner = self._owners[place.first]
        reach = WHOLE_LINES if owner >= 0 else WIDE_LINES
        low, high = self._borders(owner)
        near = range(max(low, place.first - reach), min(high, place.last + reach) + 1)
        lines = sorted(near, key=lambda line: max(place.first - line, line - place.last, 0))
        own = [line for line in lines if self._owners[line] == owner]
        if owner < 0:
            return own
        return [*own, *(line for line in lines if line in self._heads), *lines]

    def _borders(self, owner: int) -> tuple[int, int]:
        return (self._all[owner].first, self._all[owner].last) if owner >= 0 else (0, self._count - 1)

    def _enclosing(self, line: int) -> Iterator[Definition]:
        at = self._owners[line]
        while at >= 0:
            yield self._all[at]
            at = self._all[at].parent

    def _outline(self) -> Iterator[int]:
        """Return the imports, then heads from the outside in."""
        yield from self._imports[:IMPORT_LINES]
        for one in sorted(self._all, key=lambda one: one.depth):
            yield from _head(one)

    def _ends(self) -> Iterator[int]:
        """Return two lines from the head for each from the tail, until they meet."""
        low, high = 0, self._count - 1
        while low <= high:
            yield low
            if low + 1 <= high:
                yield low + 1
                yield high
            low, high = low + 2, high - 1


def _head(one: Definition) -> range:
    return range(one.head, one.head_last + 1)
