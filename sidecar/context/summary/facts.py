"""Which sentences tell most: names, numbers, dates, paths and versions that are rare in the chat. Knows no other
section of a summary.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from . import language
from .fitting import Count
from .reading import Piece
from .shape import MAX_FACTS, Fact, Summary, line, one_line, rendered

USERS_WORTH = 1.6
"""What a user tells is worth more than what the model tells: the model can say it again."""

PLAIN_WORTH = 0.2
"""A word that names nothing, beside a name or a number."""

LONG = 400
LEAST_TERMS = 3
"""More characters are not one fact; fewer words that are not common are an exclamation."""

LIKENESS = 0.6
"""Share of common terms from which two facts are one."""

MAX_CANDIDATES = 4 * MAX_FACTS


class Candidate(msgspec.Struct, frozen=True):
    """A sentence with its terms, each with what it is worth before its rarity is known."""

    fact: Fact
    worths: dict[str, float]
    factor: float


def candidate(piece: Piece) -> Candidate | None:
    """A sentence that tells something by name or number, or None."""
    if piece.asks or len(piece.text) > LONG:
        return None
    return _weighed(Fact(text=one_line(piece.text), turn_id=piece.turn_id), piece.speaker == "user")


def chosen(previous: Sequence[Fact], candidates: Iterable[Candidate], count: Count, room: int) -> list[Fact]:
    """The facts that tell most within the room, the previous ones among them, in the chat's order."""
    room -= count(rendered(Summary(facts=[Fact(text="", turn_id="")])))
    known = [found for fact in previous if (found := _weighed(fact, by_user=True))]
    every = [*known, *candidates]
    rarity = _rarity(every)
    ranked = heapq.nlargest(MAX_CANDIDATES, range(len(every)), key=lambda at: _value(every[at], rarity))
    taken: dict[int, frozenset[str]] = {}
    for at in ranked:
        about = frozenset(every[at].worths)
        cost = count(line(every[at].fact) + "\n")
        if cost <= room and not any(_alike(about, other) for other in taken.values()):
            taken[at] = about
            room -= cost
        if len(taken) == MAX_FACTS:
            break
    return [every[at].fact for at in sorted(taken)]


def _weighed(fact: Fact, by_user: bool) -> Candidate | None:
    worths: dict[str, float] = {}
    named = False
    for at, word in enumerate(language.words(fact.text)):
        folded = language.folded(word)
        if language.common(folded):
            continue
        worth = _worth(word, first=at == 0)
        named |= worth > PLAIN_WORTH
        key = folded if language.wide(word) else language.stem(folded)
        worths[key] = max(worth, worths.get(key, 0.0))
    tells = named and (len(worths) >= LEAST_TERMS or any(map(language.wide, worths)))
    return Candidate(fact, worths, USERS_WORTH if by_user else 1.0) if tells else None


def _worth(word: str, first: bool) -> float:
    if any(map(str.isdigit, word)):
        return 2.0
    if any(mark in word for mark in "_./\\@"):
        return 1.5
    if word != word.lower() and (not first or word[1:] != word[1:].lower()):
        return 1.0 if word[1:] == word[1:].lower() else 1.5
    return PLAIN_WORTH


def _rarity(candidates: Sequence[Candidate]) -> dict[str, float]:
    seen = Counter(term for one in candidates for term in one.worths)
    return {term: math.log1p(len(candidates) / times) for term, times in seen.items()}


def _value(candidate: Candidate, rarity: dict[str, float]) -> float:
    told = sum(worth * rarity[term] for term, worth in candidate.worths.items())
    # By the root of the length: a long sentence tells more, but room for two short ones tells more still.
    return candidate.factor * told / math.sqrt(60 + len(candidate.fact.text.encode()))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared >= LIKENESS * min(len(one), len(other)) and shared >= LIKENESS / 2 * max(
        len(one), len(other)
    )
