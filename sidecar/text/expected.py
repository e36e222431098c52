"""Says in words what a type allows at a place in a value, for the error about what is there.

Knows neither the contract nor the settings. Loaded only for an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import inspect

from .suggest import did_you_mean

_STEP = re.compile(r"\.([^.\[]+)|\[[^\]]*\]")
"""A member of an object by name, or any element of an array or any value of an object."""

_SIMPLE: dict[type[inspect.Type], str] = {
    inspect.StrType: "a string",
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.NoneType: "null",
    inspect.AnyType: "any value",
    inspect.DictType: "an object",
}


class Mismatch(msgspec.Struct, frozen=True):
    """A value that a type does not allow: the `field`, what is wrong and what to write instead, and what is allowed."""

    field: str
    words: str
    allowed: str


def explain_mismatch(type: type, complaint: str) -> Mismatch:
    """Complete a complaint of msgspec, "what - at `$.place`", by what the type allows there."""
    wrong, _, place = complaint.partition(" - at `$.")
    field = parent = place.rstrip("`")
    if "unknown field" in wrong or "missing required field" in wrong:
        name = wrong.rpartition("field `")[2].rstrip("`")
        field = f"{parent}.{name}" if parent else name
    if "unknown field" in wrong:
        known = members_at(type, parent)
        return Mismatch(field, f"{wrong}{_nearest(name, known)}", _one_of(known))
    allowed = allowed_at(type, field)
    return Mismatch(field, f"{wrong}; allowed: {allowed}" if field else wrong, allowed)


def allowed_at(params: type, path: str) -> str:
    """What may be at `path` in the parameters: `context.openFiles`, `content[0].type`; "" for an unknown place."""
    return _words(_types_at(params, path))


def members_at(params: type, path: str) -> list[str]:
    """The names of the members that the object at `path` may have."""
    objects = (type for type in _types_at(params, path) if isinstance(type, inspect.StructType))
    return [field.encode_name for type in objects for field in type.fields]


def _types_at(params: type, path: str) -> Sequence[inspect.Type]:
    types = _alternatives(inspect.type_info(params))
    for step in _STEP.finditer(f".{path}" if path else ""):
        types = [inner for type in types for inner in _inner(type, step[1])]
    return types


def _alternatives(type: inspect.Type) -> list[inspect.Type]:
    return list(type.types) if isinstance(type, inspect.UnionType) else [type]


def _inner(type: inspect.Type, member: str | None) -> list[inspect.Type]:
    if isinstance(type, inspect.StructType):
        return [
            inner
            for field in type.fields
            if field.encode_name == member
            for inner in _alternatives(field.type)
        ]
    if isinstance(type, inspect.DictType):
        return _alternatives(type.value_type)
    if isinstance(type, inspect.ListType) and member is None:
        return _alternatives(type.item_type)
    return []


def _words(types: Iterable[inspect.Type]) -> str:
    ordered = sorted(types, key=lambda type: isinstance(type, inspect.NoneType))
    return " or ".join(dict.fromkeys(map(_one, ordered)))


def _one(type: inspect.Type) -> str:
    if isinstance(type, inspect.LiteralType):
        values = ", ".join(json.dumps(value) for value in type.values)
        return values if len(type.values) == 1 else f"one of {values}"
    if isinstance(type, inspect.StructType):
        names = ", ".join(f"`{field.encode_name}`" for field in type.fields)
        return f"an object with {names}" if names else "an empty object"
    if isinstance(type, inspect.ListType):
        return f"an array, each of which is {_words(_alternatives(type.item_type))}"
    return _SIMPLE.get(type.__class__, "another type")


def _one_of(names: list[str]) -> str:
    return f"one of {', '.join(f'`{name}`' for name in names)}" if names else "no members"


def _nearest(name: str, known: list[str]) -> str:
    near = did_you_mean(name, known)
    return f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(known) or 'none'}"
