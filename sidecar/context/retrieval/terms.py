"""Extracts the search terms of a prompt: its words without stop words, in any script. Pure.

A term is one token of an index. It contains only letters and digits, so nothing that a user writes is read as
FTS syntax.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable

from ...model.recall import PromptTerms
from .lists import word_lists

MAX_WORDS = 24
"""The most significant words of a long prompt: numbers, names and long words. Each costs a query."""

MAX_PIECES = 32
"""Pairs and triples of characters, each."""

READ_CHARACTERS = 20_000
"""Of a prompt. Text pasted beyond that is not part of the question."""

ASKING = 0.4
"""The relative weight of a word about asking: "summary", "mentioned", "suggest"."""

MAX_LETTERS = 40
"""Of a word. Longer ones are hashes, keys and encoded data."""

WITHOUT_BLANKS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese; and Korean, whose words include their endings."""

_WORD = re.compile(rf"[^\W_{WITHOUT_BLANKS}]+")
_RUN = re.compile(rf"[{WITHOUT_BLANKS}]{{2,}}")
_GRAMMAR = re.compile(r"[\u3040-\u309f]+")


def terms_of(prompt: str) -> PromptTerms:
    text = unicodedata.normalize("NFC", prompt[:READ_CHARACTERS])
    words = [word for word in _WORD.findall(text) if _is_token(word)]
    stop, asking = _lists_for(word.lower() for word in words)
    kept: dict[str, float] = {}
    telling: dict[str, tuple[bool, int]] = {}
    for word in words:
        lower = word.lower()
        if lower in stop or (len(lower) < 2 and not lower.isdigit()):
            continue
        kept[lower] = ASKING if lower in asking else 1.0
        special = not word.isalpha() or not word[1:].islower() or word[0].isupper()
        telling.setdefault(lower, (special and lower not in asking, len(lower)))
    if len(kept) > MAX_WORDS:
        best = sorted(kept, key=lambda word: (kept[word], telling[word]), reverse=True)[:MAX_WORDS]
        kept = {word: weight for word, weight in kept.items() if word in set(best)}
    pairs, triples = _pieces(text)
    return PromptTerms(kept, triples, pairs)


def _is_token(word: str) -> bool:
    """Return whether the index treats the word as one token too: its Unicode table is older than Python's."""
    category = unicodedata.ucd_3_2_0.category
    return len(word) <= MAX_LETTERS and all(category(letter)[0] in "LN" for letter in word)


def _lists_for(words: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return stop words and words about asking, in the language of most of the prompt's stop words: "die" is
    grammar in German and a subject in English."""
    said = list(words)
    best = max(_stop(), key=lambda language: sum(word in _stop()[language] for word in said))
    return _stop()[best], _asking()[best]


def _pieces(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return adjacent characters of scripts without spaces, in pairs and triples; Hiragana alone is grammar."""
    skipped = _stop()["zh"] | _stop()["ja"] | _asking()["zh"] | _asking()["ja"]
    pairs: dict[str, None] = {}
    triples: dict[str, None] = {}
    for run in _RUN.findall(text):
        for at in range(len(run) - 1):
            pair, triple = run[at : at + 2], run[at : at + 3]
            if pair not in skipped and not _GRAMMAR.fullmatch(pair):
                pairs[pair] = None
            if len(triple) == 3 and not _GRAMMAR.fullmatch(triple) and not {pair, triple[1:]} <= skipped:
                triples[triple] = None
    return tuple(pairs)[:MAX_PIECES], tuple(triples)[:MAX_PIECES]


@functools.cache
def _stop() -> dict[str, frozenset[str]]:
    return {language: frozenset(words) for language, words in word_lists().stop.items()}


@functools.cache
def _asking() -> dict[str, frozenset[str]]:
    return {language: frozenset(words) for language, words in word_lists().asking.items()}
