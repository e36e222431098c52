"""The index for apps and people: add, search, read, list and remove sources of a chat, a project or all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ...model.failures import Refused, invalid_param
from ...model.index import (
    ChunkPage,
    NewSource,
    Query,
    RemovalCounts,
    Results,
    SearchScope,
    Source,
    SourceKind,
    SourcePage,
    SourceText,
)
from ...policy.read_rules import ReadRules
from ...workspace.names import RealNames
from ...workspace.paths import Workspace
from ..journal.identity import ChatAddress, chat_deleted, chat_not_found
from ..sessions.chats import Chats
from ..tool_calls.permissions import rule_of

MAX_QUERIES = 32
MAX_HITS = 100
MAX_TOKENS = 100_000
MAX_LABEL = 1000
MAX_REMOVED = 1000
"""Limits of one call: more is a mistake, and would delay other calls."""


class SourceOwner(msgspec.Struct, frozen=True):
    """Whose sources a call is about: those of a chat, of a project, or all."""

    chat: int | None = None
    project: str | None = None


class IndexQuery(msgspec.Struct, frozen=True):
    """A search as an app requests it."""

    queries: Sequence[str]
    scope: SearchScope | None
    source: str | None
    tool: str | None
    kind: SourceKind | None
    sort: str
    limit: int | None
    """Of each query; None for `index.retrieval_limit`."""
    max_tokens: int


class AddedSources(msgspec.Struct, frozen=True):
    sources: list[Source]
    skipped: list[tuple[str, str]] = []


async def source_owner(chats: Chats, address: ChatAddress) -> SourceOwner:
    """The chat that an address names, or else its project. A project alone does not mean its chat here."""
    if address.chat_id is None and address.session_id is None and not chats.has_default(address):
        return SourceOwner(project=chats.project(address))
    row = await chats.find(address)
    if row is None or row.deleted:
        session_id = row.key.session_id if row else _session_id(chats, address)
        raise chat_deleted(session_id) if row else chat_not_found(session_id)
    return SourceOwner(row.id, row.project_path)


async def add(
    chats: Chats,
    address: ChatAddress,
    content: str | None,
    path: str | None,
    label: str | None,
    kind: SourceKind | None,
    report: Callable[[int, int], None] | None = None,
) -> AddedSources:
    """Add a text, or the files of a path; they can be found when this returns. `report` gets the number of files
    that were read, and of all.
    """
    _require_index(chats)
    if (content is None) == (path is None):
        raise invalid_param("content", "exactly one of `content` and `path`")
    whose = await source_owner(chats, address)
    if content is not None:
        if not label or len(label) > MAX_LABEL:
            raise invalid_param("source", f"a name of 1 to {MAX_LABEL} characters for the text")
        new = NewSource(
            text=content, label=label, kind=kind or "text", chat=whose.chat, project=whose.project
        )
        return AddedSources([await chats.services.index().add(new)])
    assert path is not None
    if kind not in (None, "file"):
        raise invalid_param("kind", "`file`, or nothing, beside a `path`")
    if whose.project is None:
        raise invalid_param("projectPath", "the project that `path` lies in")
    workspace = Workspace(whose.project, (), chats.store.own_files)
    rows = await chats.store.permission_rules.of(whose.chat, whose.project)
    rules = [*chats.services.settings(whose.project).rules, *map(rule_of, rows)]
    # The user names the path, so secret files in it may be added; what a rule denies stays out of the index.
    reading = ReadRules(rules, "ask", RealNames(workspace), path)
    sources, skipped = await chats.services.index().add_path(
        workspace, path, chat=None, project=whose.project, left_out=reading.skip_reason, progress=report
    )
    return AddedSources(sources, skipped)


async def search(chats: Chats, address: ChatAddress, query: IndexQuery) -> list[Results]:
    """One result per query, together within `max_tokens`."""
    _require_index(chats)
    if not 1 <= len(query.queries) <= MAX_QUERIES:
        raise invalid_param("queries", f"1 to {MAX_QUERIES} texts")
    if query.limit is not None:
        _check_limit(query.limit)
    if not 1 <= query.max_tokens <= MAX_TOKENS:
        raise invalid_param("maxTokens", f"1 to {MAX_TOKENS}")
    whose = await source_owner(chats, address)
    scope = _checked_scope(whose, query.scope)
    limit = query.limit or chats.services.settings(whose.project).values.index.retrieval_limit
    queries = [
        Query(
            text=text,
            scope=scope,
            chat=whose.chat,
            project=whose.project,
            source=query.source,
            tool=query.tool,
            kind=query.kind,
            sort="recent" if query.sort == "recent" else "relevance",
            limit=limit,
            max_tokens=query.max_tokens,
        )
        for text in query.queries
    ]
    return await _search_all(chats, queries, query.max_tokens)


async def get(chats: Chats, address: ChatAddress, id: str, lines: tuple[int, int] | None) -> SourceText:
    _require_index(chats)
    if lines and not 1 <= lines[0] <= lines[1]:
        raise invalid_param("lines", "lines from 1, the end not before the start")
    whose = await source_owner(chats, address)
    found = await chats.services.index().get(id, lines, chat=whose.chat, project=whose.project)
    if found is None:
        raise _unknown_source(id)
    return found


async def list_chunks(
    chats: Chats, address: ChatAddress, id: str, cursor: str | None, limit: int, *, with_text: bool
) -> ChunkPage:
    """The chunks of a source, in the order of its text."""
    _require_index(chats)
    _check_limit(limit)
    whose = await source_owner(chats, address)
    page = await chats.services.index().chunks(
        id, chat=whose.chat, project=whose.project, cursor=cursor, limit=limit, with_text=with_text
    )
    if page is None:
        raise _unknown_source(id)
    return page


async def list_sources(
    chats: Chats,
    address: ChatAddress,
    scope: SearchScope | None,
    kind: SourceKind | None,
    cursor: str | None,
    limit: int,
) -> SourcePage:
    _require_index(chats)
    _check_limit(limit)
    whose = await source_owner(chats, address)
    wanted = _checked_scope(whose, scope)
    return await chats.services.index().sources(
        chat=whose.chat if wanted == "chat" else None,
        project=whose.project if wanted != "all" else None,
        kind=kind,
        cursor=cursor,
        limit=limit,
    )


async def remove(chats: Chats, address: ChatAddress, id: str | None, label: str | None) -> RemovalCounts:
    _require_index(chats)
    if (id is None) == (label is None):
        raise invalid_param("id", "exactly one of `id` and `source`")
    whose = await source_owner(chats, address)
    index = chats.services.index()
    # What a chat may add it may remove: its own sources and those of its project, not those of other chats.
    page = await index.sources(chat=whose.chat, project=whose.project, source=id or label, limit=MAX_REMOVED)
    if id and not page.sources:
        raise _unknown_source(id)
    return await index.remove([source.id for source in page.sources])


async def _search_all(chats: Chats, queries: Sequence[Query], max_tokens: int) -> list[Results]:
    """Run the queries one after the other, so that each can use the tokens that the earlier ones left."""
    results: list[Results] = []
    left = max_tokens
    for place, query in enumerate(queries):
        share = left // (len(queries) - place)
        (found,) = (
            await chats.services.index().search([msgspec.structs.replace(query, max_tokens=share)])
            if share
            else (Results(),)
        )
        left -= found.tokens
        results.append(found)
    return results


def _checked_scope(whose: SourceOwner, scope: SearchScope | None) -> SearchScope:
    chosen = scope or ("chat" if whose.chat is not None else "project" if whose.project else "all")
    if chosen == "chat" and whose.chat is None:
        raise invalid_param("scope", "a chat, named by `chatId` or `sessionId`, for scope chat")
    if chosen == "project" and whose.project is None:
        raise invalid_param("projectPath", "a project for scope project")
    return chosen


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_HITS:
        raise invalid_param("limit", f"1 to {MAX_HITS}")


def _require_index(chats: Chats) -> None:
    if not chats.services.settings(None).values.index.enabled:
        raise Refused(
            "precondition_failed",
            "The index is switched off",
            params={"setting": "index.enabled"},
            hint="Set index.enabled to true",
        )


def _unknown_source(id: str) -> Refused:
    return Refused("not_found", f"Nothing is stored as {id[:80]!r}", params={"id": id[:80]})


def _session_id(chats: Chats, address: ChatAddress) -> str:
    key = chats.key(address)
    return key if isinstance(key, str) else key.session_id
