"""Finds standing instructions and preferences in the user's messages: "always…", "from now on…", "I prefer…".
A later question that they apply to shares no word with them, so they are stored separately and always sent.
Pure; the phrases are data, in six languages.

A sentence is taken whole or not at all. Statements about the user ("I've never been there") are not taken: an
instruction begins a clause and follows no subject.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from .phrases.files import read_words
from .phrases.patterns import PhraseBook, PhrasePattern, phrase_book

MAX_CHARACTERS = 600
"""Of a sentence. A longer one describes a case, and retrieval finds it by its words."""

READ_CHARACTERS = 20_000
"""Of a message: text pasted after that is not written by the user."""

SIMILARITY = 0.6
"""Share of common words at which the newer of two sentences replaces the older."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_CLAUSE = re.compile(r"[,;:，、；：\u2014\u2013()]+|\s-\s")
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "´": "'", "`": "'"})
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
_REQUEST = re.compile(r"(?:can|could|would|will) you\b")
_WORD = re.compile(r"[^\W_]+")


class StandingInstruction(msgspec.Struct, frozen=True):
    text: str
    kind: Literal["instruction", "preference"]


class _Language(msgspec.Struct, frozen=True):
    opening: tuple[str, ...]
    """Start an instruction, at the beginning of a clause."""

    within: tuple[str, ...]
    """Turn a sentence into an instruction wherever they occur in it."""

    preference: tuple[str, ...]
    not_: tuple[str, ...] = msgspec.field(name="not")
    """Start a clause that only looks like an instruction."""

    condition: tuple[str, ...]
    """Start a clause that an instruction may follow."""

    asked: tuple[str, ...]
    """Precede a preference that is only a question: "should I prefer…"."""

    polite: tuple[str, ...]
    """May precede what begins a clause."""


KINDS = ("opening", "within", "preference", "not_", "condition", "asked", "polite")


class _Reading:
    """A sentence beside the phrases of one language that may occur in it."""

    def __init__(self, book: PhraseBook, clauses: list[str], joined: str) -> None:
        self._clauses = clauses
        self._joined = joined
        self._near: dict[str, list[PhrasePattern]] = {kind: [] for kind in KINDS}
        for phrase in book.near(joined):
            self._near[phrase.kind].append(phrase)

    def instructs(self) -> bool:
        clauses = self._clauses
        if any(phrase.expression.search(self._joined) for phrase in self._near["within"]):
            return True
        if self._joined.endswith(("?", "？")) and not _REQUEST.match(clauses[0]):
            return False
        places = clauses if len(clauses) > 1 and self._begins(clauses[0], "condition") else clauses[:1]
        return any(self._begins(clause, "opening") and not self._begins(clause, "not_") for clause in places)

    def prefers(self) -> bool:
        return any(
            not self._ends_with_request(self._joined[: found.start()])
            for phrase in self._near["preference"]
            for found in phrase.expression.finditer(self._joined)
        )

    def _begins(self, clause: str, kind: str) -> bool:
        phrases = self._near[kind]
        return bool(phrases) and any(
            phrase.expression.match(clause, start) for start in self._starts(clause) for phrase in phrases
        )

    def _starts(self, clause: str) -> set[int]:
        """Return where a clause begins: also after any polite words."""
        every, fresh = {0}, {0}
        while fresh:
            ends = {
                found.end()
                for start in fresh
                for phrase in self._near["polite"]
                if (found := phrase.expression.match(clause, start))
            }
            fresh = {len(clause) - len(clause[end:].lstrip()) for end in ends} - every
            every |= fresh
        return every

    def _ends_with_request(self, before: str) -> bool:
        return any(
            not before[found.end() :].strip()
            for phrase in self._near["asked"]
            for found in phrase.expression.finditer(before)
        )


def find_standing(text: str) -> list[str]:
    """Return the sentences of a user's message that also apply later."""
    return [found.text for found in find_standing_instructions(text)]


def find_standing_instructions(text: str) -> list[StandingInstruction]:
    """As `standing`, each with its kind; a repeated sentence counts once."""
    found: dict[str, StandingInstruction] = {}
    for sentence in _sentences(text):
        if kind := _kind(sentence):
            found.setdefault(_letters(sentence), StandingInstruction(sentence, kind))
    return list(found.values())


def collect_standing_instructions(
    texts: Iterable[str], count: Callable[[str], int], max_tokens: int
) -> list[str]:
    """Return what applies from a user's messages, oldest first, within so many tokens. Of two nearly equal
    sentences the newer one applies. Instructions come before preferences, newer ones before older ones."""
    kept: dict[str, StandingInstruction] = {}
    for text in texts:
        for one in find_standing_instructions(text):
            for older in [key for key, other in kept.items() if _are_alike(one, other)]:
                del kept[older]
            kept[_letters(one.text)] = one
    newest_first = list(kept.values())[::-1]
    chosen: set[str] = set()
    for kind in ("instruction", "preference"):
        for one in newest_first:
            tokens = count(one.text + "\n")
            if one.kind == kind and tokens <= max_tokens:
                max_tokens -= tokens
                chosen.add(one.text)
    return [one.text for one in kept.values() if one.text in chosen]


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(_FENCE.sub("\n", text[:READ_CHARACTERS])):
        sentence = _BULLET.sub("", sentence).strip()
        if 0 < len(sentence) <= MAX_CHARACTERS:
            yield sentence


def _kind(sentence: str) -> Literal["instruction", "preference"] | None:
    plain = sentence.lower().translate(_APOSTROPHES)
    clauses = [clause for part in _CLAUSE.split(plain) if (clause := part.strip())]
    joined = " ".join(clauses)
    if not joined:
        return None
    readings = [_Reading(book, clauses, joined) for book in _books()]
    if any(reading.instructs() for reading in readings):
        return "instruction"
    return "preference" if any(reading.prefers() for reading in readings) else None


def _are_alike(one: StandingInstruction, other: StandingInstruction) -> bool:
    mine, theirs = set(_WORD.findall(one.text.lower())), set(_WORD.findall(other.text.lower()))
    return len(mine & theirs) >= SIMILARITY * len(mine | theirs)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


@functools.cache
def _books() -> tuple[PhraseBook, ...]:
    """One per language: a condition and the instruction that follows it are in the same one."""
    return tuple(
        phrase_book(PhrasePattern(kind, text) for kind in KINDS for text in getattr(language, kind))
        for language in read_words("standing", dict[str, _Language]).values()
    )
