"""Reads the arguments of a tool call tolerantly, by the tool's schema: models send a lone text for a list, numbers and
booleans as text, and objects as the text of their JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...model import JsonObject
from .messages import Schema

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_arguments(given: Any, schema: Schema) -> JsonObject | None:
    """The arguments as the schema describes them, where that is clear; the tool itself refuses the rest. None when
    they are no object at all.
    """
    if given is None:
        return {}
    if isinstance(given, str):
        given = _json(given, dict)
    if not isinstance(given, dict):
        return None
    properties = schema.get("properties") or {}
    return {
        name: _read(value, properties[name]) if name in properties else value
        for name, value in given.items()
        if value is not None
    }


def _read(value: Any, schema: Schema) -> Any:
    match schema.get("type"):
        case "array":
            return _list(value, schema.get("items") or {})
        case "object":
            return _json(value, dict) if isinstance(value, str) else value
        case "integer" | "number":
            return _number(value)
        case "boolean":
            return _BOOLEANS.get(value.strip().lower(), value) if isinstance(value, str) else value
        case "string":
            return _text(value)
    return value


def _list(value: Any, items: Schema) -> Any:
    if isinstance(value, str):
        found = _json(value, list)
        value = found if isinstance(found, list) else [value]
    elif not isinstance(value, list):
        value = [value]
    return [_read(item, items) for item in value]


def _number(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() else value


def _text(value: Any) -> Any:
    """A number or boolean as text; lists and objects stay, so that the tool refuses them by name."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _json(text: str, kind: type) -> Any:
    """The value that the text encodes, if it is of this kind; else the text."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    return found if isinstance(found, kind) else text
