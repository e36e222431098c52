"""The interface between the engine and a tool."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from ..providers.base import ToolSpec
from ..workspace.paths import Workspace

Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]


class Outcome(msgspec.Struct, frozen=True):
    """What a tool answers the model; `paths` are the files that it looked at, relative to the project."""

    text: str
    failed: bool = False
    paths: tuple[str, ...] = ()


class Wrong(Exception):
    """The model's call cannot be carried out; the words are for the model."""


class Tool(Protocol):
    """`run` blocks: it is called in a thread. `title` is what a user reads while it runs."""

    spec: ToolSpec
    kind: Kind

    def title(self, input: dict[str, Any]) -> str: ...
    def run(self, input: dict[str, Any], workspace: Workspace) -> Outcome: ...


def text(input: dict[str, Any], name: str, default: str | None = None) -> str:
    """A text parameter of a call."""
    value = input.get(name, default)
    if not isinstance(value, str) or not value:
        raise Wrong(f"`{name}` must be text.")
    return value


def number(input: dict[str, Any], name: str, default: int) -> int:
    """A whole number of a call, from 1."""
    value = input.get(name)
    if value is None:
        return default
    if type(value) is not int or value < 1:
        raise Wrong(f"`{name}` must be a whole number from 1.")
    return value
