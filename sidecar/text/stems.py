"""The stems of English words: Porter's (M. F. Porter, "An algorithm for suffix stripping", 1980), as SQLite's tokenizer
computes them, so that a match of the index can be located in the text. Words of other languages lose
regular endings that English has too, and else stay as they are.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from itertools import pairwise

WORD = re.compile(r"[^\W_]+")

_LONGEST = 64
"""Letters of a word that is stemmed; longer ones stay as they are."""

_SECOND = (
    "ational:ate tional:tion enci:ence anci:ance izer:ize logi:log bli:ble alli:al entli:ent eli:e ousli:ous"
    " ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble"
)
_THIRD = "icate:ic ative: alize:al iciti:ic ical:ic ful: ness:"
_FOURTH = "al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize"


@functools.lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return the stem of a folded word."""
    if not 3 <= len(word) <= _LONGEST or not word.isascii():
        return word
    word = _first(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_ending(word, _SECOND, lambda part: _measure(part) > 0)
    word = _replace_ending(word, _THIRD, lambda part: _measure(part) > 0)
    return _last(_fourth(word))


def _first(word: str) -> str:
    """Remove plurals, -ed and -ing."""
    if word.endswith("s"):
        word = word[:-2] if word.endswith(("sses", "ies")) else word if word.endswith("ss") else word[:-1]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            part = word[: -len(ending)]
            return _restore_ending(part) if _has_vowel(part) else word
    return word


def _restore_ending(word: str) -> str:
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if (
        len(word) > 1
        and word[-1] == word[-2]
        and _is_consonant(word, len(word) - 1)
        and word[-1] not in "lsz"
    ):
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_short(word) else word


def _fourth(word: str) -> str:
    for ending in sorted(_FOURTH.split(), key=len, reverse=True):
        if word.endswith(ending):
            part = word[: -len(ending)]
            return part if _measure(part) > 1 else word
    if word.endswith("ion") and word[-4:-3] in ("s", "t") and _measure(word[:-3]) > 1:
        return word[:-3]
    return word


def _last(word: str) -> str:
    if word.endswith("e"):
        part = word[:-1]
        if _measure(part) > 1 or (_measure(part) == 1 and not _ends_short(part)):
            word = part
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _replace_ending(word: str, table: str, holds: Callable[[str], bool]) -> str:
    pairs = sorted((pair.split(":") for pair in table.split()), key=lambda pair: len(pair[0]), reverse=True)
    for ending, other in pairs:
        if word.endswith(ending):
            part = word[: -len(ending)]
            return part + other if holds(part) else word
    return word


def _is_consonant(word: str, at: int) -> bool:
    letter = word[at]
    if letter == "y":
        return at == 0 or not _is_consonant(word, at - 1)
    return letter not in "aeiou"


def _has_vowel(word: str) -> bool:
    return any(not _is_consonant(word, at) for at in range(len(word)))


def _measure(word: str) -> int:
    """Return how often a vowel is followed by a consonant."""
    kinds = [_is_consonant(word, at) for at in range(len(word))]
    return sum(after and not before for before, after in pairwise(kinds))


def _ends_short(word: str) -> bool:
    """Return whether it ends with consonant, vowel, consonant, the last not being w, x or y."""
    end = len(word) - 1
    return (
        end >= 2
        and _is_consonant(word, end)
        and not _is_consonant(word, end - 1)
        and _is_consonant(word, end - 2)
        and word[end] not in "wxy"
    )
