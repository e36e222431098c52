"""The index for apps and people: adding, searching, reading, listing and removing, for a chat, a project or all."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.failures import Refused, invalid
from ..model.index import NewSource, Query, Removed, Results, Scope, Source, SourceKind, SourcePage, Whole
from ..workspace.paths import Workspace
from .chats import Chats
from .identity import Address, deleted, not_found

MAX_QUERIES = 32
MAX_HITS = 100
MAX_TOKENS = 100_000
MAX_LABEL = 1000
MAX_REMOVED = 1000
"""Bounds of one call: more is a mistake, and would hold up the others."""


class Owner(msgspec.Struct, frozen=True):
    """Whose sources a call is about: a chat's, a project's, or nobody's in particular."""

    chat: int | None = None
    project: str | None = None


class Asked(msgspec.Struct, frozen=True):
    """A search as an app asks for it."""

    queries: Sequence[str]
    scope: Scope | None
    source: str | None
    tool: str | None
    kind: SourceKind | None
    sort: str
    limit: int
    max_tokens: int


class Added(msgspec.Struct, frozen=True):
    sources: list[Source]
    skipped: list[tuple[str, str]] = []


async def owner(chats: Chats, address: Address) -> Owner:
    """The chat that an address names, when it names one; else its project. A project alone is not its chat here."""
    if address.chat_id is None and address.session_id is None and not chats.has_default(address):
        return Owner(project=chats.project(address))
    row = await chats.find(address)
    if row is None or row.deleted:
        session_id = row.key.session_id if row else _session_id(chats, address)
        raise deleted(session_id) if row else not_found(session_id)
    return Owner(row.id, row.project_path)


async def add(
    chats: Chats,
    address: Address,
    content: str | None,
    path: str | None,
    label: str | None,
    kind: SourceKind | None,
) -> Added:
    """Keep a text, or the files of a path, so that they can be found when this returns."""
    _needed(chats)
    if (content is None) == (path is None):
        raise invalid("content", "exactly one of `content` and `path`")
    whose = await owner(chats, address)
    if content is not None:
        if not label or len(label) > MAX_LABEL:
            raise invalid("source", f"a name of 1 to {MAX_LABEL} characters for the text")
        new = NewSource(
            text=content, label=label, kind=kind or "text", chat=whose.chat, project=whose.project
        )
        return Added([await chats.workshop.index().add(new)])
    assert path is not None
    if kind not in (None, "file"):
        raise invalid("kind", "`file`, or nothing, beside a `path`")
    if whose.project is None:
        raise invalid("projectPath", "the project that `path` lies in")
    workspace = Workspace(whose.project, (), chats.store.own_files)
    sources, skipped = await chats.workshop.index().add_path(
        workspace, path, chat=None, project=whose.project
    )
    return Added(sources, skipped)


async def search(chats: Chats, address: Address, asked: Asked) -> list[Results]:
    """One answer a query, together within the tokens."""
    _needed(chats)
    if not 1 <= len(asked.queries) <= MAX_QUERIES:
        raise invalid("queries", f"1 to {MAX_QUERIES} texts")
    if not 1 <= asked.limit <= MAX_HITS:
        raise invalid("limit", f"1 to {MAX_HITS}")
    if not 1 <= asked.max_tokens <= MAX_TOKENS:
        raise invalid("maxTokens", f"1 to {MAX_TOKENS}")
    whose = await owner(chats, address)
    scope = _scope(whose, asked.scope)
    queries = [
        Query(
            text=text,
            scope=scope,
            chat=whose.chat,
            project=whose.project,
            source=asked.source,
            tool=asked.tool,
            kind=asked.kind,
            sort="recent" if asked.sort == "recent" else "relevance",
            limit=asked.limit,
            max_tokens=asked.max_tokens,
        )
        for text in asked.queries
    ]
    return await _shared(chats, queries, asked.max_tokens)


async def get(chats: Chats, address: Address, id: str, lines: tuple[int, int] | None) -> Whole:
    _needed(chats)
    if lines and not 1 <= lines[0] <= lines[1]:
        raise invalid("lines", "lines from 1, the end not before the start")
    whose = await owner(chats, address)
    found = await chats.workshop.index().get(id, lines, chat=whose.chat, project=whose.project)
    if found is None:
        raise _unknown(id)
    return found


async def listed(
    chats: Chats,
    address: Address,
    scope: Scope | None,
    kind: SourceKind | None,
    cursor: str | None,
    limit: int,
) -> SourcePage:
    _needed(chats)
    if not 1 <= limit <= MAX_HITS:
        raise invalid("limit", f"1 to {MAX_HITS}")
    whose = await owner(chats, address)
    wanted = _scope(whose, scope)
    return await chats.workshop.index().sources(
        chat=whose.chat if wanted == "chat" else None,
        project=whose.project if wanted == "project" else None,
        kind=kind,
        cursor=cursor,
        limit=limit,
    )


async def remove(chats: Chats, address: Address, id: str | None, label: str | None) -> Removed:
    _needed(chats)
    if (id is None) == (label is None):
        raise invalid("id", "exactly one of `id` and `source`")
    whose = await owner(chats, address)
    index = chats.workshop.index()
    # A chat may forget its own; a project's belong to all of its chats.
    page = await index.sources(
        chat=whose.chat,
        project=None if whose.chat is not None else whose.project,
        source=id or label,
        limit=MAX_REMOVED,
    )
    if id and not page.sources:
        raise _unknown(id)
    return await index.remove([source.id for source in page.sources])


async def _shared(chats: Chats, queries: Sequence[Query], max_tokens: int) -> list[Results]:
    """The queries one after the other, so that what one does not use is there for the next."""
    results: list[Results] = []
    left = max_tokens
    for place, query in enumerate(queries):
        share = left // (len(queries) - place)
        (found,) = (
            await chats.workshop.index().search([msgspec.structs.replace(query, max_tokens=share)])
            if share
            else (Results(),)
        )
        left -= found.tokens
        results.append(found)
    return results


def _scope(whose: Owner, scope: Scope | None) -> Scope:
    chosen = scope or ("chat" if whose.chat is not None else "project" if whose.project else "all")
    if chosen == "chat" and whose.chat is None:
        raise invalid("scope", "a chat, named by `chatId` or `sessionId`, for scope chat")
    if chosen == "project" and whose.project is None:
        raise invalid("projectPath", "a project for scope project")
    return chosen


def _needed(chats: Chats) -> None:
    if not chats.workshop.settings(None).index.enabled:
        raise Refused(
            "precondition_failed",
            "The index is switched off",
            params={"setting": "index.enabled"},
            hint="Set index.enabled to true",
        )


def _unknown(id: str) -> Refused:
    return Refused("not_found", f"Nothing is kept as {id[:80]!r}", params={"id": id[:80]})


def _session_id(chats: Chats, address: Address) -> str:
    key = chats.key(address)
    return key if isinstance(key, str) else key.session_id
