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

MAX_EXPRESSIONS = 512
"""Kept ready. A language has hundreds of phrases, of which the sentences of one user hold the same few."""

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


class _Language(msgspec.Struct, frozen=True):
    opening: tuple[str, ...]
    """Begin an instruction, at the beginning of a clause."""

    within: tuple[str, ...]
    """Make an instruction of a sentence wherever they stand in it."""

    preference: tuple[str, ...]
    not_: tuple[str, ...] = msgspec.field(name="not")
    """Begin a clause that only looks like an instruction."""

    condition: tuple[str, ...]
    """Begin a clause that an instruction may follow."""

    asked: tuple[str, ...]
    """Stand before a preference that is only asked about: "should I prefer…"."""

    polite: tuple[str, ...]
    """May stand before what begins a clause."""

    def instructs(self, clauses: list[str], joined: str) -> bool:
        if (within := _held(self.within, joined)) and _any_of(within).search(joined):
            return True
        if joined.endswith(("?", "？")) and not _REQUEST.match(clauses[0]):
            return False
        places = clauses if len(clauses) > 1 and self._begins(clauses[0], self.condition) else clauses[:1]
        return any(
            self._begins(clause, self.opening) and not self._begins(clause, self.not_) for clause in places
        )

    def prefers(self, joined: str) -> bool:
        preference = _held(self.preference, joined)
        return bool(preference) and any(
            not self._is_asked(joined[: found.start()]) for found in _any_of(preference).finditer(joined)
        )

    def _begins(self, clause: str, phrases: tuple[str, ...]) -> bool:
        held = _held(phrases, clause)
        return bool(held) and _any_of(held, after=self.polite).match(clause) is not None

    def _is_asked(self, before: str) -> bool:
        asked = _held(self.asked, before)
        return bool(asked) and _any_of(asked, at_end=True).search(before) is not None


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
def _languages() -> tuple[_Language, ...]:
    path = Path(__file__).parent / "words" / "standing.json"
    return tuple(msgspec.json.decode(path.read_bytes(), type=dict[str, _Language]).values())


def _held(phrases: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Those that could stand in the text. Most texts hold none, and expressions of all of them take longer to make than
    the first prompt should wait."""
    return tuple(phrase for phrase in phrases if phrase.partition("*")[0] in text)


@functools.lru_cache(maxsize=MAX_EXPRESSIONS)
def _any_of(phrases: tuple[str, ...], after: tuple[str, ...] = (), at_end: bool = False) -> re.Pattern[str]:
    before = f"(?:(?:{_either(after)})\\s*)*" if after else ""
    return re.compile(f"{before}(?:{_either(phrases)})" + (r"\s*$" if at_end else ""))


def _either(phrases: Iterable[str]) -> str:
    """Any of the phrases. A `*` stands for letters; where a script has blanks, words end where they end."""
    return "|".join(
        re.escape(phrase)
        if phrase[-1] > "\u2e80"
        else rf"(?<!\w){re.escape(phrase).replace(chr(92) + '*', '[^ ]*')}(?!\w)"
        for phrase in sorted(phrases, key=len, reverse=True)
    )
