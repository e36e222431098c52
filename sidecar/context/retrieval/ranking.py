"""Estimates how likely a prompt needs each message of the past. Pure: no clock, no randomness, no IO.

The features: rare words in a message and around it, its rank among all by words and by letters, how much its
session concerns the subject, whether the user said it, whether its speaker or its day is named. The weights
are those of a logistic model, fitted on labelled chats and evaluated on others (`benchmarks/recall.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ...model.recall import MessageCandidate, MessagePool, PromptTerms
from ...text.token_estimate import USUAL_BYTES_PER_TOKEN
from .dates import DateSpan, day_of, named_dates
from .terms import terms_of

FUSION = 10
"""The constant of reciprocal rank fusion. Larger ones separate the first ranks less; 60 found as much."""

SMALL_MESSAGE_TOKENS = 30
"""Tokens: a smaller message takes no less, because of its speaker's name and its line."""

USUAL_MESSAGE_TOKENS = 60
"""Tokens of a message in a conversation."""

LONG_ANSWER_TOKENS = 120
"""Tokens: a longer answer comes after what the user said."""

SESSION_GAP_MS = 6 * 3600 * 1000
"""A longer pause starts a new session, and messages before it are not neighbours."""

ADJACENT = 3
"""The largest difference between the ordinals of neighbouring turns: turns that a rewind has hidden have
ordinals too."""

BY_LETTERS = 0.7
"""A word that is found inside another or misspelt means less."""

SPEAKER = 0.4
"""A speaker's name occurs in many messages, mostly of the other speaker."""

DAYS_AFTER = 8
"""Events of a day are often mentioned some days later."""

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
"""A message without any feature is needed once in ten thousand cases."""


class Scored(msgspec.Struct, frozen=True):
    """A message, and how likely it is needed, from 0 to 1."""

    candidate: MessageCandidate
    score: float

    @property
    def terms(self) -> frozenset[str]:
        return self.candidate.words | self.candidate.letters


def rough_tokens(text: str) -> int:
    """Estimate the number of tokens, well enough to compare messages."""
    return len(text.encode(errors="replace")) // USUAL_BYTES_PER_TOKEN + 1


def rank_messages(prompt: str, pool: MessagePool, without: frozenset[str] = frozenset()) -> list[Scored]:
    """Return messages by value for their size, best first; none of the turns in `without`, which are sent
    anyway but count as context of their neighbours."""
    if not pool.candidates:
        return []
    scored = [
        Scored(candidate, _probability(features))
        for candidate, features in zip(pool.candidates, features_of(prompt, pool), strict=True)
        if candidate.turn not in without
    ]
    scored.sort(
        key=lambda one: (
            # By value per token: several short messages tell more than a long one of the same score.
            -one.score / max(SMALL_MESSAGE_TOKENS, rough_tokens(one.candidate.text)),
            # Ties by age, newest first: the same prompt must always get the same text, or a prompt cache misses.
            -one.candidate.id,
        )
    )
    return scored


def features_of(prompt: str, pool: MessagePool) -> list[dict[str, float]]:
    """Return the features of each candidate, by the names of the weights."""
    return _CandidateFeatures(terms_of(prompt), pool, named_dates(prompt, pool.newest)).features()


def _probability(features: dict[str, float]) -> float:
    return 1 / (1 + math.exp(-BIAS - sum(WEIGHTS[name] * value for name, value in features.items())))


class _CandidateFeatures:
    """The candidates in the chat's order, and the features of each."""

    def __init__(self, terms: PromptTerms, pool: MessagePool, named: Sequence[DateSpan]) -> None:
        self._all = pool.candidates
        self._named = named
        self._speakers = {word for one in self._all if one.name for word in one.name.lower().split()}
        self._called = self._speakers & terms.words.keys()
        self._worth = {term: self._worth_of(term, terms, pool) for term in pool.frequency}
        self._sum = sum(self._worth.values()) or 1.0
        self._sizes = [rough_tokens(one.text) for one in self._all]
        self._average = sum(self._sizes) / len(self._sizes)
        self._beside = {step: self._neighbours(step) for step in (1, 2, 3)}

    def features(self) -> list[dict[str, float]]:
        covered = [self._coverage(one.words, one.letters) / self._sum for one in self._all]
        own = _normalise([value * self._short(at) for at, value in enumerate(covered)])
        together, fused, sessions = self._together(), self._fuse_ranks(own, covered), self._sessions(own)
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

    def _worth_of(self, term: str, terms: PromptTerms, pool: MessagePool) -> float:
        often = pool.frequency[term]
        if not often:
            return 0.0
        rarity = math.log(1 + (pool.total - min(often, pool.total) + 0.5) / (often + 0.5))
        return rarity * terms.words.get(term, 1.0) * (SPEAKER if term in self._speakers else 1.0)

    def _coverage(self, words: frozenset[str], letters: frozenset[str]) -> float:
        worth = self._worth
        return sum(worth[word] for word in words) + BY_LETTERS * sum(worth[term] for term in letters)

    def _short(self, at: int) -> float:
        """Return the length factor of a match, as in BM25."""
        return 2.2 / (1 + 1.2 * (0.25 + 0.75 * self._sizes[at] / self._average))

    def _is_long_answer(self, at: int) -> bool:
        return self._all[at].role != "user" and self._sizes[at] >= LONG_ANSWER_TOKENS

    def _modest(self, at: int) -> float:
        """Return the rank penalty of a long message; a long answer gets a higher one."""
        loss = 0.9 if self._is_long_answer(at) else 0.5
        return float((max(USUAL_MESSAGE_TOKENS, self._sizes[at]) / USUAL_MESSAGE_TOKENS) ** -loss)

    def _neighbours(self, step: int) -> list[list[int]]:
        """Return for each message those at distance `step` before and after it, in the same session."""
        found: list[list[int]] = [[] for _ in self._all]
        for at in range(step, len(self._all)):
            one, before = self._all[at], self._all[at - step]
            if one.ordinal - before.ordinal <= step * ADJACENT and abs(one.ts - before.ts) <= SESSION_GAP_MS:
                found[at].append(at - step)
                found[at - step].append(at)
        return found

    def _together(self) -> list[float]:
        """Return the share of the terms that a message and its neighbours contain together."""
        shares = []
        for at, one in enumerate(self._all):
            words, letters = one.words, one.letters
            for other in (*self._beside[1][at], *self._beside[2][at]):
                words, letters = words | self._all[other].words, letters | self._all[other].letters
            shares.append(self._coverage(words, letters - words) / self._sum)
        return shares

    def _fuse_ranks(self, own: Sequence[float], covered: Sequence[float]) -> list[float]:
        """Return the reciprocal rank fusion of two orders: by all terms, including those of neighbours, and
        by rare terms that were searched by their letters."""
        sought = frozenset(term for one in self._all for term in one.letters)
        by_letters = [self._coverage(one.words & sought, one.letters) for one in self._all]
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
        """Return how much the session of a message concerns the subject: its three best messages."""
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
        """Return how near the message's day is to one that the prompt names."""
        day = day_of(ts) if self._named else None
        best = 0.0
        for span in self._named:
            assert day is not None
            if span.days > 1:
                best = max(best, 0.5 * (span.first <= day <= span.last))
            else:
                best = max(best, 1 - abs((day - span.first).days) / DAYS_AFTER)
        return best


def _normalise(values: list[float]) -> list[float]:
    """Scale by the largest value."""
    most = max(values) or 1.0
    return [value / most for value in values]


def _descending(values: Sequence[float]) -> list[int]:
    """Return the indexes of all non-zero values, largest first."""
    return sorted((at for at in range(len(values)) if values[at]), key=lambda at: -values[at])
