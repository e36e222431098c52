"""Path patterns as in `.gitignore` and from models: `*`, `?`, `[a-z]`, `**`, and `{a,b}` for models.

Pure. A pattern may come from a hostile repository, and a regular expression with exponential time would block
every thread of the process; so the matching time is bounded by the product of the lengths of pattern and
path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

MAX_PATTERN = 1000
"""Characters of a pattern: longer than any path that it is likely to match."""

MAX_ALTERNATIVES = 64
"""Patterns that one with braces may expand to: `{a,b}` ten times in a row would be a thousand."""

NameMatcher = Callable[[str], object]
"""Returns whether one name of a path matches."""


class BadPattern(ValueError):
    """The pattern is invalid or expands too far; the message says which."""


class Glob(msgspec.Struct, frozen=True):
    """One parsed pattern. A part is what one name must match; None is `**`, any number of names."""

    parts: tuple[NameMatcher | None, ...]
    folders_only: bool

    def matches(self, names: Sequence[str]) -> bool:
        """Return whether the path of these names, below the folder of the pattern, matches as a whole."""
        parts = self.parts
        if len(parts) == 2 and parts[0] is None and parts[1] is not None:
            return bool(names) and bool(parts[1](names[-1]))
        return _matches(parts, names)


def parse_glob(pattern: str) -> Glob:
    """Parse a pattern. Without a slash before its end it matches in every folder below."""
    if len(pattern) > MAX_PATTERN:
        raise BadPattern(f"the pattern has more than {MAX_PATTERN} characters")
    body = pattern.removesuffix("/")
    texts = body.removeprefix("/").split("/")
    if texts == [""]:
        raise BadPattern("the pattern is empty")
    if "/" not in body:
        texts.insert(0, "**")
    if texts[-1] == "**":
        texts.append("*")  # what is in a folder, not the folder itself
    parts = [None if text == "**" else _name_matcher(text) for text in texts]
    return Glob(tuple(parts), pattern.endswith("/"))


def literal_brackets(pattern: str) -> str:
    """Return the pattern with brackets and braces as ordinary characters, as in the folder `app/[id]`."""
    return re.sub(r"[\[\]{}]", r"\\\g<0>", pattern)


def expand_braces(pattern: str) -> list[str]:
    """Return the patterns that one with `{a,b}` expands to. Braces without a comma are ordinary characters."""
    done: list[str] = []
    waiting = [(pattern, 0)]
    while waiting:
        text, start = waiting.pop()
        braces = _braces(text, start)
        if braces is None:
            done.append(text)
        else:
            first, commas, last = braces
            cuts = [first, *commas, last]
            choices = [text[one + 1 : two] for one, two in pairwise(cuts)]
            waiting.extend((text[:first] + choice + text[last + 1 :], first) for choice in reversed(choices))
        # Counted while expanding: afterwards the list would be in memory already.
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise BadPattern(f"the braces expand to more than {MAX_ALTERNATIVES} patterns")
    return done


def _matches(parts: Sequence[NameMatcher | None], names: Sequence[str]) -> bool:
    """Match names against parts. After a mismatch only the last `**` needs to take one more name: everything
    before it already matches as early as possible."""
    part = name = 0
    retry: tuple[int, int] | None = None
    # Linear in memory, and at most parts times names in steps; recursion at each `**` would be
    # exponential.
    while name < len(names):
        wanted = parts[part] if part < len(parts) else _matches_nothing
        if wanted is None:
            part += 1
            retry = (part, name)
        elif wanted(names[name]):
            part += 1
            name += 1
        elif retry:
            part, name = retry[0], retry[1] + 1
            retry = (part, name)
        else:
            return False
    return all(left is None for left in parts[part:])


def _matches_nothing(name: str) -> bool:
    return False


def _name_matcher(text: str) -> NameMatcher:
    special = set(text) & set("*?[\\")
    if not special:
        return text.__eq__
    if text == "*":
        return bool
    if special == {"*"} and text.rfind("*") == 0:
        ending = text[1:]
        return lambda name: name.endswith(ending)
    return re.compile(_regex(text), re.DOTALL).fullmatch


def _regex(text: str) -> str:
    """Translate a name pattern. What precedes the last star is atomic: it matches at its first position
    without backtracking."""
    runs = [""]
    at = 0
    while at < len(text):
        piece, after = _piece(text, at)
        if piece is not None:
            runs[-1] += piece
        elif len(runs) == 1 or runs[-1]:
            runs.append("")
        at = after
    if len(runs) == 1:
        return runs[0]
    first, *middle, last = runs
    # Atomic groups: with plain `.*` between stars, a name that does not match takes exponential time.
    return first + "".join(f"(?>.*?{run})" for run in middle) + f".*{last}"


def _piece(text: str, at: int) -> tuple[str | None, int]:
    """Return the regular expression of the next character, None for a star, and where it ends."""
    sign = text[at]
    if sign == "*":
        return None, at + 1
    if sign == "?":
        return ".", at + 1
    if sign == "[":
        return _set(text, at + 1)
    if sign == "\\":
        if at + 1 == len(text):
            raise BadPattern("a backslash at the end escapes nothing")
        return re.escape(text[at + 1]), at + 2
    return re.escape(sign), at + 1


_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": "!-\\/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


def _set(text: str, at: int) -> tuple[str, int]:
    """Parse the characters in brackets that open before `at`."""
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    members: list[str] = []
    first = True
    while at < len(text) and (first or text[at] != "]"):
        first = False
        named = re.match(r"\[:([a-z]+):\]", text[at:])
        if named:
            members.append(_CLASSES.get(named[1], ""))
            at += named.end()
            continue
        low, at = _member(text, at)
        high = low
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("", "]"):
            high, at = _member(text, at + 1)
        if low <= high:
            members.append(f"{re.escape(low)}-{re.escape(high)}")
    if at >= len(text):
        raise BadPattern("a bracket is not closed")
    inside = "".join(members)
    if not inside:
        return ("." if negated else r"[^\s\S]"), at + 1
    return f"[{'^' if negated else ''}{inside}]", at + 1


def _member(text: str, at: int) -> tuple[str, int]:
    if text[at] == "\\" and at + 1 < len(text):
        at += 1
    return text[at], at + 1


def _braces(text: str, start: int) -> tuple[int, list[int], int] | None:
    """Return the first pair of braces from `start` on that has commas of its own: its start, its commas, its
    end."""
    opened: list[tuple[int, list[int]]] = []
    found: tuple[int, list[int], int] | None = None
    escaped = False
    for at, sign in enumerate(text[start:], start):
        if escaped or sign == "\\":
            escaped = not escaped
        elif sign == "{":
            opened.append((at, []))
        elif sign == "," and opened:
            opened[-1][1].append(at)
        elif sign == "}" and opened:
            first, commas = opened.pop()
            if commas and (found is None or first < found[0]):
                found = (first, commas, at)
            if found and not opened:
                return found
    return found
