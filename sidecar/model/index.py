"""Values of the index: sources, their chunks, and queries."""

from __future__ import annotations

from typing import Literal

import msgspec

SourceKind = Literal["output", "file", "page", "code", "text"]
"""A tool's output, a file of the project, a fetched page, output of code, a text of an app."""

SearchScope = Literal["chat", "project", "all"]
"""A chat: its own sources, and those of its project that belong to no chat, such as indexed files. A project:
those of its other chats too."""

WORDS_IN_IT = "[Words in it: "
"""The beginning of the preview line with words of the text, which are search terms and carry no meaning."""


class NewSource(msgspec.Struct, frozen=True):
    """A text to store. `label` is its name in results: a command line, a path, an address.

    `hash` is that of the file's bytes, so that a changed file is read again; `chat` and `project` are its
    owner.
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
    """What its reader hopes to find; used to select the preview."""


class Source(msgspec.Struct, frozen=True):
    """A stored text, without the text. `id` is `out:…` and never reused."""

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


class Query(msgspec.Struct, frozen=True):
    """A query and its scope. `chat` and `project` restrict the scope; they are never part of the words."""

    text: str
    scope: SearchScope = "chat"
    chat: int | None = None
    project: str | None = None
    source: str | None = None
    tool: str | None = None
    kind: SourceKind | None = None
    sort: Literal["relevance", "recent"] = "relevance"
    limit: int = 5
    max_tokens: int = 1200


class IndexHit(msgspec.Struct, frozen=True):
    """A match: the text around it, its lines in the source (from 1, inclusive), and its owner."""

    id: str
    source: Source
    title: str
    lines: tuple[int, int]
    text: str
    score: float
    tokens: int


class Results(msgspec.Struct, frozen=True):
    """The result of one query; `corrected` is the spelling that was searched instead."""

    hits: tuple[IndexHit, ...] = ()
    tokens: int = 0
    corrected: str | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    """Files with hits that may not be read, with the reason."""


class SourceText(msgspec.Struct, frozen=True):
    """A stored text, or the requested lines of it."""

    source: Source
    text: str
    lines: tuple[int, int]


class IndexChunk(msgspec.Struct, frozen=True):
    """A range of a text on natural borders: code points from `start` to `end`, its lines, and its headings."""

    start: int
    end: int
    lines: tuple[int, int]
    title: str = ""


class IndexTerm(msgspec.Struct, frozen=True):
    """A search word. `match` is the expression for the index: quoted tokens, without syntax from a user.
    `weight` is its significance; `words` are its spellings, for comparison with a text."""

    match: str
    weight: float
    words: tuple[str, ...]
    prefix: bool = False


class QueryPlan(msgspec.Struct, frozen=True):
    """What a query requires of the index: weighted words, and what must and must not occur."""

    terms: tuple[IndexTerm, ...] = ()
    needed: str = ""
    """Of a line or a chunk, in FTS syntax; empty when nothing is required."""
    barred: str = ""


class ChunkCandidate(msgspec.Struct, frozen=True):
    """A chunk that may match. `id` grows with time within a chat."""

    id: int
    source: int
    chunk: IndexChunk
    text: str


class ChunkPool(msgspec.Struct, frozen=True):
    """The input of ranking: candidates, their sources, how many lines contain each term, and the number of
    lines."""

    candidates: tuple[ChunkCandidate, ...] = ()
    sources: dict[int, Source] = {}
    frequency: tuple[int, ...] = ()
    total: int = 0


class RemovalCounts(msgspec.Struct, frozen=True):
    """What was removed for good; `bytes` are those of the texts."""

    sources: int = 0
    chunks: int = 0
    bytes: int = 0

    def plus(self, other: RemovalCounts) -> RemovalCounts:
        return RemovalCounts(
            self.sources + other.sources, self.chunks + other.chunks, self.bytes + other.bytes
        )


class PlacedChunk(msgspec.Struct, frozen=True):
    """A chunk of a source: `id` is `out:….start`; its text when that was asked for."""

    id: str
    chunk: IndexChunk
    text: str | None = None


class ChunkPage(msgspec.Struct, frozen=True):
    """Chunks in the order of the text, and where the next page starts."""

    source: Source
    chunks: tuple[PlacedChunk, ...]
    cursor: str | None = None


class SourcePage(msgspec.Struct, frozen=True):
    """Sources, newest first, and where the next page starts."""

    sources: tuple[Source, ...]
    cursor: str | None = None
