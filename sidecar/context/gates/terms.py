"""The words of a prompt that carry its meaning, and which of them what was assembled does not hold.

Works in any language: words by their letters, Chinese and Japanese by pairs of characters, identifiers whole and by
their parts, numbers, and quoted strings. Knows nothing of gates; words that carry no meaning are data (`stop` in
`words/*.json`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from ...model.index import WORDS_IN_IT
from . import phrases
from .structure import LOOKED_AT

MAX_TERMS = 64
"""The first of a long prompt; more would only repeat its subject."""

SURE = 5
"""Letters from which on a word is also found inside another (`cookie` in `setCookie`); a shorter one begins one."""

ENDING = 2
"""Letters at the end of a word that may differ: plurals and cases. Not of words of three letters or less."""

_LISTED = re.compile(rf"(?m)^{re.escape(WORDS_IN_IT)}.*$")
_QUOTED = re.compile(r"[\"“„«「『]([^\"“”„«»「」『』\n]{3,80})[\"”“»」』]")
_TERM = re.compile(rf"[{phrases.WIDE}]+|[^\W{phrases.WIDE}]+(?:[.'’-][^\W{phrases.WIDE}]+)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_JOINT = re.compile(r"[.'’-]")
_GRAMMAR = re.compile(r"[\u3040-\u309f]+")
_WIDE = re.compile(rf"[{phrases.WIDE}]")


def uncovered(prompt: str, assembled: Iterable[str]) -> tuple[float, tuple[str, ...]]:
    """The share of the prompt's terms that are not found, and those terms in the prompt's order."""
    wanted = salient(prompt)
    if not wanted:
        return 0.0, ()
    text = "\n".join(phrases.folded(_LISTED.sub("", piece)) for piece in assembled)
    missing = tuple(term for term in wanted if not _found(term, text))
    return len(missing) / len(wanted), missing


def salient(prompt: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_terms(phrases.ends(prompt, LOOKED_AT))))[:MAX_TERMS]


def _terms(text: str) -> Iterator[str]:
    for quoted in _QUOTED.finditer(text):
        yield quoted.group(1).strip()
    stop = _stop()
    for found in _TERM.finditer(_QUOTED.sub(" ", text)):
        term = found.group()
        if _WIDE.match(term):
            yield from _pairs(term, stop)
        elif _carries(term, stop):
            yield term


def _carries(term: str, stop: frozenset[str]) -> bool:
    plain = phrases.folded(term)
    if plain in stop or not (len(plain) > 2 or plain.isdigit() or term.isupper()):
        return False
    return not all(piece in stop or len(piece) < 2 for piece in _JOINT.split(plain))


def _pairs(run: str, stop: frozenset[str]) -> Iterator[str]:
    """Neighbouring characters. Hiragana is grammar, and so are the characters and words among the stop words."""
    for word in (word for word in stop if len(word) > 1 and word in run):
        run = run.replace(word, " ")
    for piece in _GRAMMAR.sub(" ", run).split():
        for at in range(max(1, len(piece) - 1)):
            pair = piece[at : at + 2]
            if not any(one in stop for one in pair):
                yield pair


def _found(term: str, text: str) -> bool:
    plain = phrases.folded(term)
    if _stands(plain, text):
        return True
    parts = [phrases.folded(part) for part in _PART.findall(term)]
    return len(parts) > 1 and all(_stands(part, text) for part in parts)


def _stands(plain: str, text: str) -> bool:
    if _WIDE.match(plain) or not plain.isalnum():
        return plain in text
    if len(plain) >= SURE and not plain.isdigit():
        return plain[: max(SURE, len(plain) - ENDING)] in text
    more = ENDING if len(plain) > 3 and plain.isalpha() else 0
    return re.search(rf"(?<![^\W_]){re.escape(plain)}(?![^\W_]{{{more + 1}}})", text) is not None


@functools.cache
def _stop() -> frozenset[str]:
    """Of all languages at once: a word that means nothing in one of them rarely decides in another."""
    return frozenset(
        phrases.folded(word) for language in phrases.LANGUAGES for word in phrases.words(language).stop
    )
