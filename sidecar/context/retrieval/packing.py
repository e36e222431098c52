"""Packs the best messages of the past into the available tokens: whole messages first, then parts of long
ones around the match. Pure and deterministic; the result never exceeds the limit as counted by `count`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

import msgspec

from ...model.recall import MessageCandidate
from ...text.token_estimate import CountTokens
from .dates import day_of
from .ranking import Scored

MIN_PART = 16
"""Tokens: a smaller piece of a message carries no information."""

ROUNDS = 3
"""The whole has fewer tokens than the sum of its lines: the difference is filled again."""

FINE = 8000
"""Tokens: with a larger limit, the rest after the first round is not worth counting everything again."""

MAX_MISSES = 48
"""Consecutive messages that are too large for the rest, before it is filled with parts."""

MAX_PARTS = 4

MIN_SCORE = 0.0005
"""Messages that are less likely needed are omitted even if they would fit."""

COMPARED_LETTERS = 400
"""At the beginning and end of two messages, to detect that one repeats the other."""

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


def pack_snippets(scored: Sequence[Scored], count: CountTokens, max_tokens: int) -> list[Snippet]:
    """Return the snippets to send, by day and in the chat's order. `scored` has the best for its size first."""
    packer = _Packer(count, max_tokens)
    packer.fill(_without_repeats(scored))
    return packer.fitting()


def render_snippets(snippets: Iterable[Snippet]) -> str:
    """Render a line with the day whenever it changes, and each message after the name or role of its speaker."""
    lines: list[str] = []
    day = None
    for snippet in snippets:
        if (said := day_of(snippet.ts)) != day:
            day = said
            lines.append(f"{day}:")
        lines.append(_line(snippet))
    return "\n".join(lines)


class _Packer:
    def __init__(self, count: CountTokens, max_tokens: int) -> None:
        self._count = count
        self._max = max_tokens
        self._left = max_tokens
        self._taken: list[Snippet] = []
        self._days: set[object] = set()

    def fill(self, scored: Sequence[Scored]) -> None:
        rest = scored
        # Prices of single lines add up to more than the whole: counting it again shows what is left.
        for _ in range(ROUNDS):
            if self._left < MIN_PART or not rest:
                return
            taken = len(self._taken)
            # What did not fit is tried again: the recount may have freed enough for it.
            rest = self._whole(rest)
            if len(self._taken) == taken or self._max > FINE:
                break  # counting the whole again would not change anything
            self._left = self._max - self._count(render_snippets(self._by_date()))
        # Until here the best for its size came first; a part has the size that is left, so only the score
        # counts.
        by_score = sorted(rest[:MAX_MISSES], key=lambda one: (-one.score, -one.candidate.id))
        for one in by_score[:MAX_PARTS]:
            space = self._left - self._price(_snippet(one.candidate, ""))
            if space >= MIN_PART and (text := best_part(one.candidate.text, one.terms, self._count, space)):
                self._take(_snippet(one.candidate, text, whole=False))

    def _whole(self, scored: Sequence[Scored]) -> list[Scored]:
        """Take whole messages while some fit; return the rest."""
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

    def _by_date(self) -> list[Snippet]:
        return sorted(self._taken, key=lambda snippet: (day_of(snippet.ts), snippet.ordinal, snippet.id))

    def fitting(self) -> list[Snippet]:
        """Return what was taken, in order. The whole can have more tokens than its lines; then the last one
        is dropped."""
        while True:
            ordered = self._by_date()
            if not ordered or self._count(render_snippets(ordered)) <= self._max:
                return ordered
            # The last one was taken last, and so is the least valuable.
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


def _without_repeats(scored: Sequence[Scored]) -> list[Scored]:
    """Drop messages that repeat a better one."""
    known: dict[str, Scored] = {}
    for one in scored:
        if one.score >= MIN_SCORE:
            text = one.candidate.text
            compared = text[:COMPARED_LETTERS] + text[COMPARED_LETTERS:][-COMPARED_LETTERS:]
            known.setdefault(" ".join(compared.lower().split()), one)
    return list(known.values())


def best_part(text: str, terms: Iterable[str], count: CountTokens, max_tokens: int) -> str:
    """Return the sentences or lines around the one with most of the terms; "" when not even a part of it
    fits."""
    if not text.strip():
        return ""
    edges = sorted({0, *(found.end() for found in _BREAK.finditer(text)), len(text)})
    # Five letters stand for the stem: the terms are inflected as in the prompt, the text in its own way.
    stems = [term.lower()[:5] for term in terms]
    pieces = [text[start:end].lower() for start, end in itertools.pairwise(edges)]
    best = max(range(len(pieces)), key=lambda at: (sum(stem in pieces[at] for stem in stems), -at))
    first, last = best, best + 1
    if count(_with_gap_marks(text, edges[first], edges[last])) > max_tokens:
        return _cut(text, edges[first], edges[last], count, max_tokens)
    while True:
        grown = [(first, last + 1)] if last + 1 < len(edges) else []
        grown += [(first - 1, last)] if first else []
        fitting = [
            span
            for span in grown
            if count(_with_gap_marks(text, edges[span[0]], edges[span[1]])) <= max_tokens
        ]
        if not fitting:
            return _with_gap_marks(text, edges[first], edges[last])
        first, last = fitting[0]


def _cut(text: str, start: int, end: int, count: CountTokens, max_tokens: int) -> str:
    """Return as much of the beginning of a piece as fits."""
    low, high = 0, end - start
    # By halves, because tokens do not grow evenly with the letters. `middle` is rounded up, or the loop would
    # not end at two neighbours.
    while low < high:
        middle = (low + high + 1) // 2
        if count(_with_gap_marks(text, start, start + middle)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return _with_gap_marks(text, start, start + low) if low else ""


def _with_gap_marks(text: str, start: int, end: int) -> str:
    kept = text[start:end].strip()
    before = f"{GAP} " if text[:start].strip() else ""
    after = f" {GAP}" if text[end:].strip() else ""
    return f"{before}{kept}{after}"


def _snippet(one: MessageCandidate, text: str, whole: bool = True) -> Snippet:
    return Snippet(one.turn, one.ordinal, one.id, one.role, one.name, one.ts, text, whole)


def _line(snippet: Snippet) -> str:
    return f"{snippet.name or snippet.role}: {snippet.text}"
