"""JSON Schema of every type that travels, with the meaning of each member.

Meanings are the string literals below the members in `messages/*.py`. They are read from the source, so that
the running sidecar does not carry them; where there is no source (a frozen program) they are left out.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
from msgspec import NODEFAULT

from sidecar_protocol.catalog import METHODS, NOTIFICATIONS, REQUESTS
from sidecar_protocol.messages import EVENT_TYPES, STATUS_TYPES, ErrorObject
from sidecar_protocol.messages.base import Json, Wire
from sidecar_protocol.messages.details import OBJECTS

from .unions import with_unions

REF = "#/components/schemas/"


_JSON_TYPES = {str: "string", int: "integer", bool: "boolean"}


class Member(NamedTuple):
    """One member of an object on the wire."""

    name: str
    schema: Json
    required: bool
    meaning: str


@cache
def schemas() -> dict[str, Json]:
    """Every type by name, in alphabetical order; items, events and statuses as unions of their types."""
    return dict(sorted(with_unions(struct_schemas()).items()))


@cache
def struct_schemas() -> dict[str, Json]:
    """Every struct by name: an item or an event of any type is one struct."""
    roots: set[type] = {ErrorObject}
    roots.update(method.params for method in METHODS.values())
    roots.update(method.result for method in METHODS.values() if issubclass(method.result, Wire))
    roots.update(question.params for question in REQUESTS.values())
    roots.update(question.result for question in REQUESTS.values())
    roots.update(notice.params for notice in NOTIFICATIONS.values())
    roots.update(row.data for row in [*EVENT_TYPES.values(), *STATUS_TYPES.values()])
    ordered: list[Any] = sorted(roots, key=lambda root: root.__name__)
    objects, components = msgspec.json.schema_components(
        [*OBJECTS.values(), *ordered], ref_template=REF + "{name}"
    )
    for (struct_name, member), schema in zip(OBJECTS, objects, strict=False):
        absent = {"anyOf": [schema, {"type": "null"}], "default": None}
        optional = member not in components[struct_name].get("required", ())
        components[struct_name]["properties"][member] = absent if optional else schema
    for struct in _structs(Wire):
        if struct.__name__ in components:
            _describe(struct, components[struct.__name__])
            _require_what_is_always_sent(struct, components[struct.__name__])
            _put_required_first(components[struct.__name__])
    _type_enums(components)
    return components


def members(name: str) -> list[Member]:
    """The members of the type called `name`, the required ones first."""
    schema = struct_schemas().get(name) or schemas()[name]
    required = set(schema.get("required", ()))
    return [
        Member(wire, _without_description(member), wire in required, member.get("description", ""))
        for wire, member in schema.get("properties", {}).items()
    ]


def _require_what_is_always_sent(struct: type[Wire], schema: Json) -> None:
    known = (NODEFAULT, list, dict)
    sent = [
        field.encode_name for field in msgspec.structs.fields(struct) if field.default_factory not in known
    ]
    schema["required"] = [*schema.get("required", []), *sent]


def _put_required_first(schema: Json) -> None:
    """Generators write parameters in this order, and many languages want optional ones last."""
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    schema["properties"] = dict(sorted(properties.items(), key=lambda member: member[0] not in required))


def _type_enums(schema: Any) -> None:
    """Say of every enum what its values are: generators that find no `type` make it `any`."""
    if isinstance(schema, list):
        for part in schema:
            _type_enums(part)
    elif isinstance(schema, dict):
        values = schema.get("enum")
        if isinstance(values, list) and "type" not in schema:
            (schema["type"],) = {_JSON_TYPES[type(value)] for value in values}
        for part in schema.values():
            _type_enums(part)


def schema_of(struct: type) -> Json:
    """The schema to stand for parameters or a result."""
    if issubclass(struct, Wire):
        return {"$ref": REF + struct.__name__}
    return {"type": "object"}


def _structs(base: type[Wire]) -> Iterator[type[Wire]]:
    for struct in base.__subclasses__():
        yield struct
        yield from _structs(struct)


def _describe(struct: type[Wire], schema: Json) -> None:
    if "description" in schema:
        schema["description"] = inspect.cleandoc(schema["description"]).replace("\n", " ")
    for field in msgspec.structs.fields(struct):
        meaning = _meaning(struct, field.name)
        if meaning:
            schema["properties"][field.encode_name]["description"] = meaning


def _meaning(struct: type, attribute: str) -> str:
    """The words below the declaration of `attribute`, in the struct or in the one that it inherits from."""
    for owner in struct.__mro__:
        if attribute in inspect.get_annotations(owner):
            return _meanings(sys.modules[owner.__module__]).get((owner.__name__, attribute), "")
    return ""


@cache
def _meanings(module: ModuleType) -> dict[tuple[str, str], str]:
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError):
        return {}
    found: dict[tuple[str, str], str] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found.update({(node.name, name): text for name, text in _documented(node)})
    return found


def _documented(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(node.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text).replace("\n", " ")


def _without_description(schema: dict[str, Any]) -> Json:
    return {key: value for key, value in schema.items() if key != "description"}
