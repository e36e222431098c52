"""The significant words of a prompt, and which of them the assembled context does not contain.

Works in any language: words by their letters, Chinese and Japanese by pairs of characters, identifiers whole
and by their parts, numbers, and quoted strings. Knows nothing of gates; insignificant words are data (`stop`
in `words/*.json`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from ...model.index import WORDS_IN_IT
from ...text.folding import WIDE, fold_text
from ..phrases import rules
from .structure import MAX_CHARACTERS_READ

MAX_TERMS = 64
"""The first of a long prompt; more would only repeat its subject."""

SURE = 5
"""From this many letters on, a word is also found inside another (`cookie` in `setCookie`); a shorter one
must begin it."""

ENDING = 2
"""Letters at the end of a word that may differ: plurals and cases. Not for words of three letters or less."""

_LISTED = re.compile(rf"(?m)^{re.escape(WORDS_IN_IT)}.*$")
_QUOTED = re.compile(r"[\"“„«「『]([^\"“”„«»「」『』\n]{3,80})[\"”“»」』]")
_TERM = re.compile(rf"[{WIDE}]+|[^\W{WIDE}]+(?:[.'’-][^\W{WIDE}]+)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_JOINT = re.compile(r"[.'’-]")
_GRAMMAR = re.compile(r"[\u3040-\u309f]+")
_WIDE = re.compile(rf"[{WIDE}]")


def uncovered_terms(prompt: str, assembled: Iterable[str]) -> tuple[float, tuple[str, ...]]:
    """Return the share of the prompt's terms that are not found, and those terms in the prompt's order."""
    wanted = salient_terms(prompt)
    if not wanted:
        return 0.0, ()
    text = "\n".join(fold_text(_LISTED.sub("", piece)) for piece in assembled)
    missing = tuple(term for term in wanted if not _is_found(term, text))
    return len(missing) / len(wanted), missing


def salient_terms(prompt: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_terms(rules.ends(prompt, MAX_CHARACTERS_READ))))[:MAX_TERMS]


def _terms(text: str) -> Iterator[str]:
    for quoted in _QUOTED.finditer(text):
        yield quoted.group(1).strip()
    stop = _stop_words()
    for found in _TERM.finditer(_QUOTED.sub(" ", text)):
        term = found.group()
        if _WIDE.match(term):
            yield from _pairs(term, stop)
        elif _is_salient(term, stop):
            yield term


def _is_salient(term: str, stop: frozenset[str]) -> bool:
    plain = fold_text(term)
    if plain in stop or not (len(plain) > 2 or plain.isdigit() or term.isupper()):
        return False
    return not all(piece in stop or len(piece) < 2 for piece in _JOINT.split(plain))


def _pairs(run: str, stop: frozenset[str]) -> Iterator[str]:
    """Return pairs of adjacent characters. Hiragana is grammar, and so are the characters and words in the
    stop list, longer ones first."""
    for word in sorted(
        (word for word in stop if len(word) > 1 and word in run), key=lambda word: (-len(word), word)
    ):
        run = run.replace(word, " ")
    for piece in _GRAMMAR.sub(" ", run).split():
        for at in range(max(1, len(piece) - 1)):
            pair = piece[at : at + 2]
            if not any(one in stop for one in pair):
                yield pair


def _is_found(term: str, text: str) -> bool:
    plain = fold_text(term)
    if _occurs(plain, text):
        return True
    parts = [fold_text(part) for part in _PART.findall(term)]
    return len(parts) > 1 and all(_occurs(part, text) for part in parts)


def _occurs(plain: str, text: str) -> bool:
    if _WIDE.match(plain) or not plain.isalnum():
        return plain in text
    if len(plain) >= SURE and not plain.isdigit():
        return plain[: max(SURE, len(plain) - ENDING)] in text
    more = ENDING if len(plain) > 3 and plain.isalpha() else 0
    return re.search(rf"(?<![^\W_]){re.escape(plain)}(?![^\W_]{{{more + 1}}})", text) is not None


@functools.cache
def _stop_words() -> frozenset[str]:
    """Of all languages at once: a word without meaning in one of them is rarely significant in another."""
    return frozenset(fold_text(word) for language in rules.LANGUAGES for word in rules.words(language).stop)
