"""Items, events and statuses as unions: one member for each type, and a last one for types that come later.

A struct reads all types of an item; who generates types from the schemas wants each by its own name, so that a
misspelt type or a member that a type does not have is an error of the compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy

from sidecar_protocol.messages import EVENT_TYPES, ITEM_TYPES, STATUS_TYPES
from sidecar_protocol.messages.base import Json
from sidecar_protocol.messages.event_types import EventRow

_REF = "#/components/schemas/"

_STANDS_FOR_ANY = '"(other)"'
"""What json-schema-to-typescript makes of the open type: with `string` no comparison would leave one type of the union,
and none with a misspelt name would be refused. Other generators and validators ignore it."""


def with_unions(structs: Mapping[str, Json]) -> dict[str, Json]:
    """The schemas of the structs, with `Item`, `Event` and `Status` as unions."""
    components = deepcopy(dict(structs))
    _add_items(components)
    _add_rows(components, "Event", EVENT_TYPES)
    _add_rows(components, "Status", STATUS_TYPES)
    return components


def _add_items(components: dict[str, Json]) -> None:
    item = components["Item"]
    special = {name for own in ITEM_TYPES.values() for name in own}
    common = {name: schema for name, schema in item["properties"].items() if name not in special}
    for type, own in ITEM_TYPES.items():
        properties = {**common, **{name: item["properties"][name] for name in own}}
        name = _pascal(type) + "Item"
        components[name] = _of_type(name, item, properties, type)
    _add_union(components, "Item", ITEM_TYPES, {**item, "properties": common})


def _add_rows(components: dict[str, Json], union: str, rows: Mapping[str, EventRow]) -> None:
    whole = components[union]
    data = {type: deepcopy(components[row.data.__name__]) for type, row in rows.items()}
    for row in rows.values():
        if row.data.__module__ == EventRow.__module__:
            components.pop(row.data.__name__, None)
    for type, row in rows.items():
        name = _pascal(type)
        data[type]["title"] = f"{name}Data"
        data[type].setdefault("description", whole["properties"]["data"]["description"])
        if row.item:
            _narrow_item(data[type]["properties"]["item"], f"{_REF}{_pascal(row.item)}Item")
        components[f"{name}{union}"] = {
            **_of_type(f"{name}{union}", whole, {**whole["properties"], "data": data[type]}, type),
            "description": row.meaning,
        }
    _add_union(components, union, rows, whole)


def _narrow_item(item: Json, reference: str) -> None:
    """Make the member `item` that of one type; it may be absent."""
    target = item["anyOf"][0] if "anyOf" in item else item
    target["$ref"] = reference


def _of_type(title: str, whole: Json, properties: Json, type: str) -> Json:
    described = {"type": "string", "const": type, "description": whole["properties"]["type"]["description"]}
    return {
        "title": title,
        "type": "object",
        "properties": {**properties, "type": described},
        "required": whole["required"],
    }


def _add_union(components: dict[str, Json], union: str, types: Iterable[str], other: Json) -> None:
    components[f"{union}Type"] = {
        "title": f"{union}Type",
        "type": "string",
        "enum": list(types),
        "description": f"The types that {_article(union)} has now.",
    }
    later = {
        "type": "string",
        "not": {"$ref": f"{_REF}{union}Type"},
        "tsType": _STANDS_FOR_ANY,
        "description": "A type that a later version adds.",
    }
    components[f"Other{union}"] = {
        "title": f"Other{union}",
        "type": "object",
        "description": f"{_article(union).capitalize()} of a type that is not known yet: ignore it.",
        "properties": {**other["properties"], "type": later},
        "required": other["required"],
    }
    names = [*(f"{_pascal(type)}{union}" for type in types), f"Other{union}"]
    components[union] = {
        "title": union,
        "description": components[union].get("description", ""),
        "anyOf": [{"$ref": _REF + name} for name in names],
    }


def _article(union: str) -> str:
    return f"{'an' if union[0] in 'EI' else 'a'} {union.lower()}"


def _pascal(type: str) -> str:
    return "".join(part[0].upper() + part[1:] for part in type.split("."))
