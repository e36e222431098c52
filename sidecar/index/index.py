"""Texts kept out of the window, and found again by their words. Durable at once; searchable soon, by one task beside.

Knows no tool, and a chat only by its number: whose a text is, callers say, and a search never leaves the scope it was
given. Tokens are counted by o200k, whatever the model.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from ..context.tokens.counting import Counter, is_loaded
from ..context.tokens.encodings import O200K
from ..context.tokens.families import Family
from ..model.failures import Failure, invalid
from ..model.index import (
    IndexSettings,
    NewSource,
    Query,
    Removed,
    Results,
    Source,
    SourceKind,
    SourcePage,
    Whole,
)
from ..store.index import IndexStore
from ..store.index_rows import Pending, Slice
from ..store.index_search import Bounds
from ..workspace.paths import Workspace
from ..workspace.text import NotText, decoded
from .dividing import SLICE, prepared, rough_count, slices
from .folder import MAX_FILE, found_files
from .searching import Searcher, bounds_of

logger = logging.getLogger(__name__)

PLAIN = Family("o200k", O200K, exact=True)

WAIT_S = 2.0
"""How long a search waits for what was kept just now."""

DAY_MS = 24 * 60 * 60 * 1000

LARGE = 64 * 1024 * 1024
"""Bytes that were kept since the last look at what is too much."""

USED_AGAIN_S = 3600.0
MAX_USED = 10_000
"""Uses of a text are written down once an hour: which was used least recently need not be known better."""

MAX_PAGE = 500

Progress = Callable[[int, int], None]
"""Is told how many files are done, of how many."""


class Index:
    """`settings` are asked at every use, since they may change while the process runs."""

    def __init__(
        self,
        store: IndexStore,
        tasks: TaskGroup,
        settings: Callable[[], IndexSettings] = IndexSettings,
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._settings = settings
        self._counter = Counter()
        self._searcher = Searcher(store, self.count, self._cut)
        self._running = self._woken = False
        self._advance = anyio.Event()
        self._failure: Failure | None = None
        self._kept = 0
        self._used: dict[str, float] = {}

    def start(self) -> None:
        """Take up what an earlier process left: texts to index, texts to remove, deleted words to scrub."""
        self._wake()
        self._tasks.start_soon(self._tidy)

    def count(self, text: str) -> int:
        """The tokens of a text, as `max_tokens` is meant."""
        return self._counter.count(text, PLAIN)

    async def add(self, new: NewSource) -> Source:
        """Keep a text; it is durable and searchable when this returns."""
        source = await self.keep(new)
        await self._until(lambda: self._store.is_pending(source.id))
        found = await self._store.row(source.id)
        return found[1] if found else source

    async def keep(self, new: NewSource) -> Source:
        """Keep a text; it is durable when this returns, and searchable soon."""
        limit = self._settings().max_output_size
        count = self.count if is_loaded(PLAIN) else rough_count
        figures, parts = await anyio.to_thread.run_sync(prepared, new.text, limit, count)
        source = await self._store.put(new, figures, parts)
        self._kept += source.bytes
        self._wake()
        if self._kept > LARGE:
            self._kept = 0
            self._tasks.start_soon(self._tidy)
        return source

    async def settle(self) -> None:
        """Wait until all that was kept can be searched. What cannot be indexed now raises."""
        self._wake()
        await self._until(lambda: self._store.is_waiting(None, None))

    async def search(self, queries: Sequence[Query]) -> list[Results]:
        """One answer a query. A search that fails answers nothing, and the log tells why."""
        return [await self._search(query) for query in queries]

    async def get(
        self,
        id: str,
        lines: tuple[int, int] | None = None,
        *,
        chat: int | None = None,
        project: str | None = None,
    ) -> Whole | None:
        """A source or a hit by its id, whole or some lines of the source (from 1, inclusive). None when there is
        none, or when it is neither of the chat nor of the project that the caller names."""
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
            return Whole(source, await self._store.stretch(row, chunk.start, chunk.end), chunk.lines)
        text = await self._store.text(row)
        if text is None or lines is None:
            return None if text is None else Whole(source, text, (1, source.lines))
        first, last = max(1, min(lines[0], source.lines)), max(1, min(lines[1], source.lines))
        shown = await anyio.to_thread.run_sync(lambda: "\n".join(text.split("\n")[first - 1 : last]))
        return Whole(source, shown, (first, max(first, last)))

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
        """What is kept, newest first: of a chat, of a project, or all. `source` is an id or a whole label."""
        if cursor is not None and not _is_place(cursor):
            raise invalid("cursor", "is none that was given")
        limit = max(1, min(limit, MAX_PAGE))
        bounds = Bounds(chat=chat, project=project, source=source, tool=tool, kind=kind)
        rows = await self._store.page(bounds, int(cursor) if cursor else None, limit + 1)
        more = str(rows[limit - 1][0]) if len(rows) > limit else None
        return SourcePage(tuple(found for _, found in rows[:limit]), more)

    async def remove(self, ids: Sequence[str]) -> Removed:
        """Remove sources for good; ids that are none are passed over."""
        return await self._store.remove(ids)

    async def remove_chat(self, chat: int) -> Removed:
        """Remove everything of a chat. Deleting a chat does so by itself, in its own transaction."""
        return await self._store.remove_chat(chat)

    async def remove_project(self, project: str) -> Removed:
        """Remove everything of a project, that of its chats too."""
        return await self._store.remove_project(project)

    async def remove_all(self) -> Removed:
        return await self._store.remove_all()

    async def add_path(
        self,
        workspace: Workspace,
        path: str,
        *,
        chat: int | None,
        project: str | None,
        progress: Progress | None = None,
    ) -> tuple[list[Source], list[tuple[str, str]]]:
        """Keep a file, or the files of a folder that .gitignore does not hide: those that are kept now, and those that
        are not with the reason. A file whose bytes have not changed stays as it is; a changed one is replaced."""
        paths, skipped = await anyio.to_thread.run_sync(found_files, workspace, path)
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

    async def sweep(self) -> Removed:
        """Remove what nobody has used for longer than is kept, and then the least recently used of what is too much."""
        settings = self._settings()
        days = settings.retention_days * DAY_MS
        before = time.time_ns() // 1_000_000 - days if days else 0
        removed = Removed()
        for key in await self._store.oldest(before, settings.max_bytes):
            removed = removed.plus(await self._store.expire([key]))
        return removed

    async def _search(self, query: Query) -> Results:
        bounds = bounds_of(query)
        if bounds is None:
            return Results()
        try:
            with anyio.move_on_after(WAIT_S):
                await self._until(lambda: self._store.is_waiting(bounds.chat, bounds.project))
            results = await self._searcher.search(query, bounds)
        except Exception as error:  # whatever a query or a damaged index does, the chat goes on
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
        text = decoded(data).text
        new = NewSource(text, label=path, kind="file", chat=chat, project=project, path=path, hash=digest)
        return (await self.keep(new)).id

    def _wake(self) -> None:
        self._woken = True
        if not self._running:
            self._running = True
            self._tasks.start_soon(self._index_all)

    async def _until(self, waiting: Callable[[], Awaitable[bool]]) -> None:
        """Wait while texts are being indexed, as long as something is still waited for."""
        while self._running:
            advance = self._advance
            if not await waiting():
                return
            await advance.wait()
        if self._failure and await waiting():
            raise self._failure

    def _advanced(self) -> None:
        self._advance.set()
        self._advance = anyio.Event()

    async def _index_all(self) -> None:
        self._failure = None
        try:
            while self._woken:
                self._woken = False
                for pending in await self._store.pending():
                    await self._index(pending)
        except Failure as failure:
            # A full or busy disk: the texts are kept, and the next one that is kept, or the next start, tries again.
            self._failure = failure
            logger.warning("texts wait to be indexed", extra={"error": failure.message})
        finally:
            self._running = False
            self._advanced()

    async def _index(self, pending: Pending) -> None:
        text = await self._store.text(pending.id)
        if text is None:
            return
        ahead = _Ahead(slices(text, pending, self._settings().chunk_bytes, self.count))
        done = pending.done
        slice = await ahead.next()
        while slice is not None:
            if not await ahead.beside(partial(self._store.enter, pending.id, done, slice)):
                return
            done = slice.until
            self._advanced()
            if self._woken and not slice.last:
                await self._index_small(pending)
            slice = await ahead.next()
        if ahead.failed:
            await self._store.give_up(pending.id)

    async def _index_small(self, large: Pending) -> None:
        """What came while a large text is being indexed does not wait for its end."""
        self._woken = False
        for pending in await self._store.pending():
            if pending.id > large.id and pending.size <= SLICE:
                await self._index(pending)
            elif pending.id > large.id:
                self._woken = True

    async def _tidy(self) -> None:
        try:
            removed = await self.sweep()
            await self._store.scrub(None)
        except Failure as failure:
            logger.warning("the index was not swept", extra={"error": failure.message})
        else:
            if removed.sources:
                logger.info("old texts were removed", extra={"sources": removed.sources})

    def _note_use(self, keys: Sequence[str]) -> None:
        now = time.monotonic()
        due = [key for key in dict.fromkeys(keys) if now - self._used.get(key, -USED_AGAIN_S) >= USED_AGAIN_S]
        if not due:
            return
        if len(self._used) > MAX_USED:
            self._used.clear()
        self._used.update(dict.fromkeys(due, now))
        self._tasks.start_soon(self._touch, due)

    async def _touch(self, keys: Sequence[str]) -> None:
        try:
            await self._store.touch(keys, time.time_ns() // 1_000_000)
        except Failure as failure:
            logger.info("a use was not noted", extra={"error": failure.message})

    def _cut(self, text: str, max_tokens: int) -> str:
        return self._counter.cut(text, max_tokens, PLAIN)


class _Ahead:
    """The slices of a text; the next one is made in a thread while another is written."""

    def __init__(self, left: Iterator[Slice]) -> None:
        self._left = left
        self._made: list[Slice | None] = []
        self.failed = False
        """Whether the text cannot be divided. It is kept all the same, and read by its id."""

    async def next(self) -> Slice | None:
        if not self._made:
            await self._make()
        return self._made.pop(0)

    async def beside(self, write: Callable[[], Awaitable[bool]]) -> bool:
        """Write, and have the next slice made meanwhile."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._make)
            outcome = await _outcome(write)
        if isinstance(outcome, Failure):
            raise outcome
        return outcome

    async def _make(self) -> None:
        try:
            self._made.append(await anyio.to_thread.run_sync(next, self._left, None))
        except Exception as error:  # whatever is in a text, those behind it are still to be indexed
            logger.error("a text cannot be indexed", extra={"error": str(error)}, exc_info=True)
            self.failed = True
            self._made.append(None)


async def _outcome(write: Callable[[], Awaitable[bool]]) -> bool | Failure:
    """What came of it, as a value: a task group would wrap the failure."""
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
