"""Puts the best of the past into the room there is: whole messages first, then parts of long ones around what was
found. Pure and deterministic; what comes out never takes more than its room, as the given count counts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ...model.recall import Candidate
from .dates import day_of
from .ranking import Scored

Count = Callable[[str], int]

MIN_PART = 16
"""Tokens: a smaller piece of a message tells nothing."""

ROUNDS = 3
"""The whole counts less than its lines, one by one: what is left then is filled again."""

FINE = 8000
"""Tokens: in a larger room what is left after the first time is not worth counting everything again."""

MAX_MISSES = 48
"""Messages in a row that are too large for what is left, until the rest is filled with parts."""

MAX_PARTS = 4

MIN_SCORE = 0.0005
"""What is less likely needed than this is left out even when there is room."""

COMPARED_LETTERS = 400
"""At the beginning and at the end of two messages, to see that one repeats the other."""

GAP = "…"

_BREAK = re.compile(r"(?<=[.!?。！？])\s+|\n+")


class Snippet(msgspec.Struct, frozen=True):
    """A message of the past, or a part of it."""

    turn: str
    ordinal: int
    id: int
    role: str
    name: str | None
    ts: int
    text: str
    whole: bool = True


def packed(scored: Sequence[Scored], count: Count, max_tokens: int) -> list[Snippet]:
    """What goes into the window, by days and in the chat's order. `scored` has the best for its room first."""
    packer = _Packer(count, max_tokens)
    packer.fill(_unlike(scored))
    return packer.fitting()


def rendered(snippets: Iterable[Snippet]) -> str:
    """A line with the day, whenever it changes, and each message behind the name or role of who said it."""
    lines: list[str] = []
    day = None
    for snippet in snippets:
        if (said := day_of(snippet.ts)) != day:
            day = said
            lines.append(f"{day}:")
        lines.append(_line(snippet))
    return "\n".join(lines)


class _Packer:
    def __init__(self, count: Count, max_tokens: int) -> None:
        self._count = count
        self._max = max_tokens
        self._left = max_tokens
        self._taken: list[Snippet] = []
        self._days: set[object] = set()

    def fill(self, scored: Sequence[Scored]) -> None:
        rest = scored
        for _ in range(ROUNDS):
            if self._left < MIN_PART or not rest:
                return
            taken = len(self._taken)
            rest = self._whole(rest)
            if len(self._taken) == taken or self._max > FINE:
                break  # then counting the whole again tells nothing new
            self._left = self._max - self._count(rendered(self._ordered()))
        by_score = sorted(rest[:MAX_MISSES], key=lambda one: (-one.score, -one.candidate.id))
        for one in by_score[:MAX_PARTS]:
            room = self._left - self._price(_snippet(one.candidate, ""))
            if room >= MIN_PART and (text := part(one.candidate.text, one.terms, self._count, room)):
                self._take(_snippet(one.candidate, text, whole=False))

    def _whole(self, scored: Sequence[Scored]) -> list[Scored]:
        """Take whole messages as long as some fit; what is left over."""
        rest: list[Scored] = []
        misses = 0
        for at, one in enumerate(scored):
            if self._left < MIN_PART or misses >= MAX_MISSES:
                return [*rest, *scored[at:]]
            if self._take(_snippet(one.candidate, one.candidate.text)):
                misses = 0
            else:
                rest.append(one)
                misses += 1
        return rest

    def _ordered(self) -> list[Snippet]:
        return sorted(self._taken, key=lambda snippet: (day_of(snippet.ts), snippet.ordinal, snippet.id))

    def fitting(self) -> list[Snippet]:
        """What was taken, in order. Tokens join otherwise in the whole than line by line: then the last one goes."""
        while True:
            ordered = self._ordered()
            if not ordered or self._count(rendered(ordered)) <= self._max:
                return ordered
            self._taken.pop()

    def _take(self, snippet: Snippet) -> bool:
        price = self._price(snippet)
        if price > self._left:
            return False
        self._left -= price
        self._taken.append(snippet)
        self._days.add(day_of(snippet.ts))
        return True

    def _price(self, snippet: Snippet) -> int:
        day = day_of(snippet.ts)
        return self._count(_line(snippet) + "\n") + (0 if day in self._days else self._count(f"{day}:\n"))


def _unlike(scored: Sequence[Scored]) -> list[Scored]:
    """Without those that say again what a better one says."""
    known: dict[str, Scored] = {}
    for one in scored:
        if one.score >= MIN_SCORE:
            text = one.candidate.text
            compared = text[:COMPARED_LETTERS] + text[COMPARED_LETTERS:][-COMPARED_LETTERS:]
            known.setdefault(" ".join(compared.lower().split()), one)
    return list(known.values())


def part(text: str, terms: Iterable[str], count: Count, max_tokens: int) -> str:
    """The sentences or lines around the one that holds most of the terms; "" when not even a piece of it fits."""
    if not text.strip():
        return ""
    edges = sorted({0, *(found.end() for found in _BREAK.finditer(text)), len(text)})
    stems = [term.lower()[:5] for term in terms]
    pieces = [text[start:end].lower() for start, end in itertools.pairwise(edges)]
    best = max(range(len(pieces)), key=lambda at: (sum(stem in pieces[at] for stem in stems), -at))
    first, last = best, best + 1
    if count(_marked(text, edges[first], edges[last])) > max_tokens:
        return _cut(text, edges[first], edges[last], count, max_tokens)
    while True:
        grown = [(first, last + 1)] if last + 1 < len(edges) else []
        grown += [(first - 1, last)] if first else []
        fitting = [
            span for span in grown if count(_marked(text, edges[span[0]], edges[span[1]])) <= max_tokens
        ]
        if not fitting:
            return _marked(text, edges[first], edges[last])
        first, last = fitting[0]


def _cut(text: str, start: int, end: int, count: Count, max_tokens: int) -> str:
    """As much of the beginning of a piece as fits."""
    low, high = 0, end - start
    while low < high:
        middle = (low + high + 1) // 2
        if count(_marked(text, start, start + middle)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return _marked(text, start, start + low) if low else ""


def _marked(text: str, start: int, end: int) -> str:
    kept = text[start:end].strip()
    before = f"{GAP} " if text[:start].strip() else ""
    after = f" {GAP}" if text[end:].strip() else ""
    return f"{before}{kept}{after}"


def _snippet(one: Candidate, text: str, whole: bool = True) -> Snippet:
    return Snippet(one.turn, one.ordinal, one.id, one.role, one.name, one.ts, text, whole)


def _line(snippet: Snippet) -> str:
    return f"{snippet.name or snippet.role}: {snippet.text}"
