"""Finds which phrases a text contains, in the languages of `words/*.json`.

Owns the phrase syntax of those files and the tokenization of text; knows nothing of gates or chats. A file
has `classes` (a name, and its words), `idioms` (phrases whose words mean something else: they are masked
first), `polite` (words that may precede an order) and `rules` (a name, and the phrases that fulfil it). In a
phrase, separated by spaces:

    word        that word; a final `*` matches any ending; a run of Chinese or Japanese needs no spaces
    <class>     a word of that class          (a|b c|<class>)            one of these
    ..          up to 3 words, or none        …                          up to 10; both stay within the sentence
    ^           the beginning of a clause     $                          the end of a sentence
    x?          x or nothing                  FILE PATH NAME WORD CODE NUM    marks of `gates.structure`

Matching advances sets of positions, so its time is linear in the text: there is no backtracking.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

import msgspec

from ...text.folding import WIDE, fold_text
from .files import read_words

MAX_CHARACTERS_READ = 2_000
"""Characters from either end of a text, about 700 words in all: a user who pastes more says there what it is
for."""

LANGUAGES = ("en", "es", "de", "fr", "zh", "ja")

MARKS = {
    "FILE": "\ue000",
    "PATH": "\ue001",
    "NAME": "\ue002",
    "CODE": "\ue003",
    "NUM": "\ue004",
    "WORD": "\ue005",
}
"""What a phrase calls them, and the private-use character that replaces one in the text. NUM also matches any
number."""

NEAR_WORDS = 3
FAR_WORDS = 10
"""The most words that `..` and `…` match. In Chinese and Japanese a word is a character."""

_WORD = re.compile(rf"[\ue000-\ue005]|[{WIDE}]|[^\W{WIDE}]+|[.?!;:,\n，、。？！；：¿¡()\u2014\u2013]")
_BREAKS = frozenset(".?!;\n。？！；")
_COMMAS = frozenset(",:，、：()\u2014\u2013¿¡")
_ELEMENT = re.compile(r"\([^()]*\)\??|\S+")
_GAPS = {"..": NEAR_WORDS, "…": FAR_WORDS}
_SENTENCE_END = "."


class Words(msgspec.Struct, frozen=True):
    """One file of `words/`."""

    classes: dict[str, list[str]]
    rules: dict[str, list[str]]
    idioms: list[str]
    polite: list[str]
    stop: list[str]


def matching_rules(text: str, books: Iterable[Words] | None = None) -> frozenset[str]:
    """Return the names of the rules that hold, in any language."""
    tokens, starts = _tokens(ends(text, MAX_CHARACTERS_READ))
    ready = map(_book, LANGUAGES) if books is None else map(_RuleBook, books)
    return frozenset(name for book in ready for name in _RuleMatcher(book, tokens, starts).rules())


def load_language(language: str) -> None:
    """Load a language's phrases before the first text, which takes a few milliseconds."""
    _book(language)


def is_in_phrases(word: str) -> bool:
    """Return whether a phrase of any language begins with the word, or no sentence is about it."""
    plain = fold_text(word)
    return any(_book(language).has_word(plain) for language in LANGUAGES)


def ends(text: str, length: int) -> str:
    """Return that many characters from either end, as two sentences."""
    return text if len(text) <= 2 * length else f"{text[:length]}\n{text[-length:]}"


def count(text: str) -> int:
    """Count words, without punctuation."""
    return sum(token != _SENTENCE_END for token in _tokens(text)[0])


@functools.cache
def words(language: str) -> Words:
    return read_words(language, Words)


def _tokens(text: str) -> tuple[list[str], frozenset[int]]:
    """Return the words, with sentences separated by a full stop, and the positions where clauses begin."""
    tokens: list[str] = []
    starts = {0}
    for found in _WORD.finditer(fold_text(text)):
        word = found.group()
        if word in _BREAKS:
            if tokens and tokens[-1] != _SENTENCE_END:
                tokens.append(_SENTENCE_END)
        elif word not in _COMMAS:
            tokens.append(MARKS["NUM"] if word.isdigit() else word)
            continue
        starts.add(len(tokens))
    return tokens, frozenset(starts)


class _Entry(msgspec.Struct, frozen=True):
    """A sequence of words; `prefix` when the last one may continue."""

    words: tuple[str, ...]
    prefix: bool

    def end(self, tokens: Sequence[str], start: int) -> int | None:
        end = start + len(self.words)
        if end > len(tokens):
            return None
        *whole, last = self.words
        if any(tokens[start + at] != word for at, word in enumerate(whole)):
            return None
        fits = tokens[end - 1].startswith(last) if self.prefix else tokens[end - 1] == last
        return end if fits else None


class _Step(msgspec.Struct, frozen=True):
    """An element of a phrase: the number of a symbol, a gap, or a boundary."""

    symbol: int = -1
    gap: int = 0
    place: str = ""
    optional: bool = False


class _Phrase(msgspec.Struct, frozen=True):
    steps: list[_Step]
    needs: frozenset[int]
    """Symbols without which it cannot match: this excludes most phrases."""


class _RuleBook:
    """The compiled phrases of a language: every word or class is a symbol, found by its first word; a choice
    of several is a symbol too, and occurs wherever one of them does."""

    def __init__(self, words: Words) -> None:
        self.alone: dict[str, list[int]] = {}
        self.longer: dict[str, list[tuple[int, _Entry]]] = {}
        self.begun: dict[str, list[int]] = {}
        self.choices: dict[int, list[int]] = {}
        """By symbol: the choices that it is one of."""
        self._symbols: dict[str, int] = {}
        self._classes = words.classes
        self._stop = frozenset(words.stop)
        # Names that no element of a phrase has.
        self.polite = self._list_symbols("|polite", words.polite)
        self.idioms = self._list_symbols("|idioms", words.idioms)
        self.rules = {
            name: [self._phrase(phrase) for phrase in phrases] for name, phrases in words.rules.items()
        }
        self.lengths = sorted({len(begin) for begin in self.begun})

    def has_word(self, word: str) -> bool:
        if word in self.alone or word in self.longer or word in self._stop:
            return True
        return any(word[:length] in self.begun for length in self.lengths)

    def _phrase(self, phrase: str) -> _Phrase:
        steps = [self._step(element) for element in _ELEMENT.findall(phrase)]
        needs = (step.symbol for step in steps if step.symbol >= 0 and not step.optional)
        return _Phrase(steps, frozenset(needs))

    def _step(self, element: str) -> _Step:
        if element in _GAPS:
            return _Step(gap=_GAPS[element])
        if element in "^$":
            return _Step(place=element)
        optional = len(element) > 1 and element.endswith("?")
        if optional:
            element = element[:-1]
        choices = element.strip("()").split("|")
        symbol = self._one(choices[0]) if len(choices) == 1 else self._choice(element, choices)
        return _Step(symbol=symbol, optional=optional)

    def _choice(self, element: str, choices: list[str]) -> int:
        if element not in self._symbols:
            number = self._number(element)
            for one in map(self._one, choices):
                self.choices.setdefault(one, []).append(number)
        return self._symbols[element]

    def _one(self, choice: str) -> int:
        return self._list_symbols(choice, self._classes[choice[1:-1]] if choice.startswith("<") else [choice])

    def _list_symbols(self, name: str, entries: list[str]) -> int:
        if name not in self._symbols:
            number = self._number(name)
            for text in entries:
                words, prefix = _entry(text)
                if len(words) > 1:
                    self.longer.setdefault(words[0], []).append((number, _Entry(words, prefix)))
                else:
                    (self.begun if prefix else self.alone).setdefault(words[0], []).append(number)
        return self._symbols[name]

    def _number(self, name: str) -> int:
        return self._symbols.setdefault(name, len(self._symbols))


class _RuleMatcher:
    """Matches a book against a text."""

    def __init__(self, book: _RuleBook, tokens: list[str], starts: frozenset[int]) -> None:
        self._book = book
        self._tokens = tokens
        self._found = self._find()
        if idioms := self._found.get(book.idioms):
            # An idiom contains words that mean something else alone: masked, they match no phrase, and the
            # rest is searched again.
            self._tokens = _mask_spans(tokens, idioms)
            self._found = self._find()
        self._starts = self._after_polite(starts)

    def rules(self) -> set[str]:
        return {name for name, phrases in self._book.rules.items() if any(map(self._holds, phrases))}

    def _find(self) -> dict[int, dict[int, set[int]]]:
        """Return the occurrences of each symbol: beginnings and their ends."""
        found: dict[int, dict[int, set[int]]] = {}
        book = self._book

        def stands(symbol: int, at: int, end: int) -> None:
            for one in (symbol, *book.choices.get(symbol, ())):
                found.setdefault(one, {}).setdefault(at, set()).add(end)

        for at, token in enumerate(self._tokens):
            symbols = list(book.alone.get(token, ()))
            for length in book.lengths:
                symbols += book.begun.get(token[:length], ()) if length <= len(token) else ()
            for symbol in symbols:
                stands(symbol, at, at + 1)
            for symbol, entry in book.longer.get(token, ()):
                if (end := entry.end(self._tokens, at)) is not None:
                    stands(symbol, at, end)
        return found

    def _after_polite(self, starts: frozenset[int]) -> set[int]:
        every, fresh = set(starts), set(starts)
        polite = self._found.get(self._book.polite, {})
        while fresh:
            fresh = {end for start in fresh for end in polite.get(start, ())} - every
            every |= fresh
        return every

    def _holds(self, phrase: _Phrase) -> bool:
        if not phrase.needs <= self._found.keys():
            return False
        first = phrase.steps[0]
        if first.place == "^":
            at = set(self._starts)
        elif first.symbol >= 0 and not first.optional:
            at = set(self._found.get(first.symbol, ()))
        else:
            at = set(range(len(self._tokens)))
        for step in phrase.steps:
            if not at:
                return False
            at = self._next(step, at)
        return bool(at)

    def _next(self, step: _Step, at: set[int]) -> set[int]:
        if step.gap:
            return self._spread(at, step.gap)
        if step.place == "^":
            return at & self._starts
        if step.place == "$":
            return {one for one in at if one >= len(self._tokens) or self._tokens[one] == _SENTENCE_END}
        places = self._found.get(step.symbol, {})
        ends = {end for one in at if one in places for end in places[one]}
        return ends | at if step.optional else ends

    def _spread(self, at: set[int], gap: int) -> set[int]:
        every, fresh = set(at), at
        for _ in range(gap):
            fresh = {
                one + 1 for one in fresh if one < len(self._tokens) and self._tokens[one] != _SENTENCE_END
            } - every
            every |= fresh
        return every


@functools.cache
def _book(language: str) -> _RuleBook:
    return _RuleBook(words(language))


def _entry(text: str) -> tuple[tuple[str, ...], bool]:
    """Return the words, and whether the last one may continue."""
    if text.isascii() and text.isalpha() and text not in MARKS:
        return (text.lower(),), False  # most are: the code below has the same result, ten times slower
    prefix = text.endswith("*")
    spelled = [
        word
        for piece in text.removesuffix("*").split()
        for word in ([MARKS[piece]] if piece in MARKS else _tokens(piece)[0])
    ]
    if not spelled or _SENTENCE_END in spelled:
        raise ValueError(f"{text!r} is not a valid word of a phrase")
    return tuple(spelled), prefix


def _mask_spans(tokens: list[str], spans: dict[int, set[int]]) -> list[str]:
    """Return the same number of words, with those of the spans masked."""
    masked = {at for start, ends in spans.items() for at in range(start, max(ends))}
    return ["" if at in masked else token for at, token in enumerate(tokens)]
