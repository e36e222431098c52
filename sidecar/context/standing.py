"""Standing instructions and preferences in what a user says: "always…", "from now on…", "I prefer…". A later question
that they bear on shares no word with them, so they are kept apart and always sent. Pure; the phrases are data, in six
languages.

A sentence is taken whole or not at all. What somebody tells of themselves ("I've never been there") is not taken: an
instruction stands at the beginning of a clause, behind no subject.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

MAX_CHARACTERS = 600
"""Of a sentence. What is longer tells a case, and is found again by its words."""

READ_CHARACTERS = 20_000
"""Of a message: what is pasted behind that is not the user's own word."""

SAME = 0.6
"""Share of common words from which on the newer of two is the one that holds."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_CLAUSE = re.compile(r"[,;:，、；：\u2014\u2013()]+|\s-\s")
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "´": "'", "`": "'"})
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
_REQUEST = re.compile(r"(?:can|could|would|will) you\b")
_WORD = re.compile(r"[^\W_]+")


class Standing(msgspec.Struct, frozen=True):
    text: str
    kind: Literal["instruction", "preference"]


class _Phrases(msgspec.Struct, frozen=True):
    opening: list[str]
    """Begin an instruction, at the beginning of a clause."""

    within: list[str]
    """Make an instruction of a sentence wherever they stand in it."""

    preference: list[str]
    not_: list[str] = msgspec.field(name="not")
    """Begin a clause that only looks like an instruction."""

    condition: list[str]
    """Begin a clause that an instruction may follow."""

    asked: list[str]
    """Stand before a preference that is only asked about: "should I prefer…"."""

    polite: list[str]
    """May stand before what begins a clause."""


class _Language(msgspec.Struct, frozen=True):
    opening: re.Pattern[str]
    within: re.Pattern[str]
    preference: re.Pattern[str]
    traps: re.Pattern[str]
    condition: re.Pattern[str]
    asked: re.Pattern[str] | None

    def instructs(self, clauses: list[str], joined: str) -> bool:
        if self.within.search(joined):
            return True
        if joined.endswith(("?", "？")) and not _REQUEST.match(clauses[0]):
            return False
        places = clauses if self.condition.match(clauses[0]) else clauses[:1]
        return any(self.opening.match(clause) and not self.traps.match(clause) for clause in places)

    def prefers(self, joined: str) -> bool:
        return any(
            not (self.asked and self.asked.search(joined[: found.start()]))
            for found in self.preference.finditer(joined)
        )


def standing(text: str) -> list[str]:
    """The sentences of a user's message that hold for what comes later too."""
    return [found.text for found in found_in(text)]


def found_in(text: str) -> list[Standing]:
    """The same, each with its kind; one that is repeated counts once."""
    found: dict[str, Standing] = {}
    for sentence in _sentences(text):
        if kind := _kind(sentence):
            found.setdefault(_letters(sentence), Standing(sentence, kind))
    return list(found.values())


def gathered(texts: Iterable[str], count: Callable[[str], int], max_tokens: int) -> list[str]:
    """What holds of a user's messages, oldest first, within so many tokens. Of two that say nearly the same the newer
    one holds. Instructions go before preferences, newer ones before older ones."""
    kept: dict[str, Standing] = {}
    for text in texts:
        for one in found_in(text):
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
    if any(language.instructs(clauses, joined) for language in _languages()):
        return "instruction"
    return "preference" if any(language.prefers(joined) for language in _languages()) else None


def _are_alike(one: Standing, other: Standing) -> bool:
    mine, theirs = set(_WORD.findall(one.text.lower())), set(_WORD.findall(other.text.lower()))
    return len(mine & theirs) >= SAME * len(mine | theirs)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


@functools.cache
def _languages() -> list[_Language]:
    path = Path(__file__).parent / "words" / "standing.json"
    known = msgspec.json.decode(path.read_bytes(), type=dict[str, _Phrases])
    return [_compiled(phrases) for phrases in known.values()]


def _compiled(phrases: _Phrases) -> _Language:
    polite = f"(?:(?:{_either(phrases.polite)})\\s*)*"
    return _Language(
        re.compile(polite + f"(?:{_either(phrases.opening)})"),
        re.compile(_either(phrases.within)),
        re.compile(_either(phrases.preference)),
        re.compile(polite + f"(?:{_either(phrases.not_)})"),
        re.compile(polite + f"(?:{_either(phrases.condition)})"),
        re.compile(f"(?:{_either(phrases.asked)})\\s*$") if phrases.asked else None,
    )


def _either(phrases: list[str]) -> str:
    """Any of the phrases. A `*` stands for letters; where a script has blanks, words end where they end."""
    return "|".join(
        re.escape(phrase)
        if phrase[-1] > "\u2e80"
        else rf"(?<!\w){re.escape(phrase).replace(chr(92) + '*', '[^ ]*')}(?!\w)"
        for phrase in sorted(phrases, key=len, reverse=True)
    )
