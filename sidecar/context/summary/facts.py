"""Selects the most informative sentences: names, numbers, dates, paths and versions that are rare in the
chat. Knows no other section of a summary."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from ...text.folding import fold_text
from ...text.token_estimate import CountTokens
from . import language
from .reading import Passage
from .shape import MAX_FACTS, Fact, Summary, entry_line, one_line, render_summary

USERS_WORTH = 1.6
"""Facts from the user are worth more than those from the model, which can repeat its own."""

PLAIN_WORTH = 0.2
"""The weight of an ordinary word, relative to a name or a number."""

LONG = 400
LEAST_TERMS = 3
"""A longer text is not one fact; one with fewer uncommon words is an exclamation."""

LIKENESS = 0.6
"""Share of common terms from which on two facts are the same."""

MAX_CANDIDATES = 4 * MAX_FACTS


class FactCandidate(msgspec.Struct, frozen=True):
    """A sentence with its terms and the weight of each before its rarity is known."""

    fact: Fact
    worths: dict[str, float]
    factor: float


def fact_candidate(piece: Passage) -> FactCandidate | None:
    """Return a sentence with a name or number as a candidate, or None."""
    if piece.asks or len(piece.text) > LONG:
        return None
    return _weigh_fact(Fact(text=one_line(piece.text), turn_id=piece.turn_id), piece.speaker == "user")


def choose_facts(
    previous: Sequence[Fact], candidates: Iterable[FactCandidate], count: CountTokens, space: int
) -> list[Fact]:
    """Return the most informative facts within the limit, including previous ones, in the chat's order."""
    space -= count(render_summary(Summary(facts=[Fact(text="", turn_id="")])))
    known = [found for fact in previous if (found := _weigh_fact(fact, by_user=True))]
    every = [*known, *candidates]
    rarity = _rarity(every)
    ranked = heapq.nlargest(MAX_CANDIDATES, range(len(every)), key=lambda at: _value(every[at], rarity))
    taken: dict[int, frozenset[str]] = {}
    for at in ranked:
        about = frozenset(every[at].worths)
        cost = count(entry_line(every[at].fact) + "\n")
        if cost <= space and not any(_alike(about, other) for other in taken.values()):
            taken[at] = about
            space -= cost
        if len(taken) == MAX_FACTS:
            break
    return [every[at].fact for at in sorted(taken)]


def _weigh_fact(fact: Fact, by_user: bool) -> FactCandidate | None:
    worths: dict[str, float] = {}
    named = False
    for at, word in enumerate(language.words(fact.text)):
        folded = fold_text(word)
        if language.is_common(folded):
            continue
        worth = _worth(word, first=at == 0)
        named |= worth > PLAIN_WORTH
        key = folded if language.has_wide_characters(word) else language.stem(folded)
        worths[key] = max(worth, worths.get(key, 0.0))
    tells = named and (len(worths) >= LEAST_TERMS or any(map(language.has_wide_characters, worths)))
    return FactCandidate(fact, worths, USERS_WORTH if by_user else 1.0) if tells else None


def _worth(word: str, first: bool) -> float:
    if any(map(str.isdigit, word)):
        return 2.0
    if any(mark in word for mark in "_./\\@"):
        return 1.5
    if word != word.lower() and (not first or word[1:] != word[1:].lower()):
        return 1.0 if word[1:] == word[1:].lower() else 1.5
    return PLAIN_WORTH


def _rarity(candidates: Sequence[FactCandidate]) -> dict[str, float]:
    seen = Counter(term for one in candidates for term in one.worths)
    return {term: math.log1p(len(candidates) / times) for term, times in seen.items()}


def _value(fact_candidate: FactCandidate, rarity: dict[str, float]) -> float:
    told = sum(worth * rarity[term] for term, worth in fact_candidate.worths.items())
    # By the square root of the length: a long sentence says more, but two short ones in its place say more
    # still.
    return fact_candidate.factor * told / math.sqrt(60 + len(fact_candidate.fact.text.encode()))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared >= LIKENESS * min(len(one), len(other)) and shared >= LIKENESS / 2 * max(
        len(one), len(other)
    )
