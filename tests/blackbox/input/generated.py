"""Parameters made from the table of methods: whole ones, and each place in them where a value can stand."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect
from sidecar_protocol.catalog import METHODS

from tests.support.wire import Json


class Place(NamedTuple):
    """Where a value stands: members and indices from the outside in, and what may stand there."""

    path: tuple[str | int, ...]
    type: inspect.Type

    @property
    def name(self) -> str:
        """The name by which an error must call it."""
        return next(str(step) for step in reversed(self.path) if isinstance(step, str))


def places(method: str) -> list[Place]:
    """Every place in the parameters of `method`, nested ones included."""
    return list(_walk(_parameters(method), ()))


def whole(method: str) -> Json:
    """Parameters with every member set, each of the right type."""
    value = _example(_parameters(method))
    assert isinstance(value, dict)
    return value


def with_value(params: Json, path: tuple[str | int, ...], value: Any) -> Json:
    """A copy of `params` with `value` at `path`."""
    copy = deepcopy(params)
    here: Any = copy
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return copy


def takes(method: str, params: Json) -> bool:
    """Whether the types of the table accept `params`."""
    try:
        msgspec.convert(params, METHODS[method].params)
    except msgspec.ValidationError:
        return False
    return True


def holds_text(type: inspect.Type) -> bool:
    """Whether any text may stand there."""
    return any(isinstance(kind, inspect.StrType) for kind in _alternatives(type))


@cache
def _parameters(method: str) -> inspect.Type:
    return inspect.type_info(METHODS[method].params)


def _walk(type: inspect.Type, path: tuple[str | int, ...]) -> Iterator[Place]:
    for kind in _alternatives(type):
        if isinstance(kind, inspect.StructType):
            for field in kind.fields:
                yield Place((*path, field.encode_name), field.type)
                yield from _walk(field.type, (*path, field.encode_name))
        elif isinstance(kind, inspect.ListType):
            yield Place((*path, 0), kind.item_type)
            yield from _walk(kind.item_type, (*path, 0))


def _example(type: inspect.Type) -> Any:
    kind = _alternatives(type)[0]
    match kind:
        case inspect.StructType():
            return {field.encode_name: _example(field.type) for field in kind.fields}
        case inspect.ListType():
            return [_example(kind.item_type)]
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.BoolType():
            return False
        case inspect.IntType():
            return 1
        case inspect.DictType():
            return {}
        case _:
            return "x"


def _alternatives(type: inspect.Type) -> list[inspect.Type]:
    """What may stand there, null left out; structures first, since they lead to further places."""
    kinds = list(type.types) if isinstance(type, inspect.UnionType) else [type]
    kinds = [kind for kind in kinds if not isinstance(kind, inspect.NoneType)]
    return sorted(kinds, key=lambda kind: not isinstance(kind, inspect.StructType))
