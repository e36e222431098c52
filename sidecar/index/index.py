"""Stores texts and finds them by their words. A text is durable at once; a background task makes it
searchable soon after.

Knows no tool, and a chat only by its id: callers say who owns a text, and a search never leaves its scope.
Tokens are counted with o200k, whatever the model.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from ..context.tokens.counting import TokenCounter
from ..context.tokens.encodings import O200K
from ..context.tokens.families import TokenizerFamily
from ..model.failures import Failure, invalid_param
from ..model.index import (
    ChunkPage,
    NewSource,
    PlacedChunk,
    Query,
    RemovalCounts,
    Results,
    Source,
    SourceKind,
    SourcePage,
    SourceText,
)
from ..settings.values import IndexSettings
from ..store.engine.slices import PAUSE_S
from ..store.index import IndexStore
from ..store.search.index_rows import IndexSlice, PendingSource
from ..store.search.index_search import SearchBounds
from ..system import clock
from ..workspace.paths import ReadFilter, Workspace
from ..workspace.text import NotText, decode_text
from .dividing import SLICE_CHARACTERS, count_tokens, prepare_text, slices
from .folder import MAX_FILE, find_files
from .searching import Searcher, bounds_of

logger = logging.getLogger(__name__)

PLAIN_FAMILY = TokenizerFamily("o200k", O200K, exact=True)

WAIT_S = 2.0
"""How long a search waits for texts that were just stored."""

SWEEP_AFTER_BYTES = 64 * 1024 * 1024
"""After so many bytes were stored, the size limit is checked."""

USE_NOTED_EVERY_S = 3600.0
MAX_USED = 10_000
"""Uses of a text are written once an hour: the least recently used one need not be known more exactly."""

MAX_PAGE = 500

ReportFiles = Callable[[int, int], None]
"""Called with the number of finished files and of all files."""


class Index:
    """The index of one process. `settings` is called at every use, because settings may change while the
    process runs."""

    def __init__(
        self,
        store: IndexStore,
        tasks: TaskGroup,
        settings: Callable[[], IndexSettings] = IndexSettings.of,
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._settings = settings
        self._counter = TokenCounter()
        self._searcher = Searcher(store, self.count, self._cut)
        self._running = self._woken = False
        self._advance = anyio.Event()
        self._failure: Failure | None = None
        self._kept = 0
        self._used: dict[str, float] = {}

    def start(self) -> None:
        """Continue the work of an earlier process: texts to index, texts to remove, deleted words to scrub."""
        self._wake()
        self._tasks.start_soon(self._maintain)

    def count(self, text: str) -> int:
        """Count the tokens of a text, in the unit of `max_tokens`."""
        return self._counter.count(text, PLAIN_FAMILY)

    async def tokens(self, text: str) -> int:
        """Count the tokens of a text as those of a source: what a long one has is computed from samples."""
        return await anyio.to_thread.run_sync(count_tokens, text, self.count)

    async def add(self, new: NewSource) -> Source:
        """Store a text; it is durable and searchable when this returns."""
        source = await self.keep(new)
        await self._until(lambda: self._store.is_pending(source.id))
        found = await self._store.row(source.id)
        return found[1] if found else source

    async def keep(self, new: NewSource) -> Source:
        """Store a text; it is durable when this returns, and searchable soon."""
        limit = self._settings().max_output_size
        figures, parts = await anyio.to_thread.run_sync(prepare_text, new.text, limit, self.count)
        source = await self._store.put(new, figures, parts)
        if new.path is not None:
            self._tasks.start_soon(self._remove_replaced)
        self._kept += source.bytes
        self._wake()
        if self._kept > SWEEP_AFTER_BYTES:
            self._kept = 0
            self._tasks.start_soon(self._maintain)
        return source

    async def settle(self) -> None:
        """Wait until every stored text is searchable. Raises if a text cannot be indexed now."""
        self._wake()
        await self._until(lambda: self._store.is_waiting(None, None))

    async def search(self, queries: Sequence[Query]) -> list[Results]:
        """Return one result per query. A failed search returns nothing and is logged."""
        return [await self._search(query) for query in queries]

    async def get(
        self,
        id: str,
        lines: tuple[int, int] | None = None,
        *,
        chat: int | None = None,
        project: str | None = None,
    ) -> SourceText | None:
        """Return a source or a hit by its id, whole or some lines of the source (from 1, inclusive). None
        when it does not exist, or belongs neither to the given chat nor to the given project."""
        key, _, start = id.partition(".")
        found = await self._store.row(key)
        if found is None or not _within(found[1], chat, project):
            return None
        row, source = found
        self._note_use([key])
        if start and lines is None:
            chunk = await self._store.chunk_at(row, int(start)) if _is_place(start) else None
            if chunk is None:
                return None
            return SourceText(source, await self._store.read_range(row, chunk.start, chunk.end), chunk.lines)
        text = await self._store.text(row)
        if text is None or lines is None:
            return None if text is None else SourceText(source, text, (1, source.lines))
        first, last = max(1, min(lines[0], source.lines)), max(1, min(lines[1], source.lines))
        shown = await anyio.to_thread.run_sync(lambda: "\n".join(text.split("\n")[first - 1 : last]))
        return SourceText(source, shown, (first, max(first, last)))

    async def sources(
        self,
        *,
        chat: int | None = None,
        project: str | None = None,
        source: str | None = None,
        tool: str | None = None,
        kind: SourceKind | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> SourcePage:
        """List what is stored, newest first, of the owners that `SearchBounds` describes. `source` is an id
        or a whole label."""
        if cursor is not None and not _is_place(cursor):
            raise invalid_param("cursor", "a `nextCursor` of an earlier answer")
        limit = max(1, min(limit, MAX_PAGE))
        bounds = SearchBounds(chat=chat, project=project, source=source, tool=tool, kind=kind)
        rows = await self._store.page(bounds, int(cursor) if cursor else None, limit + 1)
        more = str(rows[limit - 1][0]) if len(rows) > limit else None
        return SourcePage(tuple(found for _, found in rows[:limit]), more)

    async def chunks(
        self,
        id: str,
        *,
        chat: int | None = None,
        project: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        with_text: bool = False,
    ) -> ChunkPage | None:
        """List the chunks of a source in the order of its text; None where `get` returns None."""
        if cursor is not None and not _is_place(cursor):
            raise invalid_param("cursor", "a `nextCursor` of an earlier answer")
        found = await self._store.row(id)
        if found is None or not _within(found[1], chat, project):
            return None
        row, source = found
        with anyio.move_on_after(WAIT_S):
            await self._until(lambda: self._store.is_pending(source.id))
        limit = max(1, min(limit, MAX_PAGE))
        chunks, texts = await self._store.chunks(row, int(cursor or 0), limit + 1, with_text=with_text)
        placed = [PlacedChunk(f"{id}.{chunk.start}", chunk) for chunk in chunks[:limit]]
        if with_text:
            placed = [
                msgspec.structs.replace(one, text=text) for one, text in zip(placed, texts, strict=False)
            ]
        more = str(chunks[limit].start) if len(chunks) > limit else None
        return ChunkPage(source, tuple(placed), more)

    async def remove(self, ids: Sequence[str]) -> RemovalCounts:
        """Remove sources for good; unknown ids are ignored."""
        return await self._store.remove(ids)

    async def remove_chat(self, chat: int) -> RemovalCounts:
        """Remove everything of a chat. Deleting a chat does this too."""
        return await self._store.remove_chat(chat)

    async def remove_project(self, project: str) -> RemovalCounts:
        """Remove everything of a project, including its chats."""
        return await self._store.remove_project(project)

    async def remove_all(self) -> RemovalCounts:
        return await self._store.remove_all()

    async def add_path(
        self,
        workspace: Workspace,
        path: str,
        *,
        chat: int | None,
        project: str | None,
        progress: ReportFiles | None = None,
        left_out: ReadFilter | None = None,
    ) -> tuple[list[Source], list[tuple[str, str]]]:
        """Index a file, or the files of a folder that .gitignore does not exclude; return the stored ones,
        and the others with the reason. A file with unchanged bytes stays as it is; a changed one is replaced."""
        paths, skipped = await anyio.to_thread.run_sync(find_files, workspace, path, left_out)
        ids: list[str] = []
        for at, one in enumerate(paths):
            try:
                ids.append(await self._keep_file(workspace, one, chat, project))
            except Failure as failure:
                skipped.append((one, failure.message))
            except NotText as error:
                skipped.append((one, str(error)))
            if progress:
                progress(at + 1, len(paths))
        await self._until(lambda: self._store.is_waiting(chat, project))
        rows = [await self._store.row(id) for id in ids]
        return [row[1] for row in rows if row], skipped

    async def sweep(self) -> RemovalCounts:
        """Remove sources that were unused for longer than the retention, then the least recently used ones
        above the size limit."""
        settings = self._settings()
        days = settings.retention_days * clock.DAY_MS
        before = clock.now() - days if days else 0
        removed = RemovalCounts()
        for key in await self._store.expired_or_excess(before, settings.max_bytes):
            removed = removed.plus(await self._store.expire([key]))
        await self._store.remove_marked()
        return removed

    async def _search(self, query: Query) -> Results:
        bounds = bounds_of(query)
        if bounds is None:
            return Results()
        try:
            with anyio.move_on_after(WAIT_S):
                await self._until(lambda: self._store.is_waiting(bounds.chat, bounds.project))
            results = await self._searcher.search(query, bounds)
        except Exception as error:  # whatever a query or a damaged index does, the chat continues
            logger.error("a search failed", extra={"error": str(error)}, exc_info=True)
            return Results()
        self._note_use([hit.source.id for hit in results.hits])
        return results

    async def _keep_file(self, workspace: Workspace, path: str, chat: int | None, project: str | None) -> str:
        data = await anyio.to_thread.run_sync(workspace.read_bytes, path, MAX_FILE)
        digest = hashlib.sha256(data).hexdigest()
        known = await self._store.by_path(path, chat, project)
        if known and known[1] == digest:
            return known[0].id
        text = decode_text(data).text
        new = NewSource(text, label=path, kind="file", chat=chat, project=project, path=path, hash=digest)
        return (await self.keep(new)).id

    def _wake(self) -> None:
        self._woken = True
        if not self._running:
            self._running = True
            self._tasks.start_soon(self._index_all)

    async def _until(self, waiting: Callable[[], Awaitable[bool]]) -> None:
        """Wait while texts are being indexed and `waiting` returns true."""
        while self._running:
            # Taken before the question: an advance between the answer and the wait sets this event.
            advance = self._advance
            if not await waiting():
                return
            await advance.wait()
        if self._failure and await waiting():
            raise self._failure

    def _notify_advance(self) -> None:
        self._advance.set()
        self._advance = anyio.Event()

    async def _index_all(self) -> None:
        self._failure = None
        try:
            # Cleared before the list is read: a text that is stored after that sets it again.
            while self._woken:
                self._woken = False
                for pending in await self._store.pending():
                    await self._index(pending)
        except Failure as failure:
            # A full or busy disk: the texts are stored, and the next stored text or the next start tries
            # again.
            self._failure = failure
            logger.warning("texts wait to be indexed", extra={"error": failure.message})
        finally:
            self._running = False
            self._notify_advance()

    async def _index(self, pending: PendingSource) -> None:
        text = await self._store.text(pending.id)
        if text is None:
            return
        ahead = _SlicePrefetch(slices(text, pending, self._settings().chunk_bytes, self.count))
        done = pending.done
        slice = await ahead.next()
        while slice is not None:
            # False: another process indexes the same text and is further.
            if not await ahead.beside(partial(self._store.enter, pending.id, done, slice)):
                return
            done = slice.until
            self._notify_advance()
            if not slice.last:
                if self._woken:
                    # Otherwise a search would wait for minutes for the output of the last command.
                    await self._index_small(pending)
                await anyio.sleep(PAUSE_S)  # other processes write in this gap
            slice = await ahead.next()
        if ahead.failed:
            await self._store.give_up(pending.id)

    async def _index_small(self, large: PendingSource) -> None:
        """Index small texts that arrive while a large text is being indexed, without waiting for its end."""
        self._woken = False
        for pending in await self._store.pending():
            if pending.id > large.id and pending.size <= SLICE_CHARACTERS:
                await self._index(pending)
            elif pending.id > large.id:
                self._woken = True

    async def _maintain(self) -> None:
        try:
            removed = await self.sweep()
            await self._store.scrub(None)
        except Failure as failure:
            logger.warning(
                "expired texts could not be removed from the index", extra={"error": failure.message}
            )
        else:
            if removed.sources:
                logger.info("old texts were removed", extra={"sources": removed.sources})

    async def _remove_replaced(self) -> None:
        try:
            await self._store.remove_marked()
        except Failure as failure:  # the next start removes it
            logger.info("a replaced text could not be removed", extra={"error": failure.message})

    def _note_use(self, keys: Sequence[str]) -> None:
        now = time.monotonic()
        due = [
            key
            for key in dict.fromkeys(keys)
            if now - self._used.get(key, -USE_NOTED_EVERY_S) >= USE_NOTED_EVERY_S
        ]
        if not due:
            return
        # Forgetting all of them costs one more write per text.
        if len(self._used) > MAX_USED:
            self._used.clear()
        self._used.update(dict.fromkeys(due, now))
        self._tasks.start_soon(self._touch, due)

    async def _touch(self, keys: Sequence[str]) -> None:
        try:
            await self._store.touch(keys, clock.now())
        except Failure as failure:
            logger.info("the use of a text could not be recorded", extra={"error": failure.message})

    def _cut(self, text: str, max_tokens: int) -> str:
        return self._counter.cut(text, max_tokens, PLAIN_FAMILY)


class _SlicePrefetch:
    """The slices of a text; the next one is computed in a thread while another is written."""

    def __init__(self, left: Iterator[IndexSlice]) -> None:
        self._left = left
        self._made: list[IndexSlice | None] = []
        self.failed = False
        """Whether the text cannot be divided. It stays stored, and can be read by its id."""

    async def next(self) -> IndexSlice | None:
        if not self._made:
            await self._make()
        return self._made.pop(0)

    async def beside(self, write: Callable[[], Awaitable[bool]]) -> bool:
        """Run `write`, and compute the next slice meanwhile."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._make)
            outcome = await _outcome(write)
        if isinstance(outcome, Failure):
            raise outcome
        return outcome

    async def _make(self) -> None:
        try:
            self._made.append(await anyio.to_thread.run_sync(next, self._left, None))
        except Exception as error:  # whatever a text contains, the texts after it must still be indexed
            logger.error("a text cannot be indexed", extra={"error": str(error)}, exc_info=True)
            self.failed = True
            self._made.append(None)


async def _outcome(write: Callable[[], Awaitable[bool]]) -> bool | Failure:
    """Return the outcome as a value: a task group would wrap the failure."""
    try:
        return await write()
    except Failure as failure:
        return failure


def _within(source: Source, chat: int | None, project: str | None) -> bool:
    if chat is None and project is None:
        return True
    return (chat is not None and source.chat == chat) or (project is not None and source.project == project)


def _is_place(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18
