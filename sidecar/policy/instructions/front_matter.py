"""The lines between `---` and `---` at the head of a Markdown file: a small, strict subset of YAML. Pure.

It accepts `key: value`, lists (`[a, b]` on one line, or `- item` lines) and one level of nested keys. A value is
true, false, null, a number, quoted text, or plain text. A YAML library does not work here, because rules of other
programs have values that are not YAML: `globs: *.ts` is an alias there. Anything else is refused with its line.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ...model import JsonObject
from .rule import MalformedRule

FENCE = "---"

_KEY = re.compile(r"([A-Za-z_][\w-]*):(?:\s+(.*))?")
_ITEM = re.compile(r"-(?:\s+(.*))?")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?:#.*)?""")
_INTEGER = re.compile(r"[-+]?\d{1,18}")
_DECIMAL = re.compile(r"[-+]?\d{1,18}\.\d{1,18}")
_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
_UNSUPPORTED = {
    "|": "text over several lines",
    ">": "text over several lines",
    "&": "an anchor",
    "!": "a tag",
}


def split_front_matter(text: str) -> tuple[JsonObject, str]:
    """Return the values at the head, and the text after them; no values when the first line is not `---`."""
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return {}, text
    for end, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return _values(lines[1:end]), "\n".join(lines[end + 1 :])
    raise MalformedRule("the front matter is not closed: a line `---` must end it")


def split_list(text: str) -> list[str]:
    """Split at commas outside of quotes, braces and brackets, and strip the parts."""
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


def _values(lines: list[str]) -> JsonObject:
    """Parse line by line: a key at the margin opens a container, into which indented keys and items go."""
    values: JsonObject = {}
    open_key = ""
    for number, line in enumerate(lines, 2):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        indented = line[0] in " \t"
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise MalformedRule(f"line {number}: a tab cannot indent, use blanks")
        if item := _ITEM.fullmatch(text):
            _container_for(values, open_key, list, number).append(_value(item[1] or "", number))
        elif pair := _KEY.fullmatch(text):
            into = _container_for(values, open_key, dict, number) if indented else values
            if pair[1] in into:
                raise MalformedRule(f"line {number}: `{pair[1]}` is there twice")
            into[pair[1]] = _value(pair[2] or "", number)
            open_key = open_key if indented else pair[1]
        else:
            raise MalformedRule(f"line {number}: `key: value` or `- item` was expected")
    return values


def _container_for(values: JsonObject, key: str, kind: type[Any], number: int) -> Any:
    """Return the list or the map of an item or a key at this line: the value of the last key at the margin."""
    if key and values[key] is None:
        values[key] = kind()
    if not key or not isinstance(values[key], kind):
        raise MalformedRule(f"line {number}: it belongs to no key above it")
    return values[key]


def _value(text: str, number: int) -> Any:
    if text[:1] == "[":
        text = text if text.endswith("]") else _COMMENT.sub("", text).rstrip()
        if not text.endswith("]"):
            raise MalformedRule(
                f"line {number}: the list is not closed on its line; quote text that begins with `[`"
            )
        return [_scalar(part, number) for part in split_list(text[1:-1])]
    return _scalar(text, number)


def _scalar(text: str, number: int) -> Any:
    if text[:1] in ("'", '"'):
        return _unquote(text, number)
    if beyond := _UNSUPPORTED.get(text[:1]):
        raise MalformedRule(f"line {number}: {beyond} is not understood here; put the value into quotes")
    plain = _COMMENT.sub("", text).strip()
    if plain.lower() in _CONSTANTS:
        return _CONSTANTS[plain.lower()]
    if _INTEGER.fullmatch(plain):
        return int(plain)
    return float(plain) if _DECIMAL.fullmatch(plain) else plain


def _unquote(text: str, number: int) -> str:
    found = _QUOTED.fullmatch(text)
    if not found:
        raise MalformedRule(f"line {number}: the quote is not closed, or something follows it")
    if text[0] == "'":
        return found[1][1:-1].replace("''", "'")
    try:
        return msgspec.json.decode(found[1], type=str)
    except msgspec.DecodeError as error:
        raise MalformedRule(
            f"line {number}: the escapes in quotes are those of JSON, such as \\n or \\u00e9"
        ) from error
