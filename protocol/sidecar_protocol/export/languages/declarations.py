"""The types of the contract as declarations that any typed language has: objects, enums, tagged unions.

Read from the JSON Schemas, so that every language says the same as the OpenRPC document. Knows no language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeAlias, get_args, get_origin

import msgspec

from sidecar_protocol import messages
from sidecar_protocol.catalog import METHODS, NOTIFICATIONS, REQUESTS
from sidecar_protocol.messages.base import Json, Wire

from ..schemas import REF, schemas

ScalarName = Literal["string", "integer", "number", "boolean", "any"]


class Scalar(msgspec.Struct, frozen=True):
    """A value without members of its own; `any` is any JSON."""

    name: ScalarName


class Ref(msgspec.Struct, frozen=True):
    """A declaration, by its name."""

    name: str


class ListOf(msgspec.Struct, frozen=True):
    item: Type


class MapOf(msgspec.Struct, frozen=True):
    """An object whose members are data, such as files by their paths."""

    value: Type


Type: TypeAlias = Scalar | Ref | ListOf | MapOf


class Member(msgspec.Struct, frozen=True):
    """A member of an object. One that is not `required` may be absent; a `nullable` one may be null."""

    name: str
    type: Type
    required: bool
    nullable: bool
    meaning: str


class Object(msgspec.Struct, frozen=True):
    """An object. `tag` is the `type` of a member of a tagged union, which is not in `members`. Clients send those that
    are `sent`, whole or as a part; lists of values in all others may grow in later versions.
    """

    name: str
    meaning: str
    members: tuple[Member, ...]
    sent: bool
    tag: str | None = None


class Enum(msgspec.Struct, frozen=True):
    """Strings of a list."""

    name: str
    meaning: str
    values: tuple[str, ...]


class Variant(msgspec.Struct, frozen=True):
    tag: str
    object: str


class TaggedUnion(msgspec.Struct, frozen=True):
    """Objects told apart by `type`; `other` is the object for every type that the list does not have."""

    name: str
    meaning: str
    variants: tuple[Variant, ...]
    other: str


class Alternatives(msgspec.Struct, frozen=True):
    """A value of one of several types, told apart by its shape; only in what a client sends."""

    name: str
    types: tuple[Type, ...]


Declaration: TypeAlias = Object | Enum | TaggedUnion | Alternatives


class Call(msgspec.Struct, frozen=True):
    """A method or a request to the client."""

    name: str
    summary: str
    params: str
    result: str | None


class Contract(msgspec.Struct, frozen=True):
    """All declarations in alphabetical order, and who asks what."""

    declarations: tuple[Declaration, ...]
    methods: tuple[Call, ...]
    requests: tuple[Call, ...]


@cache
def contract() -> Contract:
    """The contract of this package."""
    return Contract(
        tuple(_Reader(schemas(), _sent_names(schemas())).declarations()),
        tuple(_call(method.name, method) for method in METHODS.values()),
        tuple(_call(question.name, question) for question in REQUESTS.values()),
    )


def pascal(name: str) -> str:
    """A wire name as the name of a type or a case: `message.delta`, `end_turn` and `chatId` alike."""
    words = name.replace("*", "any").replace(".", "_").replace("-", "_").replace("/", "_").split("_")
    return "".join(word[0].upper() + word[1:] for word in words if word)


def _call(name: str, row: Any) -> Call:
    result = row.result.__name__ if issubclass(row.result, Wire) else None
    return Call(name, row.summary, row.params.__name__, result)


def _sent_names(known: Mapping[str, Json]) -> frozenset[str]:
    """The types that a client sends, whole or as a part: there a list of values is all that is accepted."""
    waiting = [method.params.__name__ for method in METHODS.values()]
    waiting += [question.result.__name__ for question in REQUESTS.values()]
    waiting += [notice.params.__name__ for notice in NOTIFICATIONS.values() if notice.sender != "sidecar"]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(known[name])
    return frozenset(found)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)
    elif isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(REF)
        for part in schema.values():
            yield from _references(part)


class _Reader:
    """Turns schemas into declarations; inline objects, enums and alternatives get a name of their own."""

    def __init__(self, known: Mapping[str, Json], sent: frozenset[str]) -> None:
        self._known = known
        self._sent = sent
        self._found: dict[str, Declaration] = {}
        self._aliases = _enum_names()

    def declarations(self) -> list[Declaration]:
        for name, schema in self._known.items():
            self._declare(name, schema)
        return [self._found[name] for name in sorted(self._found)]

    def _declare(self, name: str, schema: Json) -> None:
        if "properties" in schema:
            self._declare_object(name, schema, name in self._sent)
        elif "enum" in schema:
            self._add(Enum(name, schema.get("description", ""), tuple(schema["enum"])))
        elif "anyOf" in schema:
            self._declare_union(name, schema)
        else:
            raise ValueError(f"{name}: no declaration for {schema}")

    def _declare_object(self, name: str, schema: Json, sent: bool, *, inline: bool = False) -> None:
        """`inline` is the `data` of an event: it comes as the journal has it, where an absent member may be null."""
        required = schema.get("required", ())
        members, tag = [], None
        for member, own in schema["properties"].items():
            if "const" in own:
                tag = own["const"]
            else:
                members.append(self._member(name, member, own, member in required, sent=sent, inline=inline))
        self._add(Object(name, schema.get("description", ""), tuple(members), sent, tag))

    def _member(
        self, owner: str, name: str, schema: Json, required: bool, *, sent: bool, inline: bool
    ) -> Member:
        # A required member with the default null is one that is always sent with another value.
        nullable = {"type": "null"} in schema.get("anyOf", ()) and (
            "default" not in schema if required else inline
        )
        kind = self._type(schema, f"{owner}{pascal(name)}", sent)
        return Member(name, kind, required, nullable, schema.get("description", ""))

    def _type(self, schema: Json, name: str, sent: bool) -> Type:
        if "$ref" in schema:
            return Ref(schema["$ref"].removeprefix(REF))
        if "anyOf" in schema:
            return self._any_of([part for part in schema["anyOf"] if part != {"type": "null"}], name, sent)
        if "enum" in schema:
            return self._enum(tuple(schema["enum"]), name)
        if "properties" in schema:
            self._declare_object(schema["title"], schema, sent, inline=True)
            return Ref(schema["title"])
        kind = schema.get("type", "any")
        if kind == "array":
            return ListOf(self._type(schema["items"], name, sent))
        if kind == "object":
            return MapOf(self._type(schema.get("additionalProperties", {}), name, sent))
        return Scalar(kind)

    def _any_of(self, parts: list[Json], name: str, sent: bool) -> Type:
        if len(parts) == 1:
            return self._type(parts[0], name, sent)
        types = tuple(self._type(part, f"{name}Name", sent) for part in parts)
        self._add(Alternatives(name, types))
        return Ref(name)

    def _enum(self, values: tuple[str, ...], name: str) -> Ref:
        name = self._aliases.get(frozenset(values), name)
        self._add(Enum(name, "", values))
        return Ref(name)

    def _declare_union(self, name: str, schema: Json) -> None:
        *known, other = [part["$ref"].removeprefix(REF) for part in schema["anyOf"]]
        variants = tuple(
            Variant(self._known[object]["properties"]["type"]["const"], object) for object in known
        )
        self._add(TaggedUnion(name, schema["description"], variants, other))

    def _add(self, declaration: Declaration) -> None:
        before = self._found.setdefault(declaration.name, declaration)
        if before != declaration:
            raise ValueError(f"two declarations are named {declaration.name}")


def _enum_names() -> dict[frozenset[str], str]:
    """The names that `messages` gives to lists of values, such as `ItemStatus`; none for a list with two names."""
    found: dict[frozenset[str], set[str]] = {}
    for module in vars(messages).values():
        for name, value in vars(module).items() if hasattr(module, "__name__") else ():
            if get_origin(value) is Literal and name[0].isupper():
                found.setdefault(frozenset(get_args(value)), set()).add(name)
    return {values: names.pop() for values, names in found.items() if len(names) == 1}
