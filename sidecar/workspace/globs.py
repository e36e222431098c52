"""Patterns of paths as `.gitignore` and models write them: `*`, `?`, `[a-z]`, `**`, and `{a,b}` for models.

Pure. A pattern may come from a hostile repository, and a regular expression that blows up would hold every thread
of the process; so the time to match one is bounded by the lengths of pattern and path multiplied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

MAX_PATTERN = 1000
"""Characters of a pattern: longer than any path that it is likely to be meant for."""

MAX_ALTERNATIVES = 64
"""Patterns that one with braces may stand for: `{a,b}` ten times in a row would be a thousand."""

Name = Callable[[str], object]
"""Tells whether one name of a path matches."""


class BadPattern(ValueError):
    """The pattern means nothing, or too much; the words say which."""


class Glob(msgspec.Struct, frozen=True):
    """One pattern, read. A part is what one name must match; None is `**`, any number of names."""

    parts: tuple[Name | None, ...]
    folders_only: bool

    def matches(self, names: Sequence[str]) -> bool:
        """Whether the path of these names, beneath the folder of the pattern, matches as a whole."""
        parts = self.parts
        if len(parts) == 2 and parts[0] is None and parts[1] is not None:
            return bool(names) and bool(parts[1](names[-1]))
        return _matches(parts, names)


def parsed(pattern: str) -> Glob:
    """Read a pattern. Without a slash before its end it matches in every folder beneath."""
    if len(pattern) > MAX_PATTERN:
        raise BadPattern(f"the pattern has more than {MAX_PATTERN} characters")
    body = pattern.removesuffix("/")
    texts = body.removeprefix("/").split("/")
    if texts == [""]:
        raise BadPattern("the pattern names nothing")
    if "/" not in body:
        texts.insert(0, "**")
    if texts[-1] == "**":
        texts.append("*")  # what is in a folder, not the folder itself
    parts = [None if text == "**" else _name(text) for text in texts]
    return Glob(tuple(parts), pattern.endswith("/"))


def alternatives(pattern: str) -> list[str]:
    """The patterns that one with `{a,b}` stands for. Braces without a comma are ordinary characters."""
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
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise BadPattern(f"the braces stand for more than {MAX_ALTERNATIVES} patterns")
    return done


def _matches(parts: Sequence[Name | None], names: Sequence[str]) -> bool:
    """When a name does not fit, only the last `**` need take one more: what came before fits as early as it can."""
    part = name = 0
    retry: tuple[int, int] | None = None
    while name < len(names):
        wanted = parts[part] if part < len(parts) else _nothing
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


def _nothing(name: str) -> bool:
    return False


def _name(text: str) -> Name:
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
    """What stands before the last star is looked for once, at its first place, and never looked for again."""
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
    return first + "".join(f"(?>.*?{run})" for run in middle) + f".*{last}"


def _piece(text: str, at: int) -> tuple[str | None, int]:
    """The regular expression of the next sign, None for a star, and where it ends."""
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
    """The characters in brackets that open before `at`."""
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
    """The first pair from `start` on that has commas of its own: where it opens, its commas, where it closes."""
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
