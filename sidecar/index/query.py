"""Parses a query: `"phrases"`, AND, OR, NOT or -word, prefix*; everything else is plain words. Pure.

A query without AND or OR is ranked: text with more of its words, and rarer ones, comes first. With AND or OR
it is exact: text must contain every word of one of the alternatives. In both, phrases must occur and excluded
words must not. No FTS syntax comes from a user: the index gets quoted tokens of letters and digits.
"""

from __future__ import annotations

import functools
import re

import msgspec

from ..context.retrieval.lists import word_lists
from ..model.index import IndexTerm, QueryPlan
from ..text.folding import remove_accents
from ..text.stems import WORD

MAX_CHARACTERS_READ = 8_000
"""Code points of a query that are read. Text pasted beyond that is not part of the question."""

MAX_TERMS = 24
"""Words that are looked up, significant ones first: each costs a query."""

STOP_WEIGHT = 0.2
"""The weight of a stop word; in a log it still distinguishes one line from another."""

PART_WEIGHT = 0.6
"""The weight of other words that contain the wanted one."""

_ITEM = re.compile(r'(?P<bar>(?<!\S)-(?=["\w])(?!\d))?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_HANGUL = re.compile("[\uac00-\ud7af]")
_CODE = re.compile(r"(?=[^\W_]*\d)(?=[^\W_]*[^\W\d_])[^\W_]{6,}")
"""Letters and digits mixed, as in a hash: people write its first characters."""


class QueryWord(msgspec.Struct, frozen=True):
    """One token of a query."""

    text: str
    prefix: bool = False

    @property
    def dense(self) -> bool:
        """Whether the script has no spaces, so that a token is a character or two."""
        return _DENSE.fullmatch(self.text) is not None

    @property
    def match(self) -> str:
        if self.dense:
            return "(" + " AND ".join(f'"{letter}"' for letter in self.text) + ")"
        return f'"{self.text}"*' if self.prefix else f'"{self.text}"'


QueryPhrase = tuple[QueryWord, ...]


class ParsedQuery(msgspec.Struct, frozen=True):
    """`alternatives` are what an exact query accepts, each a list of phrases (a word is a phrase of one)."""

    words: tuple[QueryWord, ...] = ()
    phrases: tuple[QueryPhrase, ...] = ()
    alternatives: tuple[tuple[QueryPhrase, ...], ...] = ()
    barred: tuple[QueryPhrase, ...] = ()


def parse_query(text: str) -> ParsedQuery:
    """Parse a query. Never fails: invalid syntax counts as words."""
    items = list(_items(text[:MAX_CHARACTERS_READ]))
    wanted = [phrase for kind, phrase in items if kind in ("word", "phrase")]
    if not wanted:  # only exclusions: then they are what is searched
        wanted = [phrase for kind, phrase in items if kind == "barred"]
        items = [("word", phrase) for phrase in wanted]
    exact = any(kind in ("AND", "OR") for kind, _ in items)
    alternatives: list[list[QueryPhrase]] = [[]]
    for kind, phrase in items:
        if kind == "OR":
            alternatives.append([])
        elif kind in ("word", "phrase"):
            alternatives[-1].append(phrase)
    return ParsedQuery(
        tuple(dict.fromkeys(word for phrase in wanted for word in phrase)),
        tuple(phrase for kind, phrase in items if kind == "phrase") if not exact else (),
        tuple(tuple(phrases) for phrases in alternatives if phrases) if exact else (),
        tuple(phrase for kind, phrase in items if kind == "barred"),
    )


def plan_query(parsed: ParsedQuery, spelled: dict[str, tuple[str, ...]] | None = None) -> QueryPlan:
    """Return the plan for the index; `spelled` has replacements for words that it does not contain."""
    chosen = sorted(parsed.words, key=lambda word: is_stop(word.text))[:MAX_TERMS]
    if parsed.alternatives:
        needed = " OR ".join(f"({_match_all(phrases)})" for phrases in parsed.alternatives)
    else:
        needed = _match_all(parsed.phrases)
    barred = " OR ".join(phrase[0].match for phrase in parsed.barred if len(phrase) == 1)
    return QueryPlan(
        tuple(_term(word, (spelled or {}).get(word.text, ())) for word in chosen), needed, barred
    )


def is_stop(word: str) -> bool:
    return word in _stop_words()


def _items(text: str) -> list[tuple[str, QueryPhrase]]:
    """Return the parts of a query by kind: word, phrase, barred, AND, OR."""
    found: list[tuple[str, QueryPhrase]] = []
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


def _tokens(text: str) -> QueryPhrase:
    """Return the tokens of a word or a phrase; a star after it makes the last one a prefix."""
    tokens: list[QueryWord] = []
    for token in WORD.findall(remove_accents(text)):
        at = 0
        for run in _DENSE.finditer(token):
            tokens += _plain(token[at : run.start()])
            tokens += [QueryWord(pair) for pair in _pairs(run[0])]
            at = run.end()
        tokens += _plain(token[at:])
    if tokens and text.endswith("*") and not tokens[-1].dense:
        tokens[-1] = QueryWord(tokens[-1].text, True)
    return tuple(tokens)


def _plain(token: str) -> list[QueryWord]:
    if not token:
        return []
    return [QueryWord(token, bool(_HANGUL.search(token) or _CODE.fullmatch(token)))]


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def _match_all(phrases: tuple[QueryPhrase, ...]) -> str:
    return " AND ".join(word.match for phrase in phrases for word in phrase)


def _term(word: QueryWord, others: tuple[str, ...]) -> IndexTerm:
    weight = STOP_WEIGHT if is_stop(word.text) else 1.0
    if others:
        match = " OR ".join(f'"{other}"' for other in others)
        return IndexTerm(f"({match})", weight * PART_WEIGHT, others)
    return IndexTerm(word.match, weight, (word.text,), word.prefix)


@functools.cache
def _stop_words() -> frozenset[str]:
    return frozenset(remove_accents(word) for words in word_lists().stop.values() for word in words)
