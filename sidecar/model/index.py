"""What is kept out of the window and found again: sources, the chunks that are found in them, and what is asked."""

from __future__ import annotations

from typing import Literal

import msgspec

SourceKind = Literal["output", "file", "page", "code", "text"]
"""A tool's output, a file of the project, a fetched page, what code printed, what an app added."""

Scope = Literal["chat", "project", "all"]


class NewSource(msgspec.Struct, frozen=True):
    """A text to be kept. `label` is what a search names it by: a command line, a path, an address.

    `hash` is that of the file's bytes, so that a changed file is read anew; `chat` and `project` say whose it is.
    """

    text: str
    label: str
    kind: SourceKind
    chat: int | None = None
    project: str | None = None
    tool: str | None = None
    path: str | None = None
    hash: str | None = None
    intent: str | None = None
    """What its reader hopes to find; weighs when the preview is chosen."""


class Source(msgspec.Struct, frozen=True):
    """A text that is kept, without the text. `id` is `out:…`; nothing ever gets another's."""

    id: str
    label: str
    kind: SourceKind
    chat: int | None
    session_id: str | None
    project: str | None
    tool: str | None
    path: str | None
    ts: int
    bytes: int
    lines: int
    tokens: int
    chunks: int
    truncated: bool = False
    stale: bool = False


class Query(msgspec.Struct, frozen=True):
    """What is looked for, and where. `chat` and `project` bound the scope; they are never part of the words."""

    text: str
    scope: Scope = "chat"
    chat: int | None = None
    project: str | None = None
    source: str | None = None
    tool: str | None = None
    kind: SourceKind | None = None
    sort: Literal["relevance", "recent"] = "relevance"
    limit: int = 5
    max_tokens: int = 1200


class Hit(msgspec.Struct, frozen=True):
    """A place that was found: the text around it, its lines in the source (from 1, inclusive), and whose it is."""

    id: str
    source: Source
    title: str
    lines: tuple[int, int]
    text: str
    score: float
    tokens: int


class Results(msgspec.Struct, frozen=True):
    """The answer to one query; `corrected` is the spelling that was searched for instead."""

    hits: tuple[Hit, ...] = ()
    tokens: int = 0
    corrected: str | None = None


class Whole(msgspec.Struct, frozen=True):
    """A kept text, or the asked for lines of it."""

    source: Source
    text: str
    lines: tuple[int, int]


class Chunk(msgspec.Struct, frozen=True):
    """A stretch of a text on natural borders: code points from `start` to `end`, its lines, and what is above it."""

    start: int
    end: int
    lines: tuple[int, int]
    title: str = ""


class Found(msgspec.Struct, frozen=True):
    """A chunk that a search met, its number in the source from 0, and its text."""

    source: Source
    chunk: Chunk
    ordinal: int
    score: float
    text: str


class Removed(msgspec.Struct, frozen=True):
    """What was removed for good; `bytes` are those of the texts."""

    sources: int = 0
    chunks: int = 0
    bytes: int = 0


class SourcePage(msgspec.Struct, frozen=True):
    """Sources, newest first, and where the next page starts."""

    sources: tuple[Source, ...]
    cursor: str | None = None


class IndexSettings(msgspec.Struct, frozen=True):
    """What `[index]` says. `inline_max` and `retrieval_limit` are for those who capture outputs and who retrieve."""

    enabled: bool = True
    inline_max: int = 2 * 1024
    max_output_size: int = 64 * 1024 * 1024
    preview_tail_lines: int = 50
    chunk_bytes: int = 4 * 1024
    retrieval_limit: int = 5
    retention_days: int = 90
    max_bytes: int = 2 * 1024 * 1024 * 1024
