"""Ranks the candidates of a search. Pure.

Two rankings by BM25 over the texts: one of single lines, one of whole chunks with their titles. Lines work
better for logs, chunks for records of many lines; reciprocal rank fusion combines both. Matches that are
close together, newer or of the same chat come slightly before their equals.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import msgspec

from ..model.index import ChunkCandidate, ChunkPool, IndexTerm, QueryPlan, Source
from ..system.clock import DAY_MS
from ..text.folding import remove_accents
from ..text.stems import WORD, stem
from .query import ParsedQuery, QueryPhrase

FUSION_K = 60
"""Of reciprocal rank fusion: how little the first ranks differ."""

CHUNK_SHARE = 0.7
"""The weight of a rank among the chunks, relative to one among the lines."""

EXACT = 4
"""Segments of a chunk whose words are compared by their stems; for the others a common prefix is enough."""

STEPS = 40
"""Scores are distinguished in steps of this fraction of the best one."""

TITLE = 3
"""How often a word of a title counts as one of the text."""

LINE_SATURATION, CHUNK_SATURATION, LENGTH = 1.2, 0.4, 0.4
"""BM25's k1 and b. A long line is hardly less relevant; and repetition does not make a chunk of a log more
relevant."""

NEAR = 0.25
"""The bonus of a line with the words side by side in the query's order, or of a chunk with all of them within
three lines."""

VARIED = 12
SAME = 0.15
ALIKE = 0.6
"""Among the first results, one that says the same as two others loses that share of its score, about nine
ranks. Two say the same when they share this fraction of their words."""

RECENT = 0.01
SAME_CHAT = 0.04
"""Shares of a fused score: a rank at the top is worth 0.016 of it more than the next."""


WHOLE_LINE = 600
SEGMENT = 400
"""Code points: a line up to the first is shown whole, a longer one in parts of the second."""


_LETTERS = re.compile(r"[^\W\d_]+")


class RankedChunk(msgspec.Struct, frozen=True):
    """A chunk that is worth showing: its segments, and the scores of those that match."""

    candidate: ChunkCandidate
    source: Source
    segments: Sequence[Segment]
    values: dict[int, float]
    score: float


class Segment(msgspec.Struct, frozen=True):
    """A line of a chunk, by number from 0, or a part of a long one."""

    line: int
    text: str


def segments(text: str) -> list[Segment]:
    """Return the lines of a chunk; those too long to be shown whole in parts, divided between words if
    possible."""
    made: list[Segment] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        while len(line) > WHOLE_LINE:
            end = line.rfind(" ", SEGMENT // 2, SEGMENT) + 1 or SEGMENT
            made.append(Segment(number, line[:end]))
            line = line[end:]
        made.append(Segment(number, line))
    return made


def rank_chunks(
    pool: ChunkPool, plan: QueryPlan, parsed: ParsedQuery, *, chat: int | None = None, recent: bool = False
) -> list[RankedChunk]:
    """Return the candidates that satisfy the query, best first; or newest first."""
    matcher = Matcher(plan.terms)
    worth = [
        term.weight * math.log(1 + (max(pool.total - often, 0) + 0.5) / (often + 0.5)) if often else 0.0
        for term, often in zip(plan.terms, pool.frequency, strict=True)
    ]
    read = [
        _ScoredCandidate(candidate, matcher, worth)
        for candidate in pool.candidates
        if satisfies(parsed, candidate.text)
    ]
    read = [one for one in read if one.values]
    if not read:
        return []
    # Averages of the candidates, not of the index: they are what is compared.
    average = sum(one.length for one in read) / sum(len(one.segments) for one in read)
    spread = sum(one.length for one in read) / len(read)
    for one in read:
        one.weigh(average, spread)
    fused = _fuse_ranks(read)
    newest = max(source.ts for source in pool.sources.values())
    places = []
    for one, score in zip(read, fused, strict=True):
        source = pool.sources[one.candidate.source]
        score *= 1 + RECENT * 0.5 ** ((newest - source.ts) / DAY_MS)
        score *= 1 + SAME_CHAT * (chat is not None and source.chat == chat)
        places.append(RankedChunk(one.candidate, source, one.segments, one.values, score))
    if recent:
        return sorted(places, key=lambda place: (place.source.ts, place.candidate.id), reverse=True)
    return _diversify(sorted(places, key=lambda place: place.score, reverse=True))


class Matcher:
    """Finds the terms of a plan in a text, by their stems."""

    def __init__(self, terms: Sequence[IndexTerm]) -> None:
        self._stems: dict[str, int] = {}
        self._prefixes: list[tuple[str, int]] = []
        self._dense: list[tuple[str, int]] = []
        beginnings = set()
        for at, term in enumerate(terms):
            for word in term.words:
                if not word.isascii() and "AND" in term.match:
                    self._dense.append((word, at))
                    continue
                root = stem(word)
                self._stems.setdefault(root, at)
                beginnings.add(re.escape(_common_prefix(word, root)))
                if term.prefix:
                    self._prefixes.append((root, at))
        self._rough = [[_common_prefix(word, stem(word)) for word in term.words] for term in terms]
        joined = "|".join(sorted(beginnings, key=len, reverse=True))
        self._pattern = re.compile(rf"(?<![^\W_])(?:{joined})[^\W_]*") if beginnings else None

    def rough(self, lines: Sequence[str]) -> dict[int, list[int]]:
        """Return which terms may be in which lines: fast, and never too few; the lines are folded."""
        text = "\n".join(lines)
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        terms: dict[int, list[int]] = {}
        for term, beginnings in enumerate(self._rough):
            for beginning in beginnings:
                at = text.find(beginning)
                while at >= 0:
                    line = bisect_right(starts, at) - 1
                    terms.setdefault(line, []).append(term)
                    # On to the next line: a second hit in the same one says nothing new.
                    at = text.find(beginning, starts[line + 1])
        return terms

    def find_terms(self, text: str) -> list[int]:
        """Return which terms occur, in the order of the text; `text` is folded."""
        terms: list[int] = []
        for match in self._pattern.finditer(text) if self._pattern else ():
            word = match[0]
            at = self._stems.get(stem(word))
            if at is None:
                at = next((term for root, term in self._prefixes if word.startswith(root)), None)
            if at is not None:
                terms.append(at)
        terms += [at for word, at in self._dense if word in text]
        return terms


def satisfies(parsed: ParsedQuery, text: str) -> bool:
    """Return whether a chunk satisfies the query; the index has already checked single words."""
    demanded = any(len(phrase) > 1 for phrases in parsed.alternatives for phrase in phrases)
    if not (parsed.phrases or demanded or any(len(phrase) > 1 for phrase in parsed.barred)):
        return True
    words = [stem(word) for word in WORD.findall(remove_accents(text))]
    plain = remove_accents(text)
    if any(len(phrase) > 1 and _has(phrase, words, plain) for phrase in parsed.barred):
        return False
    if parsed.alternatives:
        return any(all(_has(p, words, plain) for p in phrases) for phrases in parsed.alternatives)
    return all(_has(phrase, words, plain) for phrase in parsed.phrases)


def _has(phrase: QueryPhrase, words: Sequence[str], plain: str) -> bool:
    """Return whether the words occur one after the other."""
    if any(word.dense for word in phrase):
        return all(word.text in plain for word in phrase)
    wanted = [stem(word.text) for word in phrase]
    if phrase[-1].prefix:
        last = wanted[-1]
        return any(
            list(words[at : at + len(wanted) - 1]) == wanted[:-1]
            and words[at + len(wanted) - 1].startswith(last)
            for at in range(len(words) - len(wanted) + 1)
        )
    return any(list(words[at : at + len(wanted)]) == wanted for at in range(len(words) - len(wanted) + 1))


class _ScoredCandidate:
    """A candidate with its terms per segment: exact for the best segments, approximate for the others."""

    def __init__(self, candidate: ChunkCandidate, matcher: Matcher, worth: Sequence[float]) -> None:
        self.candidate = candidate
        self._matcher = matcher
        self._worth = worth
        self.segments = segments(candidate.text)
        plain = [remove_accents(segment.text) for segment in self.segments]
        self._terms = matcher.rough(plain)
        rough = {at: sum([worth[term] for term in terms]) for at, terms in self._terms.items()}
        self._title = (
            matcher.find_terms(remove_accents(candidate.chunk.title)) if candidate.chunk.title else []
        )
        # Stemming every word of every line would take ten times as long; a line outside of the best few does
        # not decide.
        best = sorted(rough, key=rough.__getitem__, reverse=True)[:EXACT]
        for at in best:
            self._terms[at] = matcher.find_terms(plain[at])
        self.length = len(candidate.text)
        self.values = dict.fromkeys([at for at in best if self._terms[at]] or [0] * bool(self._title), 0.0)
        self.by_line = self.by_chunk = 0.0

    def weigh(self, average_line: float, average_chunk: float) -> None:
        for at in self.values:
            terms = self._terms.get(at, [])
            share = len(self.segments[at].text) / max(1.0, average_line)
            score = self._bm25(Counter(terms), share, LINE_SATURATION)
            self.values[at] = score * (1 + NEAR * _adjacency(terms))
        self.by_line = max(self.values.values())
        counts = Counter([term for terms in self._terms.values() for term in terms])
        counts.update(dict.fromkeys(self._title, TITLE))
        score = self._bm25(counts, self.length / max(1.0, average_chunk), CHUNK_SATURATION)
        self.by_chunk = score * (1 + NEAR * self._closeness())

    def _bm25(self, counts: Counter[int], share: float, saturation: float) -> float:
        norm = saturation * (1 - LENGTH + LENGTH * share)
        return sum(
            self._worth[term] * often * (saturation + 1) / (often + norm) for term, often in counts.items()
        )

    def _closeness(self) -> float:
        """Return which share of the chunk's query words is within about three lines."""
        held = {term for terms in (*self._terms.values(), self._title) for term in terms}
        whole = sum(self._worth[term] for term in held)
        best = 0.0
        for at in self._terms:
            near = {term for step in range(3) for term in self._terms.get(at + step, ())}
            best = max(best, sum(self._worth[term] for term in near))
        return best / whole if whole else 0.0


def _diversify(places: list[RankedChunk]) -> list[RankedChunk]:
    """Reorder the first results so that one that says the same as two earlier ones comes after different
    ones."""
    waiting = {at: _gist(place) for at, place in enumerate(places[:VARIED])}
    often = dict.fromkeys(waiting, 0)
    first: list[RankedChunk] = []
    while waiting:
        taken = max(waiting, key=lambda at: places[at].score * (1 - SAME * (often[at] > 1)))
        gist = waiting.pop(taken)
        first.append(places[taken])
        for at, other in waiting.items():
            often[at] += _alike(gist, other)
    return first + places[VARIED:]


def _gist(place: RankedChunk) -> frozenset[str]:
    """Return the words of the best segment, without numbers, which vary between lines of one kind."""
    best = max(place.values, key=lambda at: place.values[at])
    return frozenset(_LETTERS.findall(place.segments[best].text))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > ALIKE * len(one | other)


def _fuse_ranks(read: Sequence[_ScoredCandidate]) -> list[float]:
    lines = _ranks(one.by_line for one in read)
    chunks = _ranks(one.by_chunk for one in read)
    return [
        1 / (FUSION_K + line) + CHUNK_SHARE / (FUSION_K + chunk)
        for line, chunk in zip(lines, chunks, strict=True)
    ]


def _ranks(scores: Iterable[float]) -> list[int]:
    """Return the rank of each, from 0; nearly equal scores share one, or ranks would depend on chance."""
    # Sums of floats differ by their order; without this, equal texts would get different ranks.
    known = [round(score, 12) for score in scores]
    most = max(known) or 1.0
    known = [round(score / most * STEPS) for score in known]
    order = {score: at for at, score in reversed(list(enumerate(sorted(known, reverse=True))))}
    return [order[score] for score in known]


def _adjacency(terms: Sequence[int]) -> float:
    """Return the share of neighbours that follow one another as in the query."""
    if len(terms) < 2:
        return 0.0
    return sum(0 < second - first <= 2 for first, second in pairwise(terms)) / (len(terms) - 1)


def _common_prefix(word: str, root: str) -> str:
    """Return the common beginning of a word and its stem."""
    at = 0
    while at < min(len(word), len(root)) and word[at] == root[at]:
        at += 1
    return word[:at]
