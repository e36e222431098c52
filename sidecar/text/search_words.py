"""The words of a message as people search for them: in any script, by their beginning, and parts of identifiers. Pure.

Text is compared folded: lower case, without accents, full and half width alike. Scripts without spaces, and
Korean with its endings, are found by pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import msgspec

MAX_TERMS = 12
"""Words of a query that are looked up: each costs a look into the index."""

MAX_LETTERS = 400_000
"""Code points of one message whose parts are indexed, and that are searched for what to show."""

MAX_MATCHES = 40
"""Matches that are shown in one message."""

MAX_WORD = 64
MAX_JOINTS = 8
"""Longer words, and those with more joints, are data such as base64, not identifiers."""

SNIPPET = 120
BEFORE = 30
"""Code points that are shown, and those of them before the first match."""

_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_TOKEN = rf"[{_DENSE}]+|[^\W_{_DENSE}]+"
_IS_DENSE = rf"[{_DENSE}]"
_JOINT = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[a-z])"
_CLUSTER = r"[\u1100-\u115f][\u1160-\u11a7]?[\u11a8-\u11ff]?|(?s:.)[\u0300-\u036f\u3099\u309a\uff9e\uff9f]*"
_ACCENTS = "[\u0300-\u036f]+"
_QUERY = r'"([^"]*)"|([^\s"]+)'


@cache
def _pattern(expression: str) -> re.Pattern[str]:
    """Compile an expression when it is first needed: the first token does not wait for those of other scripts."""
    return re.compile(expression)


class Term(msgspec.Struct, frozen=True):
    """What must occur: tokens one after the other. The last may be the beginning of a word, unless quoted."""

    tokens: tuple[str, ...]
    prefix: bool


class Folded(msgspec.Struct, frozen=True):
    """A text as it is compared; `starts` are the positions of its characters in the text, if they differ."""

    text: str
    starts: Sequence[int] | None = None

    def origin(self, at: int) -> int:
        return self.starts[at] if self.starts else at


def is_dense(token: str) -> bool:
    return not token.isascii() and _pattern(_IS_DENSE).match(token) is not None


def parse_terms(query: str) -> list[Term]:
    """Return what a query wants. Never fails: all but letters, digits and quotation marks separates words."""
    terms = []
    for found in _pattern(_QUERY).finditer(query):
        quoted = found[1] is not None
        tokens = tuple(_pattern(_TOKEN).findall(fold(found[1] if quoted else found[2]).text))
        if tokens:
            terms.append(Term(tokens, not quoted))
    return list(dict.fromkeys(terms))[:MAX_TERMS]


def fold(text: str) -> Folded:
    if text.isascii():
        return Folded(text.lower())
    pieces: list[str] = []
    starts: list[int] = []
    at = 0
    for cluster in _pattern(_CLUSTER).findall(text):
        piece = _fold_cluster(cluster)
        pieces.append(piece)
        starts += [at] * len(piece)
        # One entry per folded character, and one for the end: folding changes lengths (ß, ligatures), and
        # matches must be shown in the text as it was written.
        at += len(cluster)
    starts.append(at)
    return Folded("".join(pieces), starts)


def part_words(text: str) -> str:
    """Return what the index of whole words misses: pairs of characters, and identifiers from each joint on."""
    text = text[:MAX_LETTERS]
    found: dict[str, None] = {}
    if not text.isascii():
        _add_dense(fold(text).text, found)
        _add_other_spellings(text, found)
    elif _pattern(_JOINT).search(text) is None:
        return ""
    for word in set(re.findall(r"[A-Za-z0-9]+", text)):
        for part in _parts(word):
            found[part.lower()] = None
    return " ".join(found)


def pairs(run: str) -> list[str]:
    """Return the pairs of a run of characters, and its last one, which begins no pair."""
    return [run[at : at + 2] for at in range(len(run))]


def find_matches(text: str, terms: Sequence[Term], *, inside: bool) -> list[tuple[int, int]] | None:
    """Return where the terms occur, in code points of the text; None if one does not. `inside`: also within
    words, if a term begins none."""
    folded = fold(text[:MAX_LETTERS]) if not text.isascii() else Folded(text.lower())
    found: list[tuple[int, int]] = []
    for term in terms:
        places = list(_places(text, folded, term, inside=False)) or (
            list(_places(text, folded, term, inside=True)) if inside else []
        )
        if not places:
            return None
        found += places
    return _merged(found)


def snippet(text: str, matches: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]], int]:
    """Return a part of the text with most matches, where they are in it, and where it begins in the text."""
    begin = (
        max(matches, key=lambda one: sum(one[0] <= at < one[0] + SNIPPET // 2 for at, _ in matches))[0]
        if matches
        else 0
    )
    start = 0 if begin <= BEFORE else _word_start(text, begin - BEFORE, begin)
    end = min(len(text), start + SNIPPET)
    if end < len(text) and (space := text.rfind(" ", start + SNIPPET // 2, end)) > begin + BEFORE:
        end = space
    before = "…" if start else ""
    shown = [
        (max(one, start) - start + len(before), min(other, end) - start + len(before))
        for one, other in matches
        if one < end and other > start
    ]
    return f"{before}{text[start:end]}{'…' if end < len(text) else ''}", shown, start


@lru_cache(maxsize=20_000)
def _fold_cluster(cluster: str) -> str:
    plain = _pattern(_ACCENTS).sub("", unicodedata.normalize("NFKD", cluster.casefold()))
    return unicodedata.normalize("NFC", plain)


def _add_dense(folded: str, found: dict[str, None]) -> None:
    before = None
    for match in _pattern(_TOKEN).finditer(folded):
        token = match[0]
        touching = before is not None and before.end() == match.start()
        if is_dense(token):
            found.update(dict.fromkeys(pairs(token)))
            # The index of whole words does not divide between scripts: `iPhone手机` is one word to it, and
            # neither part of it would be found.
            if touching and before is not None:
                found[before[0][:MAX_WORD]] = None
        elif touching:
            found[token[:MAX_WORD]] = None
        before = match


def _add_other_spellings(text: str, found: dict[str, None]) -> None:
    """Add words that the index spells otherwise: full width, ligatures, ß."""
    for word in {
        word for word in _pattern(_TOKEN).findall(text) if not word.isascii() and not is_dense(word)
    }:
        plain = fold(word[:MAX_WORD]).text
        lowered = _pattern(_ACCENTS).sub("", unicodedata.normalize("NFD", word[:MAX_WORD].lower()))
        if plain != unicodedata.normalize("NFC", lowered):
            found.update(dict.fromkeys(_pattern(_TOKEN).findall(plain)))


def _parts(word: str) -> Iterator[str]:
    if len(word) <= MAX_WORD:
        joints = [joint.start() for joint in _pattern(_JOINT).finditer(word)]
        if len(joints) <= MAX_JOINTS:
            yield from (word[at:] for at in joints)


def _places(text: str, folded: Folded, term: Term, *, inside: bool) -> Iterator[tuple[int, int]]:
    pattern = re.compile(r"[\W_]*".join(map(re.escape, term.tokens)))
    count = 0
    for match in pattern.finditer(folded.text):
        start, end = folded.origin(match.start()), folded.origin(match.end())
        # A match inside one character that folding has made into several: there is nothing to show.
        if folded.starts and end == start:
            continue
        whole = term.prefix or is_dense(term.tokens[-1]) or _is_border(text, folded, end, match.end())
        if inside or (whole and (is_dense(term.tokens[0]) or _is_border(text, folded, start, match.start()))):
            yield start, end
            count += 1
            if count == MAX_MATCHES:
                return


def _is_border(text: str, folded: Folded, at: int, folded_at: int) -> bool:
    """Return whether a word or a part of one may begin or end here."""
    if not 0 < folded_at < len(folded.text):
        return True
    before, after = folded.text[folded_at - 1], folded.text[folded_at]
    if not (before.isalnum() and after.isalnum()) or is_dense(before) or is_dense(after):
        return True
    return _pattern(_JOINT).match(text, at) is not None


def _merged(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges in order, joined where they overlap."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged[:MAX_MATCHES]


def _word_start(text: str, at: int, latest: int) -> int:
    """Return the beginning of a word near `at`, and before what must be shown."""
    space = text.find(" ", at, latest)
    return space + 1 if space >= 0 else at
