"""What kind a sentence is, by the phrases of `words/summary_phrases.json`, and which terms it has. Knows no turns.

In a phrase `..` stands for up to four words, an ending `*` for any ending, a beginning `^` for the beginning of a
clause. Of the phrases of `instead`, what they replace follows, or goes before where they begin with `<`. Everything is
spelled as `folded` leaves it. All phrases of all languages are held against a sentence: nobody says which language it
is in.
"""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

import msgspec

MAX_HEARD = 600
"""Characters of a sentence that are looked at: more is no sentence."""

WIDE = "\u2e80-\u2fff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Characters of scripts that are written without blanks. Their terms are pairs of neighbours."""

STEM = 6
"""Letters of a word that tell it from others: endings differ between "migration" and "migrations" and say little."""

_WORDS = re.compile(rf"[{WIDE}]++|[^\W{WIDE}]++(?:[._/\\:@-]++[^\W{WIDE}]++)*+")
_PLAIN = re.compile(r"\w++")
_OPEN = re.compile(r"\w++\*")
_IS_WIDE = re.compile(rf"[{WIDE}]")
_JOINING = "please|and|but|also|bitte|und|aber|por favor|y|pero|et|mais|s'il te plait"
_CLAUSE = rf"(?:^|[,;:(\u2014、]\s*+|(?:^|\s)(?:{_JOINING})\s++)"
_GAP = r"(?:\W++\w++){0,4}\W++"
_WIDE_GAP = r".{0,12}"
_DATA = os.path.join(os.path.dirname(os.path.dirname(__file__)), "words", "summary_phrases.json")


class Words(msgspec.Struct, frozen=True):
    """One language of the file: phrases by what they say, lists of single words, and forms that share no stem."""

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


class Phrase(msgspec.Struct, frozen=True):
    kind: str
    text: str

    def search(self, text: str) -> re.Match[str] | None:
        return _compiled(self.text).search(text)


class Book(msgspec.Struct, frozen=True):
    """Phrases by a word that must occur in the text: with that most are done with. Scripts without blanks have no
    words, so their keys are looked for anywhere."""

    by_word: dict[str, list[Phrase]]
    anywhere: dict[str, list[Phrase]]

    def near(self, text: str) -> list[Phrase]:
        """Those that may be found in a folded text."""
        keys: list[str] = [word for word in set(_PLAIN.findall(text)) if word in self.by_word]
        near = [phrase for word in keys for phrase in self.by_word[word]]
        if not text.isascii():
            near += [phrase for key, phrases in self.anywhere.items() if key in text for phrase in phrases]
        return near


def heard(sentence: str) -> frozenset[str]:
    """The kinds of phrases in a sentence, in any language."""
    text = folded(sentence[:MAX_HEARD])
    return frozenset(phrase.kind for phrase in _phrases().near(text) if phrase.search(text))


def replaced(sentence: str) -> frozenset[str]:
    """The terms that a sentence does away with, one for each phrase: "A instead of B because of C" replaces B alone."""
    text = folded(sentence[:MAX_HEARD])
    found: set[str] = set()
    for phrase in _instead().near(text):
        if match := phrase.search(text):
            before, after = text[: match.start()], text[match.end() :]
            found.update(_in_order(before)[-1:] if phrase.kind == "before" else _in_order(after)[:1])
    return frozenset(found)


def heading(line: str) -> Listed | None:
    """Which list follows: tasks, decisions or constraints."""
    return _headings().get(folded(line[:MAX_HEARD]).strip(" \t#*_:：.-"))


def idle(text: str) -> bool:
    """Whether a message only greets, thanks or says to go on. A message without words is idle too."""
    if len(text) > MAX_HEARD:
        return False
    whole = folded(text).strip(" \t\r\n.!,。！、~")
    return whole in _idle() or all(word in _idle() for word in _WORDS.findall(whole))


def terms(text: str) -> frozenset[str]:
    """What a text is about: stems of words, names and numbers whole, pairs of characters where there are no blanks."""
    return frozenset(_in_order(folded(text[:MAX_HEARD])))


def words(text: str) -> list[str]:
    """Words as they are spelled, with the marks within names, numbers and paths."""
    return _WORDS.findall(text)


def stem(word: str) -> str:
    """A term of a word that is folded and not wide."""
    return word if not word.isalpha() else word[:STEM]


def common(word: str) -> bool:
    return word in _stop()


def wide(text: str) -> bool:
    return _IS_WIDE.match(text) is not None


def folded(text: str) -> str:
    """Without case, and Latin letters without accents, which many people leave out."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    return text.translate(_plain_letters())


def _in_order(text: str) -> list[str]:
    found: list[str] = []
    for word in _WORDS.findall(text):
        if wide(word):
            pairs = [word[at : at + 2] for at in range(max(1, len(word) - 1))]
            found += [pair for pair in pairs if pair not in _stop()]
        elif word not in _stop() and (len(word) > 1 or word.isdigit()):
            found.append(stem(_forms().get(word, word)))
    return found


@functools.cache
def _languages() -> tuple[Words, ...]:
    with open(_DATA, "rb") as file:
        return tuple(msgspec.json.decode(file.read(), type=dict[str, Words]).values())


@functools.cache
def _phrases() -> Book:
    return _book(
        Phrase(kind, text) for lists in _languages() for kind in PHRASES for text in getattr(lists, kind)
    )


@functools.cache
def _instead() -> Book:
    return _book(
        Phrase("before" if text.startswith("<") else "after", text.removeprefix("<"))
        for lists in _languages()
        for text in lists.instead
    )


def _book(phrases: Iterable[Phrase]) -> Book:
    book = Book({}, {})
    for phrase in phrases:
        text = folded(phrase.text)
        is_wide = _IS_WIDE.search(text) is not None
        parts = text.removeprefix("^").split(" .. ") if is_wide else _PLAIN.findall(_OPEN.sub(" ", text))
        (book.anywhere if is_wide else book.by_word).setdefault(max(parts, key=len), []).append(phrase)
    return book


@functools.cache
def _headings() -> dict[str, Listed]:
    kinds: tuple[Listed, ...] = ("tasks", "decisions", "constraints")
    return {
        folded(text): kind
        for lists in _languages()
        for kind in kinds
        for text in getattr(lists, f"{kind}_heading")
    }


@functools.cache
def _idle() -> frozenset[str]:
    every = {folded(word) for lists in _languages() for word in lists.idle}
    return frozenset(every.union(*map(_WORDS.findall, every)))


@functools.cache
def _stop() -> frozenset[str]:
    return frozenset(word for lists in _languages() for word in lists.stop)


@functools.cache
def _compiled(phrase: str) -> re.Pattern[str]:
    text = folded(phrase)
    start = _CLAUSE if text.startswith("^") else ""
    parts = text.removeprefix("^").split(" .. ")
    if _IS_WIDE.search(text):
        return re.compile(start + _WIDE_GAP.join(map(re.escape, parts)))
    spelled = _GAP.join(r"\s++".join(map(_word, part.split())) for part in parts)
    before = "" if start or text.startswith("n't") else r"(?<!\w)"
    return re.compile(start + before + spelled + r"(?!\w)")


def _word(word: str) -> str:
    return re.escape(word[:-1]) + r"\w*+" if word.endswith("*") else re.escape(word)


@functools.cache
def _forms() -> dict[str, str]:
    return {form: word for lists in _languages() for form, word in lists.forms.items()}


@functools.cache
def _plain_letters() -> dict[int, str]:
    letters = {code: unicodedata.normalize("NFD", chr(code))[0] for code in range(0xC0, 0x250)}
    return {code: base for code, base in letters.items() if base != chr(code) and base.isascii()}
