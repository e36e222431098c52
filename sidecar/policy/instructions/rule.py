"""One instruction rule as a value, and why a file is none. Knows nothing of where it was read."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Applies = Literal["always", "glob", "word"]
Scope = Literal["user", "project"]


class Malformed(Exception):
    """The file is no rule; the words say why, without its path."""


class Instruction(msgspec.Struct, frozen=True):
    """What a file asks of the model. With a `problem` it asks nothing, and only says why it was not understood."""

    path: str
    """As it is shown: relative to the project, or absolute for a rule of the user."""

    name: str
    scope: Scope
    applies: Applies = "always"
    globs: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    text: str = ""
    priority: int = 0
    metadata: dict[str, Any] = {}
    handler: str | None = None

    folder: str = ""
    """Only for what lies beneath it, relative to the project; its globs begin there. Empty for the project's top."""

    template: bool = False
    """Whether `{project}`, `{path}` and `{file}` in the text stand for values; in foreign formats they do not."""

    problem: str | None = None
    notes: tuple[str, ...] = ()
    """What was passed over in a file that holds all the same, such as an import that is not there."""

    hash: str = ""
    """Of its bytes and those of its imports; empty when they could not be read."""
