"""The index: tool outputs, files, pages and texts that are kept out of the window, and found again by their words."""

from __future__ import annotations

from typing import Literal

from .base import Key, Wire, always

__all__ = [
    "IndexAddParams",
    "IndexAddResult",
    "IndexChunk",
    "IndexChunksParams",
    "IndexChunksResult",
    "IndexGetParams",
    "IndexGetResult",
    "IndexHit",
    "IndexListParams",
    "IndexListResult",
    "IndexRemoveParams",
    "IndexRemoveResult",
    "IndexResults",
    "IndexSearchParams",
    "IndexSearchResult",
    "IndexSkipped",
    "IndexSource",
    "SourceLines",
]

SourceKind = Literal["output", "file", "page", "code", "text"]


class SourceLines(Wire, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Lines of a text, from 1, both ends included."""

    start: int
    """The first line."""
    end: int
    """The last line."""


class IndexSource(Wire, kw_only=True, frozen=True):
    """A source: a stored text, without the text itself."""

    id: str
    """`out:…`: its id for `index/get`. Ids are never reused."""
    source: str
    """Its name: a command line, a path, an address, or the name that an app gave it."""
    kind: SourceKind
    """A tool's output, a file of the project, a fetched page, what code printed, or a text that an app added."""
    session_id: str | None = None
    """The chat that it belongs to; absent when it belongs to a project, or to none."""
    project_path: str | None = None
    """The project that it belongs to."""
    tool_name: str | None = None
    """The tool that made it."""
    path: str | None = None
    """The file that it is a copy of."""
    ts: int
    """When it was kept, in milliseconds since 1970."""
    bytes: int
    """Its size."""
    lines: int
    """How many lines it has."""
    tokens: int
    """Its tokens, counted with o200k; of more than 65,536 characters, computed from samples."""
    chunks: int
    """The number of its chunks; 0 while it waits to be indexed."""
    truncated: bool = always(False)
    """Whether it was too large to be stored completely."""


class IndexSkipped(Wire, kw_only=True, frozen=True):
    """A file that was not indexed."""

    path: str
    """Which."""
    reason: str
    """Why, in words."""


class IndexAddParams(Key, kw_only=True, frozen=True):
    """Either `content` with a `source`, or a `path` in the project.

    A text belongs to the chat, or without a key to the project. Files belong to the project: all of its chats
    find them.
    """

    content: str | None = None
    """The text to keep."""
    path: str | None = None
    """A file or a folder of the project; ignored files are omitted."""
    source: str | None = None
    """What the text is called in hits; required with `content`."""
    kind: SourceKind | None = None
    """What the text is; `text` when absent, `file` for a path."""


class IndexAddResult(Wire, kw_only=True, frozen=True):
    """Answered when the text can be found."""

    source_id: str | None
    """The source that was added; null for a folder in which nothing was to be indexed."""
    chunks: int
    """Number of chunks, of all files together."""
    tokens: int
    """The sum of the tokens of `sources`."""
    sources: list[IndexSource]
    """What was added, or is there unchanged: one for a text or a file, one a file for a folder."""
    skipped: list[IndexSkipped] = always([])
    """Files that were omitted."""


class IndexSearchParams(Key, kw_only=True, frozen=True):
    """Words; `"a phrase"`, AND, OR, NOT or `-word`, and `prefix*` are understood. By words, not by meaning."""

    queries: list[str]
    """The queries; one result for each."""
    scope: Literal["chat", "project", "all"] | None = None
    """Where; `chat` with a key, `project` with a `projectPath` alone, else `all`.

    `chat`: this chat's texts, and those that belong to its project and to no chat, such as indexed files.
    `project`: these, and the texts of its other chats. `all`: everything.
    """
    source: str | None = None
    """Only this source: its id, or its name exactly."""
    tool_name: str | None = None
    """Only what this tool printed."""
    kind: SourceKind | None = None
    """Only sources of this kind."""
    sort: Literal["relevance", "recent"] = "relevance"
    """What comes first."""
    limit: int | None = None
    """Maximum number of hits per query; `index.retrieval_limit` (5) when absent."""
    max_tokens: int = 1200
    """Of all hits' text together."""


class IndexHit(Wire, kw_only=True, frozen=True):
    """A chunk that was found."""

    id: str
    """The id of this chunk for `index/get`."""
    source_id: str
    """The id of the whole text for `index/get`."""
    source: str
    """What the source is called."""
    kind: SourceKind
    """What the source is."""
    title: str
    """Where in the source: headings, a definition, a key path."""
    path: str | None = None
    """The file."""
    lines: SourceLines
    """Which lines `text` shows."""
    tool_name: str | None = None
    """The tool that made the source."""
    text: str
    """The lines around what was found."""
    score: float
    """Higher is better; comparable within one query."""
    ts: int
    """When the source was kept."""
    session_id: str | None = None
    """The chat that it belongs to."""


class IndexResults(Wire, kw_only=True, frozen=True):
    """The answer to one query."""

    hits: list[IndexHit]
    """The best first, or the newest."""
    tokens: int
    """Tokens of the texts of all hits."""
    corrected: str | None = None
    """What was searched for instead, since nothing has the words as they were written."""


class IndexSearchResult(Wire, kw_only=True, frozen=True):
    results: list[IndexResults]
    """One per query, in their order."""


class IndexGetParams(Key, kw_only=True, frozen=True):
    """With a key, only what that chat and its project may see."""

    id: str
    """A source (`out:…`) or a hit."""
    lines: SourceLines | None = None
    """Only these lines of it."""


class IndexGetResult(Wire, kw_only=True, frozen=True):
    source: IndexSource
    """Whose text it is."""
    text: str
    """The whole text, or the lines that were asked for."""
    lines: SourceLines
    """Which lines these are."""


class IndexChunksParams(Key, kw_only=True, frozen=True):
    """With a key, only what that chat and its project may see."""

    id: str
    """A source (`out:…`)."""
    include_text: bool = False
    """Whether to include the text of each chunk."""
    cursor: str | None = None
    """The `nextCursor` of the page before."""
    limit: int = 50
    """Maximum number of items."""


class IndexChunk(Wire, kw_only=True, frozen=True):
    """A searchable part of a source."""

    id: str
    """Its id for `index/get`: that of the source, and `start`."""
    title: str
    """Where in the source: headings, a definition, a key path."""
    lines: SourceLines
    """Which lines of the source it has."""
    start: int
    """Its first code point in the text of the source, from 0."""
    end: int
    """The code point after its last one."""
    text: str | None = None
    """Its text; only with `includeText`."""


class IndexChunksResult(Wire, kw_only=True, frozen=True):
    source: IndexSource
    """Whose chunks they are."""
    items: list[IndexChunk]
    """In the order of the text. None yet, or only the first ones, while the source waits to be indexed."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""


class IndexListParams(Key, kw_only=True, frozen=True):
    scope: Literal["chat", "project", "all"] | None = None
    """Whose sources, as in `index/search`."""
    kind: SourceKind | None = None
    """Only sources of this kind."""
    cursor: str | None = None
    """The `nextCursor` of the page before."""
    limit: int = 50
    """Maximum number of items."""


class IndexListResult(Wire, kw_only=True, frozen=True):
    items: list[IndexSource]
    """The newest first."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""


class IndexRemoveParams(Key, kw_only=True, frozen=True):
    """With a key, only what that chat finds: its own sources, and those of its project that belong to no chat."""

    id: str | None = None
    """A source."""
    source: str | None = None
    """Or all sources of exactly this name."""


class IndexRemoveResult(Wire, kw_only=True, frozen=True):
    removed: int
    """Sources that were removed."""
