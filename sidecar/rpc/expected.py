"""Says in words what the contract allows at a place in the parameters, for the error about what stands there.

Knows the types of the contract, and no method. Loaded only for an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from msgspec import inspect

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


def allowed_at(params: type, path: str) -> str:
    """What may stand at `path` in the parameters: `context.openFiles`, `content[0].type`; "" for an unknown place."""
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
