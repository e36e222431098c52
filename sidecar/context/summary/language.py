"""Classifies a sentence by the phrases of `words/summary_phrases.json`, and extracts its terms. Knows no
turns.

For phrases of `instead`, what they replace follows, or precedes if they begin with `<`. All phrases of all
languages are matched, because the language of a sentence is unknown.
"""

from __future__ import annotations

import functools
import re
from typing import Literal

import msgspec

from ...text.folding import WIDE, fold_text
from ...text.stems import stem as porter
from ..phrases.files import read_words
from ..phrases.patterns import PhraseBook, PhrasePattern, phrase_book

MAX_CHARACTERS_READ = 600
"""Characters of a sentence that are read: a longer text is not a sentence."""

MAX_STEM = 6
"""Letters that distinguish a word from others: endings differ between "migration" and "migrations" and mean
little."""

_WORDS = re.compile(rf"[{WIDE}]++|[^\W{WIDE}]++(?:[._/\\:@-]++[^\W{WIDE}]++)*+")
_IS_WIDE = re.compile(rf"[{WIDE}]")


class LanguagePhrases(msgspec.Struct, frozen=True):
    """One language of the file: phrases by meaning, lists of single words, and forms that share no stem."""

    decision: list[str]
    wish: list[str]
    constraint: list[str]
    task: list[str]
    reminder: list[str]
    done: list[str]
    undone: list[str]
    solved: list[str]
    unsolved: list[str]
    idiom: list[str]
    instead: list[str]
    tasks_heading: list[str]
    decisions_heading: list[str]
    constraints_heading: list[str]
    idle: list[str]
    stop: list[str]
    forms: dict[str, str]


Listed = Literal["tasks", "decisions", "constraints"]
PHRASES = (
    "decision",
    "wish",
    "constraint",
    "task",
    "reminder",
    "done",
    "undone",
    "solved",
    "unsolved",
    "idiom",
)


def phrase_kinds(sentence: str) -> frozenset[str]:
    """Return the kinds of phrases in a sentence, in any language."""
    text = fold_text(sentence[:MAX_CHARACTERS_READ])
    return frozenset(phrase.kind for phrase in _phrases().near(text) if phrase.expression.search(text))


def replaced_terms(sentence: str) -> frozenset[str]:
    """Return the terms that a sentence replaces, one per phrase: "A instead of B because of C" replaces only
    B."""
    text = fold_text(sentence[:MAX_CHARACTERS_READ])
    found: set[str] = set()
    for phrase in _instead().near(text):
        if match := phrase.expression.search(text):
            before, after = text[: match.start()], text[match.end() :]
            found.update(_in_order(before)[-1:] if phrase.kind == "before" else _in_order(after)[:1])
    return frozenset(found)


def list_heading(line: str) -> Listed | None:
    """Return which list follows: tasks, decisions or constraints."""
    return _headings().get(fold_text(line[:MAX_CHARACTERS_READ]).strip(" \t#*_:：.-"))


def idle(text: str) -> bool:
    """Return whether a message only greets, thanks or says to continue. A message without words is idle too."""
    if len(text) > MAX_CHARACTERS_READ:
        return False
    whole = fold_text(text).strip(" \t\r\n.!,。！、~")
    return whole in _idle() or all(word in _idle() for word in _WORDS.findall(whole))


def terms(text: str) -> frozenset[str]:
    """Return the subject terms of a text: stems of words, names and numbers whole, pairs of characters in
    scripts without spaces."""
    return frozenset(_in_order(fold_text(text[:MAX_CHARACTERS_READ])))


def words(text: str) -> list[str]:
    """Return words as spelled, with the punctuation inside names, numbers and paths."""
    return _WORDS.findall(text)


def stem(word: str) -> str:
    """Return the term of a folded word in a script with spaces."""
    return word if not word.isalpha() else porter(word)[:MAX_STEM]


def is_common(word: str) -> bool:
    return word in _stop()


def has_wide_characters(text: str) -> bool:
    return _IS_WIDE.match(text) is not None


def _in_order(text: str) -> list[str]:
    found: list[str] = []
    for word in _WORDS.findall(text):
        if has_wide_characters(word):
            pairs = [word[at : at + 2] for at in range(max(1, len(word) - 1))]
            found += [pair for pair in pairs if pair not in _stop()]
        elif word not in _stop() and (len(word) > 1 or word.isdigit()):
            found.append(stem(_forms().get(word, word)))
    return found


@functools.cache
def _languages() -> tuple[LanguagePhrases, ...]:
    return tuple(read_words("summary_phrases", dict[str, LanguagePhrases]).values())


@functools.cache
def _phrases() -> PhraseBook:
    return phrase_book(
        PhrasePattern(kind, fold_text(text))
        for lists in _languages()
        for kind in PHRASES
        for text in getattr(lists, kind)
    )


@functools.cache
def _instead() -> PhraseBook:
    return phrase_book(
        PhrasePattern("before" if text.startswith("<") else "after", fold_text(text.removeprefix("<")))
        for lists in _languages()
        for text in lists.instead
    )


@functools.cache
def _headings() -> dict[str, Listed]:
    kinds: tuple[Listed, ...] = ("tasks", "decisions", "constraints")
    return {
        fold_text(text): kind
        for lists in _languages()
        for kind in kinds
        for text in getattr(lists, f"{kind}_heading")
    }


@functools.cache
def _idle() -> frozenset[str]:
    every = {fold_text(word) for lists in _languages() for word in lists.idle}
    return frozenset(every.union(*map(_WORDS.findall, every)))


@functools.cache
def _stop() -> frozenset[str]:
    return frozenset(word for lists in _languages() for word in lists.stop)


@functools.cache
def _forms() -> dict[str, str]:
    return {form: word for lists in _languages() for form, word in lists.forms.items()}
