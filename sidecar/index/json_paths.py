"""Finds where JSON can be divided: between the members of what is too large to stay whole, each under its key
path. Pure.

Reads any text that begins like JSON, even a truncated or invalid one: what could be parsed counts.
"""

from __future__ import annotations

import re

import msgspec

MAX_READ = 4 * 1024 * 1024
"""Code points whose structure is read; the rest is divided like any text."""

MAX_DEPTH = 200
MIN_GROUP = 1024
"""Code points of small members that stay together."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]')


class _Container:
    """An object or an array: where it ends, where its members begin, and their names. Scalars are not members
    of an array: nobody searches for them by index."""

    __slots__ = ("end", "is_object", "members")

    def __init__(self, start: int, is_object: bool) -> None:
        self.end = start
        self.is_object = is_object
        self.members: list[tuple[int, str, _Container | None]] = []


class Border(msgspec.Struct, frozen=True):
    """A position where a chunk begins, and the path of what it begins with."""

    start: int
    title: str


def json_sections(text: str, whole: int) -> list[Border]:
    """Return borders between members of whatever has more than `whole` code points; none when it does not
    look like JSON."""
    begun = text[:200].lstrip()
    if not begun.startswith(("{", "[")):
        return []
    root = _Reader().read(text)
    borders: list[Border] = []
    # A value that ends long before the text is the first of many, as in a log with one object per line.
    if root is not None and root.end > min(len(text), MAX_READ) // 2:
        _divide(root, "", whole, borders)
    return borders


class _Reader:
    """Reads tokens into containers. `_string` is the last string, which is a key when a colon follows."""

    def __init__(self) -> None:
        self.root: _Container | None = None
        self._open: list[_Container] = []
        self._string: tuple[int, str] | None = None
        self._awaits_member = False

    def read(self, text: str) -> _Container | None:
        """Return the outermost object or array, as far as it could be read."""
        for token in _TOKEN.finditer(text, 0, MAX_READ):
            sign = token[0]
            if sign[0] == '"':
                self._take_string(token.start(), sign[1:-1])
            elif sign in "{[":
                if len(self._open) == MAX_DEPTH:
                    break
                self._begin(token.start(), sign == "{")
            elif sign in "}]":
                self._end(token.end())
                if not self._open:
                    return self.root
            elif sign == "," or not self._open[-1].is_object:
                self._awaits_member = True
            elif self._string:
                start, name = self._string
                self._open[-1].members.append((start, name, None))
        for box in self._open:
            box.end = min(len(text), MAX_READ)
        return self.root

    def _take_string(self, start: int, text: str) -> None:
        self._string = (start, text)
        if self._open and self._awaits_member and not self._open[-1].is_object:
            self._open[-1].members.append((start, "", None))
        self._awaits_member = False

    def _begin(self, start: int, is_object: bool) -> None:
        box = _Container(start, is_object)
        if self.root is None:
            self.root = box
        elif self._open[-1].is_object and self._open[-1].members:
            begun, name, _ = self._open[-1].members[-1]
            self._open[-1].members[-1] = (begun, name, box)
        else:
            self._open[-1].members.append((start, "", box))
        self._open.append(box)
        self._awaits_member, self._string = True, None

    def _end(self, end: int) -> None:
        self._open.pop().end = end
        self._awaits_member, self._string = False, None


def _divide(box: _Container, path: str, whole: int, borders: list[Border]) -> None:
    waiting = [(box, path)]
    while waiting:
        box, path = waiting.pop()
        ends = [*(start for start, _, _ in box.members[1:]), box.end]
        size = MIN_GROUP + 1
        for number, ((start, name, inner), end) in enumerate(zip(box.members, ends, strict=False)):
            here = f"{path}.{name}" if box.is_object else f"{path}[{number}]"
            large = inner is not None and end - start > whole
            if large or size + end - start > MIN_GROUP:
                borders.append(Border(start, here.removeprefix(".")))
                size = 0
            size = MIN_GROUP + 1 if large else size + end - start
            if large and inner is not None:
                waiting.append((inner, here))
    borders.sort(key=lambda border: border.start)
