"""The reference page: `reference.md` with its marks filled in from the table."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sidecar_protocol.catalog import METHODS, NOTIFICATIONS, REQUESTS, Method, Notice, Question
from sidecar_protocol.errors import CODES
from sidecar_protocol.messages import EVENT_TYPES, ITEM_TYPES, STATUS_TYPES
from sidecar_protocol.messages.base import Json, Wire
from sidecar_protocol.messages.event_types import EventRow

from .examples import Example
from .order import order_in_words
from .schemas import REF, Member, members, struct_schemas
from .vocabulary import MEANINGS, errors_of

TEMPLATE = Path(__file__).with_name("reference.md")

_WIDTH = 100
"""Columns of a line of prose, and of a value of an example that stays on one line."""

_LONG = 2000
"""A list of an example that is longer than this as JSON, some forty lines, is cut."""

_FIRST = 2
"""So many of its elements are shown: one may be a special case, two tell the shape."""

_OFFERS = {
    "tools": "Asked of a client that has offered tools, in `initialize` or by `tools/offer`.",
    **{
        name: f"Asked of a client whose `capabilities` have `{name}`."
        for name in ("permissions", "input", "buffers")
    },
}


def page(found: Mapping[str, Example]) -> str:
    """The whole page, with these examples."""
    parts = {
        "errors": _errors(),
        "index": _index(),
        "methods": "\n\n".join(_method(method, found.get(method.name)) for method in METHODS.values()),
        "offers": _offers(),
        "requests": "\n\n".join(_question(question, found.get(name)) for name, question in REQUESTS.items()),
        "notifications": "\n\n".join(_notification(notice) for notice in NOTIFICATIONS.values()),
        "events": _table(
            ("type", "what happened"),
            ((f"[`{name}`](#{_anchor(name)})", row.meaning) for name, row in EVENT_TYPES.items()),
        ),
        "event members": "\n\n".join(_happening(name, row) for name, row in EVENT_TYPES.items()),
        "status members": "\n\n".join(
            _happening(f"status {name}", row) for name, row in STATUS_TYPES.items()
        ),
        "items": _items(),
        "types": "\n\n".join(_type(name) for name in _shared_types()),
    }
    text = TEMPLATE.read_text("utf-8")
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    return text


def pretty(value: Any, indent: int = 0) -> str:
    """JSON as a person would lay it out: what fits a line stays on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= _WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    inner, outer = " " * (indent + 2), " " * indent
    if isinstance(value, list):
        lines = [pretty(item, indent + 2) for item in value]
        opening, closing = "[", "]"
    else:
        lines = [f"{json.dumps(key)}: {pretty(item, indent + 2)}" for key, item in value.items()]
        opening, closing = "{", "}"
    return f"{opening}\n{inner}" + f",\n{inner}".join(lines) + f"\n{outer}{closing}"


def _wrap(prose: str) -> str:
    """A paragraph in short lines. What is written as code stays on one line, or it could not be searched for."""
    whole = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), prose)
    lines = textwrap.wrap(whole, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


def _errors() -> str:
    rows = ((str(code), f"`{name}`", MEANINGS[name]) for name, code in CODES.items())
    return _table(("code", "name", "meaning"), rows)


def _index() -> str:
    rows = ((f"[`{name}`](#{_anchor(name)})", method.summary) for name, method in METHODS.items())
    return _table(("method", "what it does"), rows)


def _offers() -> str:
    rows = (
        (f"[`{name}`](#{_anchor(name)})", question.summary, f"`{question.offered_by}`")
        for name, question in REQUESTS.items()
    )
    return _table(("request", "what it asks", "offered by"), rows)


def _method(method: Method, example: Example | None) -> str:
    lines = [f"### `{method.name}`", "", _wrap(method.summary)]
    if method.early:
        lines += ["", "Allowed before `initialize`."]
    lines += ["", *_params(method.params), "", *_result(method.result)]
    lines += ["", _wrap(order_in_words(method))]
    lines += ["", _wrap("Errors: " + ", ".join(f"`{name}`" for name in errors_of(method)) + ".")]
    if example:
        lines += ["", *_exchange(method.name, example)]
    return "\n".join(lines)


def _question(question: Question, example: Example | None) -> str:
    lines = [f"### `{question.name}`", "", _wrap(question.summary), "", _OFFERS[question.offered_by]]
    lines += ["", *_params(question.params), "", *_result(question.result)]
    if example:
        lines += ["", *_exchange(question.name, example)]
    return "\n".join(lines)


def _params(params: type[Wire]) -> list[str]:
    rows = members(params.__name__)
    return [_wrap("Parameters" + _note(params)), "", _members(rows)] if rows else ["No parameters."]


def _note(struct: type) -> str:
    description = struct_schemas()[struct.__name__].get("description", "")
    return f". {description}" if description else "."


def _result(result: type) -> list[str]:
    if not issubclass(result, Wire):
        return ["Result: a JSON object, which the example cuts short."]
    return [_wrap("Result" + _note(result)), "", _members(members(result.__name__))]


def _exchange(name: str, example: Example) -> list[str]:
    request = {"jsonrpc": "2.0", "id": 1, "method": name, "params": example.params}
    answer = {"jsonrpc": "2.0", "id": 1, "result": _shortened(example.result)}
    return ["```json", pretty(request), pretty(answer), "```"]


def _shortened(result: Json) -> Json:
    """The result with its lists cut where whole ones would hide the page behind them."""
    return {
        name: [*value[:_FIRST], f"… {len(value) - _FIRST} more"] if _is_long(value) else value
        for name, value in result.items()
    }


def _is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > _FIRST and len(json.dumps(value)) > _LONG


def _notification(notice: Notice) -> str:
    sender = "either side" if notice.sender == "both" else f"the {notice.sender}"
    sent = _wrap(f"Sent by {sender}. {notice.summary}")
    rows = members(notice.params.__name__)
    return f"### `{notice.name}`\n\n{sent}\n\n" + (_members(rows) if rows else "No parameters.")


def _happening(name: str, row: EventRow) -> str:
    """An event or a status with the members of its data."""
    rows = members(row.data.__name__)
    described = struct_schemas()[row.data.__name__].get("description", "")
    note = f" {described}" if described and rows else ""
    of_type = f" `item` is of type `{row.item}`." if row.item else ""
    lines = [f"#### `{name}`", "", _wrap(row.meaning + note + of_type), ""]
    return "\n".join([*lines, _members(rows) if rows else "No members."])


def _items() -> str:
    rows = (
        (f"`{type}`", ", ".join(f"`{name}`" for name in own) or "none") for type, own in ITEM_TYPES.items()
    )
    return _table(("item type", "members of its own"), rows)


def _shared_types() -> list[str]:
    """The types that are not shown whole under a method or a notification."""
    shown = {method.params.__name__ for method in METHODS.values()}
    shown |= {method.result.__name__ for method in METHODS.values()}
    shown |= {question.params.__name__ for question in REQUESTS.values()}
    shown |= {question.result.__name__ for question in REQUESTS.values()}
    shown |= {notice.params.__name__ for notice in NOTIFICATIONS.values()} - {"Event"}
    shown |= {row.data.__name__ for row in [*EVENT_TYPES.values(), *STATUS_TYPES.values()]}
    return [name for name in struct_schemas() if name not in shown]


def _type(name: str) -> str:
    description = struct_schemas()[name].get("description", "")
    return f"### {name}\n\n" + (f"{_wrap(description)}\n\n" if description else "") + _members(members(name))


def _members(rows: list[Member]) -> str:
    cells = ((f"`{row.name}`", _type_text(row.schema), _presence(row), row.meaning) for row in rows)
    return _table(("name", "type", "", "meaning"), cells)


def _presence(member: Member) -> str:
    if member.required:
        return "required"
    default = member.schema.get("default")
    return "optional" if default is None else f"default `{json.dumps(default)}`"


def _type_text(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REF)
        return f"[{name}](#{_anchor(name)})"
    if "anyOf" in schema:
        choices = [one for one in schema["anyOf"] if one != {"type": "null"} or "default" not in schema]
        return " or ".join(_type_text(one) for one in choices)
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {_type_text(schema['items'])}"
    if "additionalProperties" in schema and isinstance(schema["additionalProperties"], dict):
        return f"object of {_type_text(schema['additionalProperties'])}"
    return str(schema.get("type", "any"))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [_row(head), "|" + " --- |" * len(head)]
    return "\n".join(lines + [_row(row) for row in rows])


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _anchor(heading: str) -> str:
    """GitHub's anchor of a heading: lower case, letters, digits, `-` and `_` only."""
    kept = (char for char in heading.lower().replace(" ", "-") if char.isalnum() or char in "-_")
    return "".join(kept)
