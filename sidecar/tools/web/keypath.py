"""A part of a JSON document by its key path: `items[0].name`, `["a key"].x`, `items[*].id`. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec

MAX_STEPS = 64
MAX_SHOWN = 20
"""Keys that an error names."""

WIDTH = 100
"""Characters of a value that stays on one line."""

MAX_DEPTH = 8
"""Levels that are indented; deeper ones would mostly be indentation."""

PathPart = str | int | None
"""A key, an index in a list (negative from its end), or None for every entry."""

_STEP = re.compile(
    r"""\.?\[\s*(?:(?P<number>-?[0-9]{1,9})|(?P<every>\*?)|"(?P<quoted>[^"]*)"|'(?P<single>[^']*)')\s*\]"""
    r"""|\.(?P<key>[^.\[\]]+)"""
)


class PathNotFound(Exception):
    """The document has nothing at that path; the message says where it ends and what is there instead."""


def steps(path: str) -> list[PathPart]:
    """Parse a path; raise PathNotFound when it is none."""
    rest = path.strip().removeprefix("$")
    rest = rest if rest.startswith((".", "[")) or not rest else f".{rest}"
    if rest == ".":
        return []
    found: list[PathPart] = []
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None or len(found) >= MAX_STEPS:
            raise PathNotFound(
                f"`select`: {path[:80]!r} cannot be parsed; write it as in items[0].name or items[*].id."
            )
        at = match.end()
        found.append(_step(match))
    return found


def select(document: Any, path: str) -> Any:
    """Return the value at the path; with `[*]`, the list of the values in every entry that has one."""
    return _walk(document, steps(path), "")


def format_value(value: Any) -> str:
    """Return a value for reading: text as it is, anything else as JSON with a line for each long part."""
    return value if isinstance(value, str) else "\n".join(_lines(value, 0))


def _step(match: re.Match[str]) -> PathPart:
    if match["number"] is not None:
        return int(match["number"])
    if match["every"] is not None:
        return None
    return next(part for part in (match["quoted"], match["single"], match["key"]) if part is not None)


def _walk(value: Any, steps: list[PathPart], done: str) -> Any:
    for number, step in enumerate(steps):
        if step is None:
            return _walk_entries(value, steps[number + 1 :], done)
        value = _walk_step(value, step, done)
        done += f"[{step}]" if isinstance(step, int) else f".{step}" if done else step
    return value


def _walk_entries(value: Any, rest: list[PathPart], done: str) -> list[Any]:
    if not isinstance(value, dict | list):
        raise PathNotFound(f"`select`: {_location(done)} is {_kind(value)}, which has no entries.")
    found, missing = [], None
    for entry in value.values() if isinstance(value, dict) else value:
        try:
            found.append(_walk(entry, rest, f"{done}[*]"))
        except PathNotFound as error:
            missing = error
    if missing and not found:
        raise missing
    return found


def _walk_step(value: Any, step: str | int, done: str) -> Any:
    if isinstance(value, list):
        if not isinstance(step, int):
            raise PathNotFound(
                f"`select`: {_location(done)} is a list of {len(value)}; write [0] or [*] before .{step[:80]}."
            )
        if not -len(value) <= step < len(value):
            raise PathNotFound(
                f"`select`: {_location(done)} has {len(value)} entries, so there is no [{step}]."
            )
        return value[step]
    key = str(step)
    if not isinstance(value, dict):
        raise PathNotFound(f"`select`: {_location(done)} is {_kind(value)}, so it has no {key[:80]!r}.")
    if key not in value:
        there = ", ".join(str(name)[:80] for name in list(value)[:MAX_SHOWN])
        more = ", …" if len(value) > MAX_SHOWN else ""
        raise PathNotFound(f"`select`: {_location(done)} has no {key[:80]!r}. It has: {there}{more}")
    return value[key]


def _location(done: str) -> str:
    return f"`{done[-200:]}`" if done else "the document"


def _kind(value: Any) -> str:
    names = {str: "text", bool: "true or false", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), "one value")


def _lines(value: Any, depth: int) -> list[str]:
    whole = msgspec.json.encode(value).decode()
    if len(whole) <= WIDTH or depth >= MAX_DEPTH or not isinstance(value, dict | list):
        return [whole]
    if isinstance(value, list):
        if not any(isinstance(entry, dict | list) for entry in value):
            return ["[", *_wrap_values([msgspec.json.encode(entry).decode() for entry in value]), "]"]
        return ["[", *_parts([("", entry) for entry in value], depth), "]"]
    named = [(f"{msgspec.json.encode(key).decode()}: ", entry) for key, entry in value.items()]
    return ["{", *_parts(named, depth), "}"]


def _parts(parts: list[tuple[str, Any]], depth: int) -> list[str]:
    lines: list[str] = []
    for number, (name, entry) in enumerate(parts, 1):
        inner = _lines(entry, depth + 1)
        inner[-1] += "," if number < len(parts) else ""
        lines.append(f" {name}{inner[0]}")
        lines += [f" {line}" for line in inner[1:]]
    return lines


def _wrap_values(values: list[str]) -> list[str]:
    """Wrap simple values, as many as fit on a line."""
    lines: list[str] = []
    for number, value in enumerate(values, 1):
        piece = value + ("," if number < len(values) else "")
        if lines and len(lines[-1]) + len(piece) < WIDTH:
            lines[-1] += f" {piece}"
        else:
            lines.append(f" {piece}")
    return lines
