"""Handlers of `index/*`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sidecar_protocol import messages as m
from sidecar_protocol.peer import Call

from ...chat.actions import index_actions
from ...chat.sessions.chats import Chats
from ...model.index import IndexHit, PlacedChunk, Results, Source
from ...rpc.dispatch import Handler, run_to_end
from ...rpc.wire import MessageWriter
from .progress import Progress
from .wire import address_of


class IndexHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]], wire: MessageWriter) -> None:
        self._chats = ready
        self._wire = wire

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "index/add": self._add,
            "index/search": self._search,
            "index/get": self._get,
            "index/chunks": self._chunks,
            "index/list": self._list,
            "index/remove": self._remove,
        }

    async def _add(self, call: Call, params: m.IndexAddParams) -> m.IndexAddResult:
        added = await index_actions.add(
            await self._chats(),
            address_of(params),
            params.content,
            params.path,
            params.source,
            params.kind,
            Progress(self._wire, str(call.id), "index").report,
        )
        return m.IndexAddResult(
            source_id=added.sources[0].id if added.sources else None,
            chunks=sum(source.chunks for source in added.sources),
            tokens=sum(source.tokens for source in added.sources),
            sources=[_source(source) for source in added.sources],
            skipped=[m.IndexSkipped(path=path, reason=reason) for path, reason in added.skipped],
        )

    async def _search(self, call: Call, params: m.IndexSearchParams) -> m.IndexSearchResult:
        asked = index_actions.IndexQuery(
            params.queries,
            params.scope,
            params.source,
            params.tool_name,
            params.kind,
            params.sort,
            params.limit,
            params.max_tokens,
        )
        found = await index_actions.search(await self._chats(), address_of(params), asked)
        return m.IndexSearchResult(results=[_results(one) for one in found])

    async def _get(self, call: Call, params: m.IndexGetParams) -> m.IndexGetResult:
        lines = (params.lines.start, params.lines.end) if params.lines else None
        whole = await index_actions.get(await self._chats(), address_of(params), params.id, lines)
        return m.IndexGetResult(source=_source(whole.source), text=whole.text, lines=_range(whole.lines))

    async def _chunks(self, call: Call, params: m.IndexChunksParams) -> m.IndexChunksResult:
        page = await index_actions.list_chunks(
            await self._chats(),
            address_of(params),
            params.id,
            params.cursor,
            params.limit,
            with_text=params.include_text,
        )
        return m.IndexChunksResult(
            source=_source(page.source), items=[_chunk(one) for one in page.chunks], next_cursor=page.cursor
        )

    async def _list(self, call: Call, params: m.IndexListParams) -> m.IndexListResult:
        page = await index_actions.list_sources(
            await self._chats(), address_of(params), params.scope, params.kind, params.cursor, params.limit
        )
        return m.IndexListResult(items=[_source(one) for one in page.sources], next_cursor=page.cursor)

    async def _remove(self, call: Call, params: m.IndexRemoveParams) -> m.IndexRemoveResult:
        removed = await run_to_end(
            index_actions.remove(await self._chats(), address_of(params), params.id, params.source)
        )
        return m.IndexRemoveResult(removed=removed.sources)


def _results(results: Results) -> m.IndexResults:
    return m.IndexResults(
        hits=[_hit(hit) for hit in results.hits], tokens=results.tokens, corrected=results.corrected
    )


def _chunk(one: PlacedChunk) -> m.IndexChunk:
    chunk = one.chunk
    return m.IndexChunk(
        id=one.id,
        title=chunk.title,
        lines=_range(chunk.lines),
        start=chunk.start,
        end=chunk.end,
        text=one.text,
    )


def _hit(hit: IndexHit) -> m.IndexHit:
    source = hit.source
    return m.IndexHit(
        id=hit.id,
        source_id=source.id,
        source=source.label,
        kind=source.kind,
        title=hit.title,
        path=source.path,
        lines=_range(hit.lines),
        tool_name=source.tool,
        text=hit.text,
        score=hit.score,
        ts=source.ts,
        session_id=source.session_id,
    )


def _source(source: Source) -> m.IndexSource:
    shared: dict[str, Any] = {
        name: getattr(source, name)
        for name in (
            "id",
            "kind",
            "session_id",
            "path",
            "ts",
            "bytes",
            "lines",
            "tokens",
            "chunks",
            "truncated",
        )
    }
    return m.IndexSource(**shared, source=source.label, project_path=source.project, tool_name=source.tool)


def _range(lines: tuple[int, int]) -> m.SourceLines:
    return m.SourceLines(start=lines[0], end=lines[1])
