"""How likely a prompt needs each message of the past again. Pure: no clock, no chance, no IO.

What counts: the rare words that a message holds itself and that are said around it, where it stands among all by words
and by letters, how much its session was about the subject, whether the user said it, whether its speaker or its day is
named.
The weights are those of a logistic model, fitted on labelled chats and measured on others (`benchmarks/recall.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ...model.recall import Candidate, Pool, Terms
from .dates import Span, day_of, spans
from .terms import terms_of

FUSION = 10
"""The constant of reciprocal rank fusion. Larger ones tell the first places apart less; 60 found as much."""

BYTES_A_TOKEN = 4
SMALL = 30
"""Tokens: below this size a message takes no less room, for its speaker's name and its line."""

USUAL = 60
"""Tokens of a message in a conversation."""

LONG_ANSWER = 120
"""Tokens: a longer answer comes after what the user said."""

SESSION_GAP_MS = 6 * 3600 * 1000
"""A longer silence begins another session, and what was said before it is no neighbour."""

ADJACENT = 3
"""By so much the numbers of two neighbouring turns may differ: turns that a rewind has hidden have numbers too."""

BY_LETTERS = 0.7
"""A word that is found inside another or misspelt tells less."""

SPEAKER = 0.4
"""A speaker's name stands in many messages, most of them the other's."""

DAYS_AFTER = 8
"""What happened on a day is told some days later."""

WEIGHTS = {
    "own": 2.3,
    "together": 1.8,
    "place": 2.7,
    "session": 2.0,
    "user": 0.5,
    "speaker": 0.9,
    "day": 1.4,
}
BIAS = -9.3
"""What nothing speaks for is needed once in ten thousand times."""


class Scored(msgspec.Struct, frozen=True):
    """A message, and how likely it is needed, from 0 to 1."""

    candidate: Candidate
    score: float

    @property
    def terms(self) -> frozenset[str]:
        return self.candidate.words | self.candidate.letters


def size(text: str) -> int:
    """About how many tokens; near enough to compare messages by."""
    return len(text.encode(errors="replace")) // BYTES_A_TOKEN + 1


def ranked(prompt: str, pool: Pool, without: frozenset[str] = frozenset()) -> list[Scored]:
    """Messages by how much they are worth for the room they take, the best first; none of the turns in `without`,
    which are sent anyway but tell what is said around them."""
    if not pool.candidates:
        return []
    scored = [
        Scored(candidate, _likely(features))
        for candidate, features in zip(pool.candidates, features_of(prompt, pool), strict=True)
        if candidate.turn not in without
    ]
    scored.sort(key=lambda one: (-one.score / max(SMALL, size(one.candidate.text)), -one.candidate.id))
    return scored


def features_of(prompt: str, pool: Pool) -> list[dict[str, float]]:
    """What is known of each candidate, by the names of the weights."""
    return _Field(terms_of(prompt), pool, spans(prompt, pool.newest)).features()


def _likely(features: dict[str, float]) -> float:
    return 1 / (1 + math.exp(-BIAS - sum(WEIGHTS[name] * value for name, value in features.items())))


class _Field:
    """The candidates in the chat's order, and figures of each."""

    def __init__(self, terms: Terms, pool: Pool, named: Sequence[Span]) -> None:
        self._all = pool.candidates
        self._named = named
        self._speakers = {word for one in self._all if one.name for word in one.name.lower().split()}
        self._called = self._speakers & terms.words.keys()
        self._worth = {term: self._worth_of(term, terms, pool) for term in pool.frequency}
        self._sum = sum(self._worth.values()) or 1.0
        self._sizes = [size(one.text) for one in self._all]
        self._average = sum(self._sizes) / len(self._sizes)
        self._beside = {step: self._neighbours(step) for step in (1, 2, 3)}

    def features(self) -> list[dict[str, float]]:
        covered = [self._covered(one.words, one.letters) / self._sum for one in self._all]
        own = _shared([value * self._short(at) for at, value in enumerate(covered)])
        together, fused, sessions = self._together(), self._fused(own, covered), self._sessions(own)
        return [
            {
                "own": own[at],
                "together": together[at],
                "place": fused[at],
                "session": sessions[at],
                "user": float(not self._is_long_answer(at)),
                "speaker": float(not self._called.isdisjoint((one.name or "").lower().split())),
                "day": self._day(one.ts),
            }
            for at, one in enumerate(self._all)
        ]

    def _worth_of(self, term: str, terms: Terms, pool: Pool) -> float:
        often = pool.frequency[term]
        if not often:
            return 0.0
        rarity = math.log(1 + (pool.total - min(often, pool.total) + 0.5) / (often + 0.5))
        return rarity * terms.words.get(term, 1.0) * (SPEAKER if term in self._speakers else 1.0)

    def _covered(self, words: frozenset[str], letters: frozenset[str]) -> float:
        worth = self._worth
        return sum(worth[word] for word in words) + BY_LETTERS * sum(worth[term] for term in letters)

    def _short(self, at: int) -> float:
        """What a match is worth by the length of its message, as in BM25."""
        return 2.2 / (1 + 1.2 * (0.25 + 0.75 * self._sizes[at] / self._average))

    def _is_long_answer(self, at: int) -> bool:
        return self._all[at].role != "user" and self._sizes[at] >= LONG_ANSWER

    def _modest(self, at: int) -> float:
        """What a long message loses in its place, and a long answer more."""
        loss = 0.9 if self._is_long_answer(at) else 0.5
        return float((max(USUAL, self._sizes[at]) / USUAL) ** -loss)

    def _neighbours(self, step: int) -> list[list[int]]:
        """For each message those that stand so many before and after it, in the same session."""
        found: list[list[int]] = [[] for _ in self._all]
        for at in range(step, len(self._all)):
            one, before = self._all[at], self._all[at - step]
            if one.ordinal - before.ordinal <= step * ADJACENT and abs(one.ts - before.ts) <= SESSION_GAP_MS:
                found[at].append(at - step)
                found[at - step].append(at)
        return found

    def _together(self) -> list[float]:
        """The share of the terms that a message and those around it hold together."""
        shares = []
        for at, one in enumerate(self._all):
            words, letters = one.words, one.letters
            for other in (*self._beside[1][at], *self._beside[2][at]):
                words, letters = words | self._all[other].words, letters | self._all[other].letters
            shares.append(self._covered(words, letters - words) / self._sum)
        return shares

    def _fused(self, own: Sequence[float], covered: Sequence[float]) -> list[float]:
        """Reciprocal rank fusion of two orders: by all terms, where neighbours of a hit have their part, and by those
        that were looked for by their letters because hardly anybody says them."""
        sought = frozenset(term for one in self._all for term in one.letters)
        by_letters = [self._covered(one.words & sought, one.letters) for one in self._all]
        fused = [0.0] * len(own)
        for order in (self._in_order(own, covered), _descending(by_letters)):
            for place, at in enumerate(order):
                fused[at] += FUSION / (FUSION + place)
        return fused

    def _in_order(self, own: Sequence[float], covered: Sequence[float]) -> list[int]:
        values = [
            (value * (1 + 0.5 * covered[at]) + self._best(own, at, 1) + 0.3 * self._best(own, at, 2, 3))
            * self._modest(at)
            for at, value in enumerate(own)
        ]
        return _descending(values)

    def _best(self, values: Sequence[float], at: int, *steps: int) -> float:
        return max((values[other] for step in steps for other in self._beside[step][at]), default=0.0)

    def _sessions(self, own: Sequence[float]) -> list[float]:
        """How much the session of a message is about the subject: its three best."""
        starts = [0]
        for at in range(1, len(own)):
            if abs(self._all[at].ts - self._all[at - 1].ts) > SESSION_GAP_MS:
                starts.append(at)
        figures: list[float] = []
        for start, end in zip(starts, [*starts[1:], len(own)], strict=True):
            best = sorted(own[start:end], reverse=True)[:3]
            figures += [sum(best) / len(best)] * (end - start)
        return figures

    def _day(self, ts: int) -> float:
        """How near the message's day is to one that the prompt names."""
        day = day_of(ts) if self._named else None
        best = 0.0
        for span in self._named:
            assert day is not None
            if span.days > 1:
                best = max(best, 0.5 * (span.first <= day <= span.last))
            else:
                best = max(best, 1 - abs((day - span.first).days) / DAYS_AFTER)
        return best


def _shared(values: list[float]) -> list[float]:
    """As parts of the largest."""
    most = max(values) or 1.0
    return [value / most for value in values]


def _descending(values: Sequence[float]) -> list[int]:
    """The places of all that are not nothing, the largest first."""
    return sorted((at for at in range(len(values)) if values[at]), key=lambda at: -values[at])
