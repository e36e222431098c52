"""The index as one chat uses it: stores the output of its tools and searches it for the model.

A chat sees its own sources and those of its project. This module does not know how the index stores or ranks them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from ...model.content import Item
from ...model.failures import Failure, StorageFailed
from ...model.figures import CallSavings
from ...model.index import NewSource, Query, Results, SearchScope, Source, SourceKind, SourceText
from ...system.lazy import lazy_module
from ...tools.base import ToolError
from ...tools.toolbox import StoredOutput
from ...workspace.paths import Workspace
from .environment import ToolEnvironment

if TYPE_CHECKING:
    from ... import index as text_index
    from ...policy.read_rules import ReadRules
else:
    text_index = lazy_module("sidecar.index")

logger = logging.getLogger(__name__)

MIN_INDEXED_BYTES = 512
"""In bytes. A shorter output costs fewer tokens than a reference to it."""

PREVIEW_TOKENS = 300
"""The size of a preview of an indexed output: enough to see how the command went and what the output contains."""

LOOKUP_TOOLS = ("search_context", "get_output", "index_path")
"""Tools whose output is in the index already."""

MAX_OUTPUT_BYTES = 2**31 - 1
"""In bytes: a whole output. Each tool limits how much it stores."""

THREAD_CHARACTERS = 64 * 1024
"""In characters. The preview of a longer output is made in a thread, so that other chats are not blocked."""

MAX_REMEMBERED = 500
"""How many outputs of a chat are recognised when they repeat, so that a file read ten times is one search result."""


class OutputIndex:
    """The operations on the index that one tool call may use."""

    def __init__(self, environment: ToolEnvironment, item: Item, workspace: Workspace | None) -> None:
        self._environment = environment
        self._item = item
        self._workspace = workspace

    async def keep(self, text: str, label: str, kind: SourceKind, *, path: str | None = None) -> Source:
        return await _index_once(
            self._environment, _new_source(self._environment, self._item, text, label, kind, path)
        )

    def hits_by_default(self) -> int:
        return self._environment.settings.values.index.retrieval_limit

    async def search(
        self,
        queries: Sequence[str],
        *,
        scope: SearchScope = "chat",
        source: str | None = None,
        kind: SourceKind | None = None,
        limit: int = 5,
        max_tokens: int = 1200,
    ) -> list[Results]:
        chat = self._environment.chat
        if scope == "project" and chat.project_path is None:
            scope = "chat"
        asked = [
            Query(
                text=query,
                scope=scope,
                chat=chat.id,
                project=chat.project_path,
                source=source,
                kind=kind,
                limit=limit,
                max_tokens=max(1, max_tokens // len(queries)),
            )
            for query in queries
        ]
        index = self._environment.services.index()
        rules = await self._environment.read_rules()
        found = await readable_results(rules, await index.search(asked))
        # Searched again: the hits of the first search point into text that is not in the file any more.
        if await self._changed(found):
            found = await readable_results(rules, await index.search(asked))
        return found

    async def _changed(self, found: Sequence[Results]) -> bool:
        """Index found files again whose bytes have changed; return whether there were any."""
        if self._workspace is None:
            return False
        project = self._environment.chat.project_path
        sources = {hit.source.id: hit.source for results in found for hit in results.hits}
        files = [source for source in sources.values() if source.path and source.kind == "file"]
        changed = False
        for source in [file for file in files if file.project == project and file.chat is None]:
            assert source.path
            with suppress(Failure):  # a file that is gone or unreadable stays as it was indexed
                now, _ = await self._environment.services.index().add_path(
                    self._workspace, source.path, chat=None, project=project
                )
                changed = changed or [each.id for each in now] != [source.id]
        return changed

    async def read(self, id: str, lines: tuple[int, int] | None = None) -> SourceText:
        chat = self._environment.chat
        found = await self._environment.services.index().get(
            id, lines, chat=chat.id, project=chat.project_path
        )
        # The journal keeps outputs for good; the index removes the least used ones.
        found = found or await _read_from_journal(self._environment, id, lines)
        if found is None:
            raise ToolError(
                f"Nothing is stored as {id[:80]!r}. Use an id out:… from a tool's output or from a search."
            )
        reason = await anyio.to_thread.run_sync(
            withheld_reason, await self._environment.read_rules(), found.source
        )
        if reason:
            raise ToolError(f"{found.source.label} is not shown: {reason}.")
        return found

    def count(self, text: str) -> int:
        return self._environment.services.index().count(text)

    async def preview(self, text: str, source: Source, intent: str | None = None) -> str:
        return await _preview(self._environment, text, source, intent)

    async def add_path(self, path: str) -> tuple[list[Source], list[tuple[str, str]]]:
        if self._workspace is None:
            raise ToolError("This chat has no project, so there are no files.")
        chat = self._environment.chat
        return await self._environment.services.index().add_path(
            self._workspace,
            path,
            chat=None,
            project=chat.project_path,
            left_out=(await self._environment.read_rules(path)).skip_reason,
        )


async def readable_results(rules: ReadRules, found: Sequence[Results]) -> list[Results]:
    """Drop hits in files that may not be read now; a rule may be newer than the indexed text."""

    def sort_out() -> list[Results]:
        return [_without_unreadable(rules, results) for results in found]

    return await anyio.to_thread.run_sync(sort_out)


def withheld_reason(rules: ReadRules, source: Source) -> str | None:
    """Why the indexed text of a file is not shown; None when it is."""
    return rules.skip_reason(source.path) if source.path and source.kind == "file" else None


def _without_unreadable(rules: ReadRules, results: Results) -> Results:
    reasons = {hit.source.id: withheld_reason(rules, hit.source) for hit in results.hits}
    hits = tuple(hit for hit in results.hits if not reasons[hit.source.id])
    if len(hits) == len(results.hits):
        return results
    left = {hit.source.path or "": reasons[hit.source.id] or "" for hit in results.hits if hit not in hits}
    tokens = sum(hit.tokens for hit in hits)
    return Results(hits, tokens, results.corrected, tuple(left.items()))


async def index_outputs(environment: ToolEnvironment, items: Sequence[Item]) -> None:
    """Add outputs of calls from a fork or an import to this chat's index."""
    if not environment.settings.values.index.enabled:
        return
    for item in [item for item in items if item.output_source]:
        await _index_output(environment, item, await _full_output(environment, item))


async def store_output(
    environment: ToolEnvironment, item: Item, text: str, *, shown: bool, cut: bool, source: str | None = None
) -> StoredOutput:
    """Store what a tool printed: as a blob when not all of it is sent, and in the index when it is worth searching.

    `shown`: the model asked to see the output. `cut`: it is too long even so. `source`: the tool has indexed it.
    """
    settings = environment.settings.values.index
    size = len(text.encode(errors="replace"))
    indexed = (
        settings.enabled and source is None and size >= MIN_INDEXED_BYTES and item.name not in LOOKUP_TOOLS
    )
    by_preview = indexed and not shown and size > settings.inline_max
    ref = None
    kept_source: Source | None = None

    async def keep_whole() -> None:
        nonlocal ref
        (kept,) = await environment.services.store.blobs.put_all([text.encode()], "text/plain; charset=utf-8")
        ref = kept.id

    async def keep_findable() -> None:
        nonlocal kept_source
        kept_source = await _index_output(environment, item, text)

    async with anyio.create_task_group() as tasks:  # concurrent, so that both share a commit
        if by_preview or cut:
            tasks.start_soon(keep_whole)
        if indexed:
            tasks.start_soon(keep_findable)
    if kept_source is None or not by_preview:
        return StoredOutput(ref, kept_source.id if kept_source else source)
    preview = await _preview(environment, text, kept_source)
    measured = CallSavings(captured=kept_source.tokens, sent=environment.services.index().count(preview))
    return StoredOutput(ref, kept_source.id, preview, measured)


async def _read_from_journal(
    environment: ToolEnvironment, id: str, lines: tuple[int, int] | None
) -> SourceText | None:
    """Read an output that is not in the index: it was removed there, or came with a fork or an import."""
    item = await environment.services.store.turns.item_of_source(environment.chat.id, id)
    if item is None:
        return None
    text = await _full_output(environment, item)
    split = text.split("\n")
    first, last = (max(1, lines[0]), min(len(split), lines[1])) if lines else (1, len(split))
    source = Source(
        id=id,
        label=item.title or item.name or "tool",
        kind="output",
        chat=environment.chat.id,
        session_id=environment.chat.key.session_id,
        project=environment.chat.project_path,
        tool=item.name,
        path=None,
        ts=item.ended_at or item.started_at,
        bytes=len(text.encode(errors="replace")),
        lines=len(split),
        tokens=await environment.services.index().tokens(text),
        chunks=0,
    )
    return SourceText(source, "\n".join(split[first - 1 : last]), (first, last))


async def _full_output(environment: ToolEnvironment, item: Item) -> str:
    if item.output_ref is None:
        return item.output_text
    _, data = await environment.services.store.blobs.read(item.output_ref, 0, MAX_OUTPUT_BYTES)
    return data.decode(errors="replace")


async def _index_output(environment: ToolEnvironment, item: Item, text: str) -> Source | None:
    """Index an output. One that cannot be indexed is not found later; the call itself does not fail."""
    try:
        return await _index_once(
            environment,
            _new_source(environment, item, text, item.title or item.name or "tool", "output", None),
        )
    except StorageFailed:
        raise
    except Failure as failure:
        logger.warning("an output is not indexed", extra={"error": failure.message})
        return None


async def _index_once(environment: ToolEnvironment, new: NewSource) -> Source:
    """Index a text; the same text with the same label is one source."""
    # A hash, not the text: the outputs of a long chat would stay in memory.
    seen = hashlib.sha256(f"{new.label}\0{new.text}".encode(errors="replace")).digest()
    known = environment.indexed_sources.get(seen)
    if known:
        return known
    source = await environment.services.index().keep(new)
    environment.indexed_sources[seen] = source
    while len(environment.indexed_sources) > MAX_REMEMBERED:
        del environment.indexed_sources[next(iter(environment.indexed_sources))]
    return source


async def _preview(environment: ToolEnvironment, text: str, source: Source, intent: str | None = None) -> str:
    count = environment.services.index().count

    def make() -> str:
        return text_index.preview(
            text,
            label=source.label,
            id=source.id,
            intent=intent,
            max_tokens=PREVIEW_TOKENS,
            count=count,
            tail_lines=environment.settings.values.index.preview_tail_lines,
        )

    return await anyio.to_thread.run_sync(make) if len(text) > THREAD_CHARACTERS else make()


def _new_source(
    environment: ToolEnvironment, item: Item, text: str, label: str, kind: SourceKind, path: str | None
) -> NewSource:
    chat = environment.chat
    return NewSource(
        text=text, label=label, kind=kind, chat=chat.id, project=chat.project_path, tool=item.name, path=path
    )
