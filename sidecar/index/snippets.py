"""What of the places that were found is shown, within a number of tokens that is never passed. Pure.

Every place first shows its best line, with the line that heads it. Then come the best lines of further places in the
same texts, and more of what the first ones hold and what stands around it, until the room is taken. Lines keep their
order, and a mark stands where some are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from ..model.index import Hit
from .ranking import Place

FIRST_SHARE = 0.5
"""Of the room that is left, for each place in turn: the first are most to the point."""

WORTH = 0.5
"""A line that holds this part of what the best one holds comes before what merely stands around."""

FURTHER = 12
EQUAL = 0.93
"""Places behind those that are hits: the best lines of so many are shown with these, when they are worth as much but
for a little. A log says the same thing many times, and any of them may be meant."""

GAP = 2
"""Lines between two that are shown, which are shown too: a mark would take as much room."""

MARK = 5
"""Tokens of a mark for left out lines, and of the line end."""

Count = Callable[[str], int]
Cut = Callable[[str, int], str]


def packed(places: Sequence[Place], limit: int, max_tokens: int, count: Count, cut: Cut) -> list[Hit]:
    """The best places as hits that count at most `max_tokens` together."""
    shown: list[_Excerpt] = []
    room = max_tokens
    for place in places[:limit]:
        excerpt = _Excerpt(place, count)
        taken = excerpt.begin(room)
        if not taken and not shown:
            taken = excerpt.squeeze(room, cut)
        if taken:
            shown.append(excerpt)
            room -= taken
    for place in places[limit : limit + FURTHER]:
        room -= _add_further(shown, place, room)
    for share in (FIRST_SHARE, 1.0):
        for excerpt in shown:
            room -= excerpt.grow(int(room * share))
    return _within([excerpt for excerpt in shown if excerpt.has_text()], max_tokens)


def _add_further(shown: Sequence[_Excerpt], place: Place, room: int) -> int:
    """Show the best line of a further place with a hit of the same text; the tokens that takes."""
    for excerpt in shown:
        if excerpt.place.source.id == place.source.id and _value(place) >= EQUAL * _value(excerpt.place):
            return excerpt.add(place, room)
    return 0


def _within(shown: list[_Excerpt], max_tokens: int) -> list[Hit]:
    """The hits, counted exactly; what was too much after all is taken back from the last ones."""
    hits = [excerpt.hit() for excerpt in shown]
    while sum(hit.tokens for hit in hits) > max_tokens:
        at = next((at for at in range(len(shown) - 1, -1, -1) if shown[at].shrink()), None)
        if at is None:
            shown, hits = shown[:-1], hits[:-1]
        else:
            hits[at] = shown[at].hit()
    return hits


class _Excerpt:
    """Segments that are shown as one hit: of its own chunk, and of further places in the same text.

    A segment is known by its place (0 is the hit's own) and number. Tokens are added up as it grows, and counted in
    `hit`.
    """

    def __init__(self, place: Place, count: Count) -> None:
        self.place = place
        self._count = count
        self._places = [place]
        self._shown: list[tuple[int, int]] = []
        self._squeezed: str | None = None

    def begin(self, room: int) -> int:
        """Show the best segment and the line that heads the chunk; the tokens that takes, 0 when there is no room."""
        return self._show_best(0, room)

    def squeeze(self, room: int, cut: Cut) -> int:
        """Show as much of the best segment as fits."""
        best = _best(self.place)
        self._squeezed = cut(self.place.segments[best].text, room)
        self._shown = [(0, best)]
        return self._count(self._squeezed)

    def add(self, place: Place, room: int) -> int:
        """Show the best segment of a further place."""
        if self._squeezed is not None:
            return 0
        self._places.append(place)
        return self._show_best(len(self._places) - 1, room)

    def grow(self, room: int) -> int:
        """Show more of its own chunk, as long as it takes no more than so many tokens; those that it takes."""
        taken = 0
        for at in self._wishes() if self._squeezed is None else ():
            if (0, at) in self._shown:
                continue
            price = self._price(0, at)
            if taken + price > room:
                break
            self._shown.append((0, at))
            taken += price
        return taken

    def shrink(self) -> bool:
        """Take back what was shown last; False when only the best is left."""
        if len(self._shown) < 2:
            return False
        self._shown.pop()
        return True

    def has_text(self) -> bool:
        return bool(self._text().strip())

    def hit(self) -> Hit:
        text = self._text()
        chunk = self.place.candidate.chunk
        lines = [self._line(shown) for shown in self._shown]
        return Hit(
            id=f"{self.place.source.id}.{chunk.start}",
            source=self.place.source,
            title=chunk.title or self.place.source.label,
            lines=(min(lines), max(lines)),
            text=text,
            score=round(self.place.score, 6),
            tokens=self._count(text),
        )

    def _show_best(self, number: int, room: int) -> int:
        place = self._places[number]
        best = _best(place)
        taken = self._price(number, best)
        if taken > room:
            return 0
        self._shown.append((number, best))
        for at in [0, *range(1, best)] if place.candidate.chunk.title and best <= GAP + 1 else [0]:
            price = self._price(number, at)
            if place.candidate.chunk.title and at != best and taken + price <= room:
                self._shown.append((number, at))
                taken += price
        return taken

    def _wishes(self) -> list[int]:
        """All segments in the order in which they would be shown: what holds much, then what stands around the best."""
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


def _value(place: Place) -> float:
    return place.values[_best(place)]


def _best(place: Place) -> int:
    return max(place.values, key=lambda at: (place.values[at], -at))
