"""What a query means: `"phrases"`, AND, OR, NOT or -word, prefix*; everything else is plain words. Pure.

A query without AND or OR is ranked: a place that holds more of its words, and rarer ones, comes first. With AND or OR
it is exact: a place must hold every word of one of the alternatives. Phrases must be there and excluded words must
not, in both. No syntax of the index comes from a user: what it is asked consists of quoted tokens of letters and
digits.
"""

from __future__ import annotations

import functools
import re

import msgspec

from ..context.retrieval.lists import lists
from ..model.index import Plan, Term
from .stems import WORD, folded

READ = 8_000
"""Code points of a query that are read. What is pasted beyond that is not what is asked."""

MAX_TERMS = 24
"""Words that are looked up, those that say something first: each costs a query."""

STOP_WEIGHT = 0.2
"""Of a word that says nothing of a subject; where a log has it, it still tells one line from another."""

PART_WEIGHT = 0.6
"""Of other words that hold the one that was asked for."""

_ITEM = re.compile(r'(?P<bar>(?<!\S)-(?=["\w])(?!\d))?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_HANGUL = re.compile("[\uac00-\ud7af]")
_CODE = re.compile(r"(?=[^\W_]*\d)(?=[^\W_]*[^\W\d_])[^\W_]{6,}")
"""Letters and digits mixed, as in a hash: people write its first letters."""


class Word(msgspec.Struct, frozen=True):
    """One token that is looked for."""

    text: str
    prefix: bool = False

    @property
    def dense(self) -> bool:
        """Of a script without blanks, where a token is a character or two."""
        return _DENSE.fullmatch(self.text) is not None

    @property
    def match(self) -> str:
        if self.dense:
            return "(" + " AND ".join(f'"{letter}"' for letter in self.text) + ")"
        return f'"{self.text}"*' if self.prefix else f'"{self.text}"'


Phrase = tuple[Word, ...]


class Parsed(msgspec.Struct, frozen=True):
    """`alternatives` are what an exact query accepts, each a list of phrases (a word is a phrase of one)."""

    words: tuple[Word, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    alternatives: tuple[tuple[Phrase, ...], ...] = ()
    barred: tuple[Phrase, ...] = ()


def parse(text: str) -> Parsed:
    """Never fails: what makes no sense as syntax counts as words."""
    items = list(_items(text[:READ]))
    wanted = [phrase for kind, phrase in items if kind in ("word", "phrase")]
    if not wanted:  # only exclusions: then they are what is meant
        wanted = [phrase for kind, phrase in items if kind == "barred"]
        items = [("word", phrase) for phrase in wanted]
    exact = any(kind in ("AND", "OR") for kind, _ in items)
    alternatives: list[list[Phrase]] = [[]]
    for kind, phrase in items:
        if kind == "OR":
            alternatives.append([])
        elif kind in ("word", "phrase"):
            alternatives[-1].append(phrase)
    return Parsed(
        tuple(dict.fromkeys(word for phrase in wanted for word in phrase)),
        tuple(phrase for kind, phrase in items if kind == "phrase") if not exact else (),
        tuple(tuple(phrases) for phrases in alternatives if phrases) if exact else (),
        tuple(phrase for kind, phrase in items if kind == "barred"),
    )


def plan(parsed: Parsed, spelled: dict[str, tuple[str, ...]] | None = None) -> Plan:
    """What the index is asked; `spelled` has other words for those that it does not have."""
    chosen = sorted(parsed.words, key=lambda word: is_stop(word.text))[:MAX_TERMS]
    if parsed.alternatives:
        needed = " OR ".join(f"({_all(phrases)})" for phrases in parsed.alternatives)
    else:
        needed = _all(parsed.phrases)
    barred = " OR ".join(phrase[0].match for phrase in parsed.barred if len(phrase) == 1)
    return Plan(tuple(_term(word, (spelled or {}).get(word.text, ())) for word in chosen), needed, barred)


def is_stop(word: str) -> bool:
    return word in _stop_words()


def _items(text: str) -> list[tuple[str, Phrase]]:
    """The parts of a query by kind: word, phrase, barred, AND, OR."""
    found: list[tuple[str, Phrase]] = []
    bar_next = False
    for item in _ITEM.finditer(text):
        raw = item["word"]
        if raw in ("AND", "OR") and not item["bar"]:
            if found and found[-1][0] not in ("AND", "OR"):
                found.append((raw, ()))
            continue
        if raw == "NOT" and not item["bar"]:
            bar_next = True
            continue
        barred = bool(item["bar"]) or bar_next
        bar_next = False
        tokens = _tokens(item["phrase"] if raw is None else raw)
        if not tokens:
            continue
        if barred:
            found.append(("barred", tokens))
        elif raw is None and len(tokens) > 1:
            found.append(("phrase", tokens))
        else:
            found += [("word", (token,)) for token in tokens]
    while found and found[-1][0] in ("AND", "OR"):
        found.pop()
    return found


def _tokens(text: str) -> Phrase:
    """The tokens of a word or a phrase; a star behind it makes the last one a prefix."""
    tokens: list[Word] = []
    for token in WORD.findall(folded(text)):
        at = 0
        for run in _DENSE.finditer(token):
            tokens += _plain(token[at : run.start()])
            tokens += [Word(pair) for pair in _pairs(run[0])]
            at = run.end()
        tokens += _plain(token[at:])
    if tokens and text.endswith("*") and not tokens[-1].dense:
        tokens[-1] = Word(tokens[-1].text, True)
    return tuple(tokens)


def _plain(token: str) -> list[Word]:
    if not token:
        return []
    return [Word(token, bool(_HANGUL.search(token) or _CODE.fullmatch(token)))]


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def _all(phrases: tuple[Phrase, ...]) -> str:
    return " AND ".join(word.match for phrase in phrases for word in phrase)


def _term(word: Word, others: tuple[str, ...]) -> Term:
    weight = STOP_WEIGHT if is_stop(word.text) else 1.0
    if others:
        match = " OR ".join(f'"{other}"' for other in others)
        return Term(f"({match})", weight * PART_WEIGHT, others)
    return Term(word.match, weight, (word.text,), word.prefix)


@functools.cache
def _stop_words() -> frozenset[str]:
    return frozenset(folded(word) for words in lists().stop.values() for word in words)
