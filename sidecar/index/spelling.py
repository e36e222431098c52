"""Alternatives for a word: words that contain it, and words that it may be a misspelling of. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from ..text.distance import edit_distance
from ..text.stems import WORD

MIN_PART = 4
"""Letters of a word that is searched inside others."""

MIN_MISSPELT = 4
"""Letters of a word that is corrected: a shorter one resembles too many others."""

MAX_OTHERS = 8
"""Words that replace a missing one."""

LONGEST = 40
"""Letters of a word that is stored for this; longer ones are keys and encoded data."""

_WORTH = re.compile(rf"(?<!\S)(?=\S*[^\W\d_]{{4}})\S{{4,{LONGEST}}}(?!\S)")
"""Tokens with four consecutive letters: numbers, addresses and hashes are found by their beginning or not at
all."""

_PLAIN = bytes(
    code if code > 127 else ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(256)
)
"""For bytes of UTF-8: lower case, and spaces for all of ASCII that belongs to no word."""


def new_words(text: str, seen: set[bytes]) -> str:
    """Return the words that occur here first, in lower case; adds all tokens to `seen`."""
    new = set(text.encode().translate(_PLAIN).split()).difference(seen)
    seen |= new
    worth = b" ".join(
        [token for token in new if token > b":"]
    ).decode()  # tokens that begin with a digit sort before
    if not worth.isascii():
        worth = " ".join(WORD.findall(worth.lower()))
    return " ".join(sorted(set(_WORTH.findall(worth))))


def trigrams(word: str) -> list[str]:
    """Return the trigrams of the word, as the index stores them."""
    return [word[at : at + 3] for at in range(len(word) - 2)]


def words_containing(word: str, rows: Iterable[str]) -> tuple[str, ...]:
    """Return words that contain this one, the shortest first."""
    pattern = re.compile(rf"(?<!\S)\S*{re.escape(word)}\S*")
    found = {other for row in rows for other in pattern.findall(row)}
    return tuple(sorted(found - {word}, key=lambda other: (len(other), other))[:MAX_OTHERS])


def trigram_groups(word: str) -> list[list[str]]:
    """Return trigrams in two groups: one wrong letter leaves those of one group intact."""
    trigrams = [word[at : at + 3] for at in range(len(word) - 2)]
    if len(trigrams) < 4:
        return [[triple] for triple in trigrams]
    middle = len(trigrams) / 2
    return [
        trigrams[: math.floor(middle) - 1] or trigrams[:1],
        trigrams[math.ceil(middle) + 1 :] or trigrams[-1:],
    ]


def nearest_word(word: str, rows: Iterable[str]) -> str | None:
    """Return the word that differs least, by a letter or two; of equals the shorter, then the first in the
    alphabet."""
    most = 1 if len(word) < 8 else 2
    near = [
        (far, len(other), other)
        for row in rows
        for other in set(row.split())
        if abs(len(other) - len(word)) <= most and 0 < (far := edit_distance(word, other, most)) <= most
    ]
    return min(near)[2] if near else None
