"""One instruction rule as a value, and the error why a file is none. Does not know where it was read."""

from __future__ import annotations

from typing import Literal

import msgspec

from ...model import FileScope, JsonObject

Applies = Literal["always", "glob", "word"]


ProblemCode = Literal["malformed", "unreadable", "missing", "withheld", "too_many"]
"""Why a rule is not used, by name."""


class MalformedRule(Exception):
    """The file is not a rule; the message says why, without its path."""

    def __init__(self, words: str, code: ProblemCode = "malformed") -> None:
        super().__init__(words)
        self.code = code


class Instruction(msgspec.Struct, frozen=True):
    """The instructions of a file. With a `problem` it has none, and only says why it could not be parsed."""

    path: str
    """As it is shown: relative to the project, or absolute for a rule of the user."""

    name: str
    scope: FileScope
    applies: Applies = "always"
    globs: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    text: str = ""
    priority: int = 0
    metadata: JsonObject = {}
    handler: str | None = None

    folder: str = ""
    """The folder that it applies to, relative to the project; its globs begin there. Empty for the top of the
    project.
    """

    template: bool = False
    """Whether `{project}`, `{path}` and `{file}` in the text are placeholders; in foreign formats they are not."""

    problem: str | None = None
    problem_code: ProblemCode | None = None
    notes: tuple[str, ...] = ()
    """What was ignored in an otherwise valid file, such as a missing import."""

    hash: str = ""
    """Hash of its bytes and those of its imports; empty when they could not be read."""
