"""Finds the definitions of a text by its layout: heads by how they begin, ends by indentation. Pure.

It reads lines and never parses, so it takes one pass over any text, and a broken file costs no more than a
valid one. Parsers with grammars do not have that property: some kilobytes of open brackets cost them minutes
and gigabytes. In a text with an unusual layout for its language, definitions are missed or end early; nothing
fails.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from .languages import Language, language_of

MAX_HEAD_LINES = 12
"""Of one definition: the beginning of a longer parameter list is enough."""

MAX_HEAD_WIDTH = 400
"""Characters of a line in which a head is searched: patterns may take quadratic time."""

MAX_TRIED = 10_000
"""Lines that look like heads, per text: each is read further to see whether a body opens."""

MAX_LINES = 100_000
"""Of a text with an outline; a longer one is data."""

MAX_COMMENT_LINES = 30
"""Above a definition: a longer comment is a section of its own."""

MAX_STRING_LINES = 400
"""Of one string: a longer one is more likely a quotation mark in a comment, which must not hide the rest."""

_CLOSING = re.compile(r"\s*(?:[)}\]]|end\b)")
_REMARK = re.compile(r"\s*(?:#|//|--|/\*|\*(?:\s|/|$))")
_COMMENT = re.compile(r"\s*(?://|/\*|\*(?:\s|/|$))")
_ABOVE = re.compile(r"\s*(?:@\w|#\[|\[\w.*\]\s*$|//|/\*|\*|--|template\s*<)")
_ABOVE_OR_HASH = re.compile(rf"{_ABOVE.pattern}|\s*#")
_DECORATION = re.compile(r"\s*(?:@\w|#\[|\[\w.*\]\s*$|template\s*<)")
_QUOTED = re.compile(r"'\w?\"{3}'|\"\w?'{3}\"")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`|//.*|/\*.*?\*/")
_NAMES = re.compile(r"~?#?[\w$]+")
_BRACKET = re.compile(r"[()\[\]{};]")
_HEAD_GOES_ON = (
    "{",
    ">",
    ")",
    ":",
    "->",
    "where",
    "throws",
    "extends",
    "implements",
    "with ",
    "noexcept",
    "const",
    "requires",
)
_FENCE = re.compile(r" {0,3}(```|~~~)")


class Definition(msgspec.Struct, frozen=True):
    """Lines count from 0 and both ends are included. `first` is before `head` where comments belong to it."""

    first: int
    head: int
    head_last: int
    last: int
    name: str
    depth: int = 0
    parent: int = -1
    """Its index among the definitions of its outline."""


class Outline(msgspec.Struct, frozen=True):
    """The definitions in the order of their heads, and the import lines."""

    definitions: list[Definition] = []
    imports: list[int] = []


class _Head(msgspec.Struct, frozen=True):
    """`first` and `start` as in a definition; `closes` when a brace or a keyword ends it."""

    first: int
    start: int
    last: int
    name: str
    closes: bool


def outline(lines: Sequence[str], path: str) -> Outline:
    """Return the outline; empty for a text whose language the name does not show."""
    language = language_of(path)
    if language is None or len(lines) > MAX_LINES:
        return Outline()
    if language.headings:
        return Outline(_with_parents(_sections(lines, language.headings)))
    inside = _string_lines(lines, language.quotes)
    imports = [
        at
        for at, line in enumerate(lines)
        if language.imports is not None and not inside[at] and language.imports.match(line)
    ]
    heads = _heads(lines, language, inside)
    return Outline(_with_parents(_with_ends(lines, heads, inside)), imports)


def _sections(lines: Sequence[str], headings: re.Pattern[str]) -> list[Definition]:
    """Return each heading with everything below it, up to the next one of the same or a higher level."""
    found: list[Definition] = []
    open_: list[tuple[int, int, str]] = []
    fence = ""

    def close(level: int, last: int) -> None:
        while open_ and open_[-1][0] >= level:
            _, head, name = open_.pop()
            found.append(Definition(head, head, head, last, name))

    for at, line in enumerate(lines):
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
        elif not fence and (heading := headings.match(line, 0, MAX_HEAD_WIDTH)):
            close(len(heading[1]), at - 1)
            open_.append((len(heading[1]), at, heading[2]))
    close(0, len(lines) - 1)
    return sorted(found, key=lambda one: one.head)


def _string_lines(lines: Sequence[str], quotes: Sequence[str]) -> bytearray:
    """Mark the lines that begin inside a multi-line string: their indentation has no meaning."""
    inside = bytearray(len(lines))
    for quote in quotes:
        odd = [
            at for at, line in enumerate(lines) if quote in line and _QUOTED.sub("", line).count(quote) % 2
        ]
        at = 0
        while at + 1 < len(odd):
            first, last = odd[at], odd[at + 1]
            if last - first > MAX_STRING_LINES:
                at += 1
                continue
            inside[first + 1 : last + 1] = b"\1" * (last - first)
            at += 2
    return inside


def _heads(lines: Sequence[str], language: Language, inside: Sequence[int]) -> dict[int, _Head]:
    """Return where definitions begin."""
    heads: dict[int, _Head] = {}
    beyond = tried = 0
    for at, line in enumerate(lines):
        if tried > MAX_TRIED:
            break
        # `beyond` is the first line after the last head: parameters over several lines look like definitions
        # themselves.
        if at < beyond or inside[at] or not line or line.isspace() or _COMMENT.match(line):
            continue
        for pattern in language.heads:
            if found := pattern.match(line, 0, MAX_HEAD_WIDTH):
                tried += 1
                name = _name(found)
                end = _head_end(lines, at, language, pattern in language.unsure) if name else None
                if end:
                    first, start = _above(lines, at, language)
                    heads[at] = _Head(first, start, end[0], name, end[1])
                    beyond = end[0] + 1
                    break
    return heads


def _name(found: re.Match[str]) -> str:
    """Return the last name in the match: types precede it, and type parameters follow it."""
    group = next((group for group in found.groups() if group), "").strip()
    if not found.re.groupindex:
        return group
    # The name of `operator>` ends in what looks like type parameters.
    plain = group[: group.rfind("<")] if group.endswith(">") and "operator" not in group else group
    names = _NAMES.findall(plain)
    return names[-1] if names else ""


def _head_end(lines: Sequence[str], at: int, language: Language, unsure: bool) -> tuple[int, bool] | None:
    """Return the last line of a head, and whether something closes what it opens; None when it is a
    statement."""
    if language.opens == "{":
        last = _opening_brace_line(lines, at)
        if last is not None:
            return last, _is_open("\n".join(lines[at : last + 1]))
        # Without a brace it is a declaration, which is worth showing, or, for a pattern that also matches
        # statements, a call.
        return None if unsure else (at, False)
    if language.opens == "end":
        return at, not re.search(r"\bend\b", lines[at])
    depth = 0
    for line in range(at, min(len(lines), at + MAX_HEAD_LINES)) if language.opens == ":" else ():
        text = _STRING.sub("", lines[line])
        depth += sum(map(text.count, "([")) - sum(map(text.count, ")]"))
        if depth <= 0:
            return line, False
    return at, False


def _opening_brace_line(lines: Sequence[str], at: int) -> int | None:
    """Return the line of the first opening brace outside other brackets; None when a statement ends before
    it."""
    indent = _indent(lines[at])
    depth = 0
    for line in range(at, min(len(lines), at + MAX_HEAD_LINES)):
        text = lines[line]
        if (
            line > at
            and depth <= 0
            and _indent(text) <= indent
            and not text.lstrip().startswith(_HEAD_GOES_ON)
        ):
            return None
        for found in _BRACKET.finditer(_STRING.sub("", text[:MAX_HEAD_WIDTH])):
            sign = found[0]
            if depth <= 0 and sign in "{;":
                return line if sign == "{" else None
            # A brace at depth 0 has returned above, so those counted here are inside parentheses: a default
            # value, a lambda.
            depth += 1 if sign in "([{" else -1 if sign in ")]}" else 0
    return None


def _is_open(head: str) -> bool:
    plain = _STRING.sub("", head)
    return plain.count("{") > plain.count("}")


def _with_ends(lines: Sequence[str], heads: dict[int, _Head], inside: Sequence[int]) -> list[Definition]:
    """Return each head with its end. A definition closed by a brace or keyword extends to it, even past
    unindented lines, which are in a string or are labels; any other ends before the next line that is not
    deeper."""
    made: list[Definition] = []
    open_: list[tuple[int, int]] = []
    filled = body = -1

    def close(indent: int, last: int, *, closed: bool) -> None:
        while open_ and open_[-1][0] >= indent and (closed or not heads[open_[-1][1]].closes):
            head = heads[open_.pop()[1]]
            made.append(Definition(head.first, head.start, head.last, max(last, head.last), head.name))

    for at, line in enumerate(lines):
        if inside[at]:
            filled = at
        if inside[at] or not line or line.isspace() or (at not in heads and _REMARK.match(line)):
            continue  # Comments and preprocessor lines may be anywhere, and end nothing.
        indent = _indent(line)
        if at in heads:
            close(indent, min(filled, heads[at].first - 1), closed=True)
            open_.append((indent, at))
            body = heads[at].last
        elif at > body and _CLOSING.match(line):
            close(indent + 1, filled, closed=True)
            if open_ and heads[open_[-1][1]].closes:
                close(indent, at, closed=True)
        elif at > body:
            close(indent, filled, closed=False)
        filled = at
    close(0, filled, closed=True)
    # Inner definitions were closed first; `_with_parents` needs them after the ones around them.
    return sorted(made, key=lambda one: one.head_last)


def _above(lines: Sequence[str], head: int, language: Language) -> tuple[int, int]:
    """Return where the comments and decorators directly above a head begin, and where the decorators do."""
    indent = _indent(lines[head])
    pattern = _ABOVE_OR_HASH if language.hashes else _ABOVE
    first = start = head
    while (
        first > 0
        and head - first < MAX_COMMENT_LINES
        and pattern.match(lines[first - 1])
        and 0 <= _indent(lines[first - 1]) - indent <= 1
    ):
        first -= 1
        if start == first + 1 and _DECORATION.match(lines[first]):
            start = first
    return first, start


def _with_parents(definitions: Sequence[Definition]) -> list[Definition]:
    """Return the same definitions with their depths and parents."""
    made: list[Definition] = []
    around: list[int] = []
    for one in definitions:
        while around and made[around[-1]].last < one.head:
            around.pop()
        parent = around[-1] if around else -1
        made.append(msgspec.structs.replace(one, depth=len(around), parent=parent))
        around.append(len(made) - 1)
    return made


def _indent(line: str) -> int:
    plain = line.expandtabs(4) if "\t" in line else line
    return len(plain) - len(plain.lstrip())
