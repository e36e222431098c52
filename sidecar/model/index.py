"""What is kept out of the window and found again: sources, the chunks that are found in them, and what is asked."""

from __future__ import annotations

from typing import Literal

import msgspec

SourceKind = Literal["output", "file", "page", "code", "text"]
"""A tool's output, a file of the project, a fetched page, what code printed, what an app added."""

Scope = Literal["chat", "project", "all"]

WORDS_IN_IT = "[Words in it: "
"""How the line of a preview begins that names words of the text: they can be searched for, but they say nothing."""


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


class Term(msgspec.Struct, frozen=True):
    """A word that is looked for. `match` is what the index is asked: quoted tokens, and nothing that a user wrote as
    syntax. `weight` says how much it tells; `words` are the ways to spell it, as a text is compared with them."""

    match: str
    weight: float
    words: tuple[str, ...]
    prefix: bool = False


class Plan(msgspec.Struct, frozen=True):
    """What a query asks of the index: words that count, and what must and must not be there."""

    terms: tuple[Term, ...] = ()
    needed: str = ""
    """Of a line or a chunk, in the index's own language; empty when nothing must be there."""
    barred: str = ""


class Candidate(msgspec.Struct, frozen=True):
    """A chunk that holds something of what was looked for. `id` grows with time within a chat."""

    id: int
    source: int
    chunk: Chunk
    text: str


class Pool(msgspec.Struct, frozen=True):
    """What a search has to choose from: candidates, their sources, how many lines hold each term, of how many."""

    candidates: tuple[Candidate, ...] = ()
    sources: dict[int, Source] = {}
    frequency: tuple[int, ...] = ()
    total: int = 0


class Removed(msgspec.Struct, frozen=True):
    """What was removed for good; `bytes` are those of the texts."""

    sources: int = 0
    chunks: int = 0
    bytes: int = 0

    def plus(self, other: Removed) -> Removed:
        return Removed(self.sources + other.sources, self.chunks + other.chunks, self.bytes + other.bytes)


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
