"""Where JSON can be divided: between the members of what is too large to stay whole, each under its key path. Pure.

Reads any text that begins like JSON, also one that is cut off or has an error in it: what was understood counts.
"""

from __future__ import annotations

import re

import msgspec

MAX_READ = 4 * 1024 * 1024
"""Code points that are read for their structure; what is behind them is divided like any text."""

MAX_DEPTH = 200
GROUP = 1024
"""Code points of small members that stay together."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]')


class _Box:
    """An object or an array: where it is, and where its members begin and what they are called."""

    __slots__ = ("end", "is_object", "members", "name", "start")

    def __init__(self, start: int, name: str, is_object: bool) -> None:
        self.start = start
        self.end = start
        self.name = name
        self.is_object = is_object
        self.members: list[tuple[int, str, _Box | None]] = []


class Border(msgspec.Struct, frozen=True):
    """A place where a chunk begins, and the path of what it begins with."""

    start: int
    title: str


def json_sections(text: str, whole: int) -> list[Border]:
    """Borders between members of whatever has more than `whole` code points; none when it does not look like JSON."""
    begun = text[:200].lstrip()
    if not begun.startswith(("{", "[")):
        return []
    root = _read(text)
    borders: list[Border] = []
    # What ends long before the text does is the first of many, as in a log of one object a line.
    if root is not None and root.end > min(len(text), MAX_READ) // 2:
        _divide(root, "", whole, borders)
    return borders


def _read(text: str) -> _Box | None:
    """The outermost object or array, as far as it goes."""
    root: _Box | None = None
    open_: list[_Box] = []
    key: tuple[int, str] | None = None
    expecting = False
    last_string: tuple[int, str] | None = None
    for token in _TOKEN.finditer(text, 0, MAX_READ):
        sign = token[0]
        at = token.start()
        if sign[0] == '"':
            last_string = (at, sign[1:-1])
            if expecting and open_ and not open_[-1].is_object:
                open_[-1].members.append((at, "", None))
                expecting = False
            continue
        if sign == ":":
            if open_ and open_[-1].is_object and last_string:
                key = last_string
                open_[-1].members.append((key[0], key[1], None))
        elif sign in "{[":
            box = _Box(at, key[1] if key else "", sign == "{")
            if open_:
                if open_[-1].is_object and key and open_[-1].members:
                    start, name, _ = open_[-1].members[-1]
                    open_[-1].members[-1] = (start, name, box)
                else:
                    open_[-1].members.append((at, "", box))
            elif root is None:
                root = box
            if len(open_) >= MAX_DEPTH:
                return root
            open_.append(box)
            key, expecting = None, True
            continue
        elif sign in "}]":
            if not open_:
                return root
            open_.pop().end = token.end()
            if not open_:
                return root
            key, expecting = None, False
        else:
            key, expecting = None, True
        last_string = None
    for box in open_:
        box.end = min(len(text), MAX_READ)
    return root


def _divide(box: _Box, path: str, whole: int, borders: list[Border]) -> None:
    waiting = [(box, path)]
    while waiting:
        box, path = waiting.pop()
        ends = [start for start, _, _ in box.members[1:]] + [box.end]
        size = GROUP + 1
        for number, ((start, name, inner), end) in enumerate(zip(box.members, ends, strict=True)):
            here = f"{path}.{name}" if box.is_object else f"{path}[{number}]"
            large = inner is not None and end - start > whole
            if large or size + end - start > GROUP:
                borders.append(Border(start, here.removeprefix(".")))
                size = 0
            size = GROUP + 1 if large else size + end - start
            if large and inner is not None:
                waiting.append((inner, here))
    borders.sort(key=lambda border: border.start)
