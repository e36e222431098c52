"""The lines between `---` and `---` at the head of a Markdown file: a small, strict part of YAML. Pure.

Understood are `key: value`, lists (`[a, b]` on one line, or `- item` lines) and one level of keys beneath a
key. A value is true, false, null, a number, text in quotes, or plain text. It is no YAML library's work
because rules of other programs have values that are none: `globs: *.ts` names an alias there. What goes
beyond is refused with its line.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .rule import Malformed

FENCE = "---"

_KEY = re.compile(r"([A-Za-z_][\w-]*):(?:\s+(.*))?")
_ITEM = re.compile(r"-(?:\s+(.*))?")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?:#.*)?""")
_INTEGER = re.compile(r"[-+]?\d{1,18}")
_DECIMAL = re.compile(r"[-+]?\d{1,18}\.\d{1,18}")
_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
_BEYOND = {"|": "text over several lines", ">": "text over several lines", "&": "an anchor", "!": "a tag"}


def parted(text: str) -> tuple[dict[str, Any], str]:
    """The values at the head, and the text beneath them; no values where the first line is not `---`."""
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return {}, text
    for end, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return _values(lines[1:end]), "\n".join(lines[end + 1 :])
    raise Malformed("the front matter is not closed: a line `---` must end it")


def listed(text: str) -> list[str]:
    """The parts between commas that stand in no quotes, braces or brackets, without the blanks around them."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and not parts[-1].strip():
            quote = char
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
        if char == "," and depth <= 0 and not quote:
            parts.append("")
        else:
            parts[-1] += char
    stripped = [part.strip() for part in parts]
    return [part for part in stripped if part]


def _values(lines: list[str]) -> dict[str, Any]:
    """Line by line: a key at the margin opens a place, into which indented keys and items go."""
    values: dict[str, Any] = {}
    open_key = ""
    for number, line in enumerate(lines, 2):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        indented = line[0] in " \t"
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise Malformed(f"line {number}: a tab cannot indent, use blanks")
        if item := _ITEM.fullmatch(text):
            _into(values, open_key, list, number).append(_value(item[1] or "", number))
        elif pair := _KEY.fullmatch(text):
            into = _into(values, open_key, dict, number) if indented else values
            if pair[1] in into:
                raise Malformed(f"line {number}: `{pair[1]}` is there twice")
            into[pair[1]] = _value(pair[2] or "", number)
            open_key = open_key if indented else pair[1]
        else:
            raise Malformed(f"line {number}: `key: value` or `- item` was expected")
    return values


def _into(values: dict[str, Any], key: str, kind: type[Any], number: int) -> Any:
    """The list or the map that an item or a key at this line belongs to: the value of the last key at the margin."""
    if key and values[key] is None:
        values[key] = kind()
    if not key or not isinstance(values[key], kind):
        raise Malformed(f"line {number}: it belongs to no key above it")
    return values[key]


def _value(text: str, number: int) -> Any:
    if text[:1] == "[":
        text = text if text.endswith("]") else _COMMENT.sub("", text).rstrip()
        if not text.endswith("]"):
            raise Malformed(
                f"line {number}: the list is not closed on its line; quote text that begins with `[`"
            )
        return [_scalar(part, number) for part in listed(text[1:-1])]
    return _scalar(text, number)


def _scalar(text: str, number: int) -> Any:
    if text[:1] in ("'", '"'):
        return _unquoted(text, number)
    if beyond := _BEYOND.get(text[:1]):
        raise Malformed(f"line {number}: {beyond} is not understood here; put the value into quotes")
    plain = _COMMENT.sub("", text).strip()
    if plain.lower() in _CONSTANTS:
        return _CONSTANTS[plain.lower()]
    if _INTEGER.fullmatch(plain):
        return int(plain)
    return float(plain) if _DECIMAL.fullmatch(plain) else plain


def _unquoted(text: str, number: int) -> str:
    found = _QUOTED.fullmatch(text)
    if not found:
        raise Malformed(f"line {number}: the quote is not closed, or something follows it")
    if text[0] == "'":
        return found[1][1:-1].replace("''", "'")
    try:
        return msgspec.json.decode(found[1], type=str)
    except msgspec.DecodeError as error:
        raise Malformed(
            f"line {number}: the escapes in quotes are those of JSON, such as \\n or \\u00e9"
        ) from error
