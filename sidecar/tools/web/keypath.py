"""A part of a JSON document by its key path: `items[0].name`, `["a key"].x`, `items[*].id`. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec

MAX_STEPS = 64
MAX_SHOWN = 20
"""Keys that a failure names."""

WIDTH = 100
"""Characters of a value that stays on one line."""

MAX_DEPTH = 8
"""Levels that get lines of their own; deeper ones would mostly be indentation."""

Step = str | int | None
"""A key, a place in a list (negative from its end), or None for every entry."""

_STEP = re.compile(
    r"""\.?\[\s*(?:(?P<number>-?[0-9]{1,9})|(?P<every>\*?)|"(?P<quoted>[^"]*)"|'(?P<single>[^']*)')\s*\]"""
    r"""|\.(?P<key>[^.\[\]]+)"""
)


class NotThere(Exception):
    """The document has nothing at that path; the words say where it ends and what is there instead."""


def steps(path: str) -> list[Step]:
    """NotThere when it is no path."""
    rest = path.strip().removeprefix("$")
    rest = rest if rest.startswith((".", "[")) or not rest else f".{rest}"
    if rest == ".":
        return []
    found: list[Step] = []
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None or len(found) >= MAX_STEPS:
            raise NotThere(
                f"`select`: {path[:80]!r} is not understood; write it as in items[0].name or items[*].id."
            )
        at = match.end()
        found.append(_step(match))
    return found


def select(document: Any, path: str) -> Any:
    """What stands at the path; with `[*]`, the list of what stands there in every entry that has it."""
    return _walk(document, steps(path), "")


def laid_out(value: Any) -> str:
    """A value for reading: text as it is, anything else as JSON with a line for each part that is long."""
    return value if isinstance(value, str) else "\n".join(_lines(value, 0))


def _step(match: re.Match[str]) -> Step:
    if match["number"] is not None:
        return int(match["number"])
    if match["every"] is not None:
        return None
    return next(part for part in (match["quoted"], match["single"], match["key"]) if part is not None)


def _walk(value: Any, steps: list[Step], done: str) -> Any:
    for number, step in enumerate(steps):
        if step is None:
            return _every(value, steps[number + 1 :], done)
        value = _one(value, step, done)
        done += f"[{step}]" if isinstance(step, int) else f".{step}" if done else step
    return value


def _every(value: Any, rest: list[Step], done: str) -> list[Any]:
    if not isinstance(value, dict | list):
        raise NotThere(f"`select`: {_here(done)} is {_kind(value)}, which has no entries.")
    found, missing = [], None
    for entry in value.values() if isinstance(value, dict) else value:
        try:
            found.append(_walk(entry, rest, f"{done}[*]"))
        except NotThere as error:
            missing = error
    if missing and not found:
        raise missing
    return found


def _one(value: Any, step: str | int, done: str) -> Any:
    if isinstance(value, list):
        if not isinstance(step, int):
            raise NotThere(
                f"`select`: {_here(done)} is a list of {len(value)}; write [0] or [*] before .{step[:80]}."
            )
        if not -len(value) <= step < len(value):
            raise NotThere(f"`select`: {_here(done)} has {len(value)} entries, so there is no [{step}].")
        return value[step]
    key = str(step)
    if not isinstance(value, dict):
        raise NotThere(f"`select`: {_here(done)} is {_kind(value)}, so it has no {key[:80]!r}.")
    if key not in value:
        there = ", ".join(str(name)[:80] for name in list(value)[:MAX_SHOWN])
        more = ", …" if len(value) > MAX_SHOWN else ""
        raise NotThere(f"`select`: {_here(done)} has no {key[:80]!r}. It has: {there}{more}")
    return value[key]


def _here(done: str) -> str:
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
            return ["[", *_filled([msgspec.json.encode(entry).decode() for entry in value]), "]"]
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


def _filled(values: list[str]) -> list[str]:
    """Simple values one after another, as many as a line holds."""
    lines: list[str] = []
    for number, value in enumerate(values, 1):
        piece = value + ("," if number < len(values) else "")
        if lines and len(lines[-1]) + len(piece) < WIDTH:
            lines[-1] += f" {piece}"
        else:
            lines.append(f" {piece}")
    return lines
