"""The open files of a chat: those that are part of its window. A path that is given may be relative to the project."""

from __future__ import annotations

from .base import ChatRef, Key, always
from .chats import OpenFile

__all__ = [
    "FilesCloseParams",
    "FilesOpenParams",
    "FilesPinParams",
    "FilesResult",
    "FilesUnpinParams",
]


class FilesOpenParams(Key, kw_only=True, frozen=True):
    """Exactly one of `path` and `glob`. Opening a file that is open makes it the most recent."""

    path: str | None = None
    """The file to open."""
    glob: str | None = None
    """Open what matches, up to the limit; `**` matches any folders."""
    pinned: bool = False
    """Pin what is opened: it stays open when newer files replace others. A glob pins up to the limit."""


class FilesCloseParams(Key, kw_only=True, frozen=True):
    """Exactly one of `path` and `glob`. A path that is not open answers -32002."""

    path: str | None = None
    """The file to close."""
    glob: str | None = None
    """Close the open files that match."""


class FilesPinParams(Key, kw_only=True, frozen=True):
    path: str
    """The file to pin; it is opened when it is not open."""


class FilesUnpinParams(Key, kw_only=True, frozen=True):
    path: str
    """The file that newer ones may replace again."""


class FilesResult(ChatRef, kw_only=True, frozen=True):
    """The open files after the change: pinned first, then the most recent."""

    files: list[OpenFile]
    """All open files."""
    seq: int | None = None
    """The seq of `files.updated`; absent when nothing changed."""
    not_pinned: list[str] = always([])
    """Files that were opened and not pinned, as no more may be."""
    left: int = always(0)
    """How many files matched the glob and were not opened: beyond the limit, or of a secret name, or denied by
    a permission rule."""
