"""What the table says of a method. It has only the names of its types: importing the table creates none of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, cast

import msgspec

from .. import messages
from ..messages.base import Json, Wire

_NOTHING: Mapping[str, Any] = MappingProxyType({})

Scope = Literal["connection", "chat", "global"]


class Method(msgspec.Struct, frozen=True):
    """A request that the client may make; without `gives` the result is any object. `early` ones are answered before
    `initialize`."""

    name: str
    takes: str
    gives: str | None
    scope: Scope
    summary: str
    example: Mapping[str, Any] = _NOTHING
    early: bool = False
    since: int = 1

    @property
    def params(self) -> type[Wire]:
        return _type(self.takes)

    @property
    def result(self) -> type[Wire] | type[Json]:
        return dict if self.gives is None else _type(self.gives)


class Question(msgspec.Struct, frozen=True):
    """A request that the sidecar makes to a client that offers to answer it, by a capability or, for `tools`, by
    offering some."""

    name: str
    takes: str
    gives: str
    offered_by: Literal["permissions", "input", "buffers", "tools"]
    summary: str
    example: Mapping[str, Any] = _NOTHING
    since: int = 1

    @property
    def params(self) -> type[Wire]:
        return _type(self.takes)

    @property
    def result(self) -> type[Wire]:
        return _type(self.gives)


class Notice(msgspec.Struct, frozen=True):
    """A notification, and who sends it."""

    name: str
    takes: str
    sender: Literal["client", "sidecar", "both"]
    summary: str
    since: int = 1

    @property
    def params(self) -> type[Wire]:
        return _type(self.takes)


def _type(name: str) -> type[Wire]:
    return cast("type[Wire]", getattr(messages, name))
