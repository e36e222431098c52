"""Other ways to spell a word: words that hold it, and words that it was probably meant to be. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from ..store.recall import distance
from .stems import WORD

MIN_PART = 4
"""Letters of a word that is looked for inside others."""

MIN_MISSPELT = 4
"""Letters of a word that is corrected: with fewer, too much looks like it."""

MAX_OTHERS = 8
"""Words that stand for one that is not there."""

LONGEST = 40
"""Letters of a word that is remembered for this; longer ones are keys and encoded data."""

_WORTH = re.compile(rf"(?<!\S)(?=\S*[^\W\d_]{{4}})\S{{4,{LONGEST}}}(?!\S)")
"""Tokens with four letters in a row: numbers, addresses and hashes are found by their beginning or not at all."""

_PLAIN = bytes(
    code if code > 127 else ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(256)
)
"""Of bytes of UTF-8: lower case, and blanks for all of ASCII that belongs to no word."""


def different(text: str, seen: set[bytes]) -> str:
    """The words that a stretch of a text has first, in lower case; `seen` learns all its tokens."""
    new = set(text.encode().translate(_PLAIN).split()).difference(seen)
    seen |= new
    worth = b" ".join(
        [token for token in new if token > b":"]
    ).decode()  # what begins with a digit sorts before
    if not worth.isascii():
        worth = " ".join(WORD.findall(worth.lower()))
    return " ".join(sorted(set(_WORTH.findall(worth))))


def triples(word: str) -> list[str]:
    """The word three letters at a time, as the index has it."""
    return [word[at : at + 3] for at in range(len(word) - 2)]


def holding(word: str, rows: Iterable[str]) -> tuple[str, ...]:
    """Words that hold this one, the shortest first."""
    pattern = re.compile(rf"(?<!\S)\S*{re.escape(word)}\S*")
    found = {other for row in rows for other in pattern.findall(row)}
    return tuple(sorted(found - {word}, key=lambda other: (len(other), other))[:MAX_OTHERS])


def halves(word: str) -> list[list[str]]:
    """Pieces of three letters, in two groups: one wrong letter leaves those of one group as they are."""
    triples = [word[at : at + 3] for at in range(len(word) - 2)]
    if len(triples) < 4:
        return [[triple] for triple in triples]
    middle = len(triples) / 2
    return [
        triples[: math.floor(middle) - 1] or triples[:1],
        triples[math.ceil(middle) + 1 :] or triples[-1:],
    ]


def nearest(word: str, rows: Iterable[str]) -> str | None:
    """The word that differs least, by a letter or two; the shorter, then the first of the alphabet, among equals."""
    most = 1 if len(word) < 8 else 2
    near = [
        (far, len(other), other)
        for row in rows
        for other in set(row.split())
        if abs(len(other) - len(word)) <= most and 0 < (far := distance(word, other, most)) <= most
    ]
    return min(near)[2] if near else None
