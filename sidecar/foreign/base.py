"""What readers of other programs' chats return, and the limits within which they read. Plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from ..model.content import Turn
from ..model.files import Patch

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Of one record: a tool's output with an image is far smaller."""

MAX_CHAT_BYTES = 256 * 1024 * 1024
"""Records of one chat that are read into memory; a year of work in one session has less."""

MAX_DEPTH = 100
"""Nested brackets of a record."""

MAX_PROBLEMS = 100
"""Named for one chat; the others are counted."""

MAX_TURN_ITEMS = 5000
"""Items of one turn; a longer one goes on in further turns."""


class Problem(msgspec.Struct, frozen=True):
    """What could not be read: the file, the line if there is one, and why."""

    file: str
    line: int | None
    message: str


class Attachment(msgspec.Struct, frozen=True):
    """Bytes that come with a chat."""

    data: bytes
    mime_type: str
    name: str | None = None


class ForeignChat(msgspec.Struct, kw_only=True):
    """A chat as it was read. `head` is the newest turn of the branch that its program shows; `blobs` are by hash.

    `stray` counts the problems beyond those that are named.
    """

    id: str
    title: str | None = None
    title_by: str = "model"
    project: str | None = None
    created_at: int = 0
    updated_at: int = 0
    turns: list[Turn] = []
    head: str | None = None
    patches: list[Patch] = []
    blobs: dict[str, Attachment] = {}
    problems: list[Problem] = []
    stray: int = 0


class FoundChat(msgspec.Struct, frozen=True, kw_only=True):
    """A chat that was found and not read yet. `mark` changes when the chat does; `updated_at` is in milliseconds, 0
    when it is unknown; `size` are the bytes to read.
    """

    id: str
    file: str
    mark: str
    size: int
    updated_at: int
    read: Callable[[], ForeignChat]


Found = FoundChat | Problem


class Reader(Protocol):
    """A module that reads the chats of one program."""

    NAME: str
    TITLE: str

    def find(self, path: str | None) -> Iterator[Found]:
        """The chats at a path, or where the program keeps them; Problem for what is not one."""
        ...
