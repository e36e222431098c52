"""Finds what a prompt refers to in a text: lines by number, fragments by quotation, definitions and uses by
name. Pure.

Works by form in any language: numbers beside a file name, quotation marks, and words that look like code. An
ordinary word counts when a definition has that name, or when it is long and occurs in few lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import msgspec

from .outline import Outline

MAX_HINT = 16_000
"""Characters of a prompt that are read, half from each end: people ask before or after what they paste."""

MAX_NAMES = 60
MAX_FRAGMENTS = 40
MAX_RANGES = 20
"""Of a prompt: further ones would not fit anyway."""

MAX_PLACES = 40
"""Of one name or fragment: a more frequent one identifies no position."""

MAX_POINTED = 200
"""Positions in all: each adds the lines around it, and 2,000 tokens are about as many lines."""

MAX_USES = 6
"""Of one name that is defined here: its definition says more."""

FEW_PLACES = 3
"""A name that is only used here, and this rarely, is treated like a named line."""

MAX_RANGE_LINES = 400

_NUMBERS = r"(\d{1,7})(?:\s{0,3}(?:-|–|—|\.\.|to|bis|à|a|hasta|until|through|至|到|から)\s{0,3}L?(\d{1,7}))?"
_NAMED_LINE = re.compile(
    r"(?:\b(?:lines?|ln|row|zeilen?|l[ií]neas?|lignes?|linhas?|righe|riga|regel)\b\.?\s{0,3}[:#=]?\s{0,3}|第\s?|\bL)"
    + _NUMBERS,
    re.IGNORECASE,
)
_LINE_AFTER = re.compile(_NUMBERS + r"\s?行")
_FILE_LINE = re.compile(
    r"([\w./\\@+~-]{0,200})(?::|#L|\()(\d{1,7})(?:(?::|,\s?)\d{1,7}\b)?(?:\s?(?:-|–|\.\.)\s?L?(\d{1,7})\b)?"
)
_TRACE_LINE = re.compile(r"\bFile \"([^\"\n]+)\", line (\d{1,7})")
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d{1,7})(?:,(\d{1,7}))? @@", re.MULTILINE)

_FENCED = re.compile(r"(?:```|~~~)[^\n]*\n(.*?)(?:```|~~~|\Z)", re.DOTALL)
_QUOTED = re.compile(
    r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»|「([^」\n]+)」|(?<!\w)'([^'\n]+)'(?!\w)"
)
_OWNED = re.compile(r"([^\W\d][\w$]*)(?:\.|::|#|->)([^\W\d][\w$]*)")
_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_ANY = re.compile(r"[^\W\d]\w*")
_CODE = re.compile(r"_|\$|[a-z0-9][A-Z]|[A-Za-z]\d|^[A-Z]{2,}$|^[A-Z][a-z]+[A-Z]")


class Mentions(msgspec.Struct, frozen=True):
    """`ranges` count lines from 0, both ends included."""

    ranges: list[tuple[int, int]] = []
    fragments: list[str] = []
    owned: list[tuple[str, str]] = []
    names: list[str] = []
    """Names that look like code."""

    words: list[str] = []


class Position(msgspec.Struct, frozen=True):
    """Lines that the prompt refers to, both ends included. `strong`: their whole definition comes before the
    outline."""

    first: int
    last: int
    strong: bool = True


def find_mentions(hint: str, path: str) -> Mentions:
    """Return what a prompt names; a line number beside another file's name does not count."""
    if len(hint) > MAX_HINT:
        hint = f"{hint[: MAX_HINT // 2]}\n{hint[-MAX_HINT // 2 :]}"
    fragments = list(dict.fromkeys(_fragments(hint)))[:MAX_FRAGMENTS]
    ranges = [
        (first - 1, min(max(first, last), first + MAX_RANGE_LINES) - 1)
        for first, last in _ranges(hint, path)
        if first
    ]
    quoted = {
        name for fragment in fragments for name in _PLAIN.findall(fragment)[:3] if fragment.startswith(name)
    }
    found = dict.fromkeys(_PLAIN.findall(hint) + [name for name in _ANY.findall(hint) if not name.isascii()])
    names = [
        name
        for name in found
        if len(name) > 1 and (name in quoted or _CODE.search(name) or f"{name}(" in hint)
    ]
    words = [name for name in found if len(name) > 2 and name not in names]
    return Mentions(
        list(dict.fromkeys(ranges))[:MAX_RANGES],
        fragments,
        list(dict.fromkeys(_OWNED.findall(hint)))[:MAX_NAMES],
        names[:MAX_NAMES],
        words[: 4 * MAX_NAMES],
    )


def find_positions(found: Mentions, text: str, starts: Sequence[int], structure: Outline) -> list[Position]:
    """Return the positions of the mentions, most certain first. `starts` are the offsets of the lines of
    `text`."""
    count = len(starts)
    made = [Position(first, min(last, count - 1)) for first, last in found.ranges if first < count]
    owned = _find_owned(found, structure)
    made += owned
    # A method found by its owner is certain: its bare name would also point at every other class that has
    # one.
    taken = {name for pair in found.owned for name in pair} if owned else set()
    made += [
        place for name in found.names if name not in taken for place in _find_definitions(name, structure)
    ]
    for fragment in found.fragments:
        lines = _lines(text, fragment, starts)
        made += [Position(line, line, len(lines) <= FEW_PLACES) for line in lines]
    made += [place for word in found.words for place in _find_definitions(word, structure)]
    rare = [name for name in found.words if len(name) > 6 or not name.isascii()][:MAX_NAMES]
    wanted = [name for name in [*found.names, *rare] if name not in taken]
    uses = [(name, _lines(text, name, starts, whole=True)) for name in wanted]
    # The rarest first, because the number of positions is limited and a rare name says more.
    for name, lines in sorted(uses, key=lambda use: len(use[1])):
        defined = bool(_find_definitions(name, structure))
        strong = len(lines) <= FEW_PLACES and name in found.names and not defined
        made += [Position(line, line, strong) for line in lines[: MAX_USES if defined else MAX_PLACES]]
    return sorted(dict.fromkeys(made), key=lambda place: not place.strong)[:MAX_POINTED]


def focus_offsets(found: Mentions, line: str) -> list[int]:
    """Return the offsets in an overlong line that the prompt refers to; few, and in order."""
    wanted = [*found.fragments, *found.names, *(word for word in found.words if len(word) > 6)]
    hits = [(line.find(word), line.count(word)) for word in wanted]
    telling = sorted((times, at) for at, times in hits if at >= 0 and times <= MAX_PLACES)
    return sorted({at for _, at in telling[:FEW_PLACES]})


def _ranges(hint: str, path: str) -> Iterator[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for found in _TRACE_LINE.finditer(hint):
        spans.append(found.span())
        if _is_same_path(found[1], path):
            yield int(found[2]), int(found[2])
    for found in _FILE_LINE.finditer(hint):
        if any(first <= found.start() < last for first, last in spans):
            continue
        if _names_this_file(found[1], path) or (not found[1] and found[0][0] == "#"):
            yield int(found[2]), int(found[3] or found[2])
        if found[1]:
            spans.append(found.span())
    for pattern in (_NAMED_LINE, _LINE_AFTER):
        for found in pattern.finditer(hint):
            if not any(first <= found.start() < last for first, last in spans):
                yield int(found[1]), int(found[2] or found[1])
    for found in _HUNK.finditer(hint):
        yield int(found[1]), int(found[1]) + max(1, int(found[2] or 1)) - 1


def _names_this_file(name: str, path: str) -> bool:
    """Return whether a name before a number is this file: `example.py:3` names a line, `localhost:80` does
    not, and `:3` alone does at the start of a word."""
    if path:
        return bool(name) and _is_same_path(name, path)
    return bool(re.search(r"\.[A-Za-z]\w*$", name))


def _is_same_path(name: str, path: str) -> bool:
    """Return whether the shorter path is the end of the longer: one may be absolute and the other relative."""
    if not path:
        return True
    ours = [part.lower() for part in re.split(r"[/\\]", path) if part not in ("", ".")]
    # `a` and `b` are what git puts before the paths of a diff.
    theirs = [part.lower() for part in re.split(r"[/\\]", name) if part not in ("", ".", "..", "a", "b")]
    shared = min(len(ours), len(theirs))
    return shared > 0 and ours[-shared:] == theirs[-shared:]


def _fragments(hint: str) -> Iterator[str]:
    for found in _QUOTED.finditer(hint):
        fragment = next(group for group in found.groups() if group).strip()
        if len(fragment) > 2:
            yield fragment
    for found in _FENCED.finditer(hint):
        for line in found[1].splitlines():
            if len(line.strip()) > 7:
                yield line.strip()


def _find_owned(found: Mentions, structure: Outline) -> list[Position]:
    """Find `Owner.name`: the definition of that name inside the definition of the owner."""
    made = []
    for owner, name in found.owned:
        for one in structure.definitions:
            above = structure.definitions[one.parent].name if one.parent >= 0 else ""
            if one.name == name and above == owner:
                made.append(Position(one.head, one.head_last))
    return made[:MAX_PLACES]


def _find_definitions(name: str, structure: Outline) -> list[Position]:
    return [Position(one.head, one.head_last) for one in structure.definitions if one.name == name][
        :MAX_PLACES
    ]


def _lines(text: str, wanted: str, starts: Sequence[int], whole: bool = False) -> list[int]:
    """Return the lines in which something occurs; none when there are too many to identify a position."""
    lines: dict[int, None] = {}
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not whole or not (
            _is_name_character(text[at - 1 : at]) or _is_name_character(text[end : end + 1])
        ):
            lines[bisect_right(starts, at) - 1] = None
            if len(lines) > MAX_PLACES:
                return []
        at = text.find(wanted, end)
    return list(lines)


def _is_name_character(sign: str) -> bool:
    return sign == "_" or (sign.isascii() and sign.isalnum())
