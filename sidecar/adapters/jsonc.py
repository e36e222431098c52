"""Edits JSON text in place, so that comments, order and white space stay. Reads JSON with comments and trailing commas,
as editors write it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

INDENT = "  "

MAX_DEPTH = 100
"""Deeper nesting is no settings file, and would exhaust the stack."""

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\n]*?\*/)*(?://[^\n]*)?(?=\r?\n)")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


class InvalidJson(Exception):
    """The text is not JSON; `line` counts from 1."""

    def __init__(self, line: int, expected: str) -> None:
        super().__init__(f"line {line}: {expected}")
        self.line = line


class Node(msgspec.Struct):
    """A value and where it is: `start` to `end` in the text. An object has `members`, an array has `items`."""

    start: int
    end: int
    value: Any = None
    members: dict[str, Member] | None = None
    items: list[Node] | None = None


class Member(msgspec.Struct):
    """A member of an object, from its name to the end of its value."""

    start: int
    node: Node


def parse(text: str) -> Node:
    """The value of the text; an empty text counts as an empty object."""
    parser = _Parser(text)
    start = parser.skip(0)
    if start == len(text):
        return Node(start, start, {}, {})
    node = parser.value(start, 0)
    rest = parser.skip(node.end)
    if rest != len(text):
        raise parser.error(rest, "nothing more was expected")
    return node


def set_value(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this value at the path; objects on the way are added."""
    root = parse(text)
    if root.start == root.end:
        nested = value
        for name in reversed(path):
            nested = {name: nested}
        return text + _render(nested, "") + "\n"
    node = root
    for depth, name in enumerate(path):
        if node.members is None:
            raise InvalidJson(text.count("\n", 0, node.start) + 1, f"`{'.'.join(path[:depth])}` is no object")
        member = node.members.get(name)
        if member is None:
            nested = value
            for inner in reversed(path[depth + 1 :]):
                nested = {inner: nested}
            return _insert(text, node, name, nested)
        node = member.node
    return text[: node.start] + _render(value, _line_indent(text, node.start)) + text[node.end :]


def set_items(text: str, path: Sequence[str], items: Sequence[Any]) -> str:
    """The text with an array at the path that ends with these items; items that are there stay as they are written."""
    node = parse(text)
    for name in path:
        member = (node.members or {}).get(name)
        if member is None:
            return set_value(text, path, list(items))
        node = member.node
    if node.items is None:
        raise InvalidJson(text.count("\n", 0, node.start) + 1, f"`{'.'.join(path)}` is no list")
    if not node.items:
        return text[: node.start] + _render(list(items), _line_indent(text, node.start)) + text[node.end :]
    last = node.items[-1]
    inner = _line_indent(text, last.start)
    added = "".join(f",\n{inner}{_render(item, inner)}" for item in items)
    return text[: last.end] + added + text[last.end :]


def remove_items(text: str, path: Sequence[str], is_ours: Callable[[Any], bool]) -> str:
    """The text without the items of the array at the path that `is_ours` names; an array that is left empty goes."""
    while True:
        node = parse(text)
        for name in path:
            member = (node.members or {}).get(name)
            if member is None:
                return text
            node = member.node
        items = node.items or []
        at = next((at for at, item in enumerate(items) if is_ours(item.value)), None)
        if at is None:
            return text
        if len(items) == 1:
            return remove(text, path)
        start, end = items[at].start, items[at].end
        if at:
            start = items[at - 1].end
        else:
            end = items[1].start
        text = text[:start] + text[end:]


def remove(text: str, path: Sequence[str]) -> str:
    """The text without the member at the path; unchanged when there is none."""
    node = parse(text)
    for name in path[:-1]:
        member = (node.members or {}).get(name)
        if member is None:
            return text
        node = member.node
    found = (node.members or {}).get(path[-1])
    if found is None:
        return text
    siblings = [member.start for member in (node.members or {}).values()]
    return _cut(text, node, found.start, found.node.end, siblings)


def find(text: str, path: Sequence[str]) -> Any:
    """The value at the path; None when there is none."""
    found = parse(text).value
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def _insert(text: str, node: Node, name: str, value: Any) -> str:
    assert node.members is not None
    outer = _line_indent(text, node.start)
    inner = outer + _indent_step(text, node, outer)
    rendered = f"{_encode(name)}: {_render(value, inner)}"
    if not node.members:
        return f"{text[: node.start]}{{\n{inner}{rendered}\n{outer}}}{text[node.end :]}"
    last = max(member.node.end for member in node.members.values())
    comma = _SPACE.match(text, last)
    trailing = comma is not None and text[comma.end() : comma.end() + 1] == ","
    after = comma.end() + 1 if trailing and comma else last
    # Below a comment on the same line: it belongs to the member before.
    comment = _REST_OF_LINE.match(text, after)
    at = comment.end() if comment else after
    added = f"\n{inner}{rendered}{',' if trailing else ''}"
    return f"{text[:after]}{'' if trailing else ','}{text[after:at]}{added}{text[at:]}"


def _cut(text: str, parent: Node, start: int, end: int, siblings: Sequence[int]) -> str:
    """The text without this part of an object, and without the comma that belongs to it."""
    after = _SPACE.match(text, end)
    assert after is not None
    if text[after.end() : after.end() + 1] == ",":
        end = after.end() + 1
    elif any(sibling < start for sibling in siblings):
        before = text.rfind(",", parent.start, start)
        return text[:before] + text[before + 1 : start].rstrip() + text[end:]
    if len(siblings) == 1:
        return text[: parent.start] + "{}" + text[parent.end :]
    line = text.rfind("\n", 0, start) + 1
    return (text[:line].rstrip("\n") if not text[line:start].strip() else text[:start]) + text[end:]


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))] if line.strip() else ""


def _indent_step(text: str, node: Node, outer: str) -> str:
    """The indentation that the file uses."""
    for member in (node.members or {}).values():
        inner = _line_indent(text, member.start)
        if inner.startswith(outer) and len(inner) > len(outer):
            return inner[len(outer) :]
    return "\t" if "\n\t" in text else INDENT


def _render(value: Any, indent: str) -> str:
    lines = msgspec.json.format(msgspec.json.encode(value), indent=len(INDENT)).decode().split("\n")
    return f"\n{indent}".join(lines)


def _encode(name: str) -> str:
    return msgspec.json.encode(name).decode()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text

    def error(self, at: int, expected: str) -> InvalidJson:
        return InvalidJson(self._text.count("\n", 0, at) + 1, expected)

    def skip(self, at: int) -> int:
        """The position after white space and comments."""
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.error(at, "nested too deeply")
        match self._text[at : at + 1]:
            case "{":
                return self._object(at, depth)
            case "[":
                return self._array(at, depth)
            case '"':
                name, end = self._string(at)
                return Node(at, end, name)
        found = _SCALAR.match(self._text, at)
        if found is None:
            raise self.error(at, "a value was expected")
        return Node(at, found.end(), msgspec.json.decode(found.group()))

    def _object(self, at: int, depth: int) -> Node:
        members: dict[str, Member] = {}
        at_member = self.skip(at + 1)
        while self._text[at_member : at_member + 1] != "}":
            name, end = self._string(at_member)
            colon = self.skip(end)
            if self._text[colon : colon + 1] != ":":
                raise self.error(colon, "`:` was expected")
            node = self.value(self.skip(colon + 1), depth + 1)
            members[name] = Member(at_member, node)
            at_member = self._next(node.end, "}")
        values = {name: member.node.value for name, member in members.items()}
        return Node(at, at_member + 1, values, members)

    def _array(self, at: int, depth: int) -> Node:
        items: list[Node] = []
        at_item = self.skip(at + 1)
        while self._text[at_item : at_item + 1] != "]":
            items.append(self.value(at_item, depth + 1))
            at_item = self._next(items[-1].end, "]")
        return Node(at, at_item + 1, [item.value for item in items], items=items)

    def _next(self, at: int, closing: str) -> int:
        """The position of the next member or item, or of the closing bracket."""
        at = self.skip(at)
        if self._text[at : at + 1] == ",":
            return self.skip(at + 1)
        if self._text[at : at + 1] != closing:
            raise self.error(at, f"`,` or `{closing}` was expected")
        return at

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self._text, at)
        if found is None:
            raise self.error(at, "a name in double quotes was expected")
        try:
            return str(msgspec.json.decode(found.group())), found.end()
        except (msgspec.DecodeError, UnicodeError) as error:
            raise self.error(at, "not a valid text") from error
