"""Finds where a phrase is in a sentence. In a phrase, spelled as the sentences are:

    ..          up to 4 words, between two spaces
    word*       that word with any ending; `*word` with any beginning
    ^           at the beginning of the phrase: it begins a clause

A phrase in a script with spaces matches whole words, except that "n't" is the end of one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

import msgspec

from ...text.folding import WIDE

_PLAIN = re.compile(r"\w++")
_OPEN = re.compile(r"\w++\*|\*\w++")
_IS_WIDE = re.compile(rf"[{WIDE}]")
_JOINING = "please|and|but|also|bitte|und|aber|por favor|y|pero|et|mais|s'il te plait"
_CLAUSE = rf"(?:^|[,;:(\u2014、]\s*+|(?:^|\s)(?:{_JOINING})\s++)"
_GAP = r"(?:\W++\w++){0,4}\W++"
_WIDE_GAP = r".{0,12}"


class PhrasePattern(msgspec.Struct, frozen=True):
    kind: str
    text: str

    @property
    def expression(self) -> re.Pattern[str]:
        return _compile(self.text)


class PhraseBook(msgspec.Struct, frozen=True):
    """Phrases by a word that must occur in the text, which excludes most of them: compiling all takes longer
    than a first prompt should wait. Scripts without spaces have no words, so their keys are searched
    anywhere."""

    by_word: dict[str, list[PhrasePattern]]
    anywhere: dict[str, list[PhrasePattern]]

    def near(self, text: str) -> list[PhrasePattern]:
        """Return the phrases that may occur in a text."""
        keys: list[str] = [word for word in set(_PLAIN.findall(text)) if word in self.by_word]
        near = [phrase for word in keys for phrase in self.by_word[word]]
        if not text.isascii():
            near += [phrase for key, phrases in self.anywhere.items() if key in text for phrase in phrases]
        return near


def phrase_book(phrases: Iterable[PhrasePattern]) -> PhraseBook:
    book = PhraseBook({}, {})
    for phrase in phrases:
        is_wide = _is_wide(phrase.text)
        (book.anywhere if is_wide else book.by_word).setdefault(_key(phrase.text, is_wide), []).append(phrase)
    return book


def _is_wide(text: str) -> bool:
    return not text.isascii() and _IS_WIDE.search(text) is not None


def _key(text: str, is_wide: bool) -> str:
    if is_wide:
        return max(text.removeprefix("^").split(" .. "), key=len)
    words: list[str] = _PLAIN.findall(_OPEN.sub(" ", text) if "*" in text else text)
    return max(words, key=len)


@functools.cache
def _compile(text: str) -> re.Pattern[str]:
    start = _CLAUSE if text.startswith("^") else ""
    parts = text.removeprefix("^").split(" .. ")
    if _is_wide(text):
        return re.compile(start + _WIDE_GAP.join(map(re.escape, parts)))
    spelled = _GAP.join(r"\s++".join(map(_word, part.split())) for part in parts)
    before = "" if start or text.startswith("n't") else r"(?<!\w)"
    return re.compile(start + before + spelled + r"(?!\w)")


def _word(word: str) -> str:
    if word.endswith("*"):
        return re.escape(word[:-1]) + r"\w*+"
    return r"\S*" + re.escape(word[1:]) if word.startswith("*") else re.escape(word)
