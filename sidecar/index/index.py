"""Texts kept out of the window, and found again by their words. Durable at once; searchable soon, by one task beside.

Knows no tool and no chat but by number: whose a text is, callers say, and a search never leaves the scope it was given.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable, Sequence
from functools import partial

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from ..context.tokens.counting import Counter
from ..context.tokens.encodings import O200K
from ..context.tokens.families import Family
from ..context.tokens.pieces import well_formed
from ..model.failures import Failure, Refused
from ..model.index import (
    Chunk,
    Found,
    Hit,
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
from ..store.index import Bounds, Figures, IndexStore, Pending, packed
from ..workspace.ignore import Ignore
from ..workspace.paths import Workspace
from ..workspace.text import NotText, decoded
from .chunks import chunks

logger = logging.getLogger(__name__)

SLICE = 256 * 1024
"""Code points that one commit indexes: some 20 ms, which is what a turn's own commit may have to wait."""

WAIT_S = 2.0
"""How long a search waits for what was kept just now."""

COUNTED = 64 * 1024
"""Code points that are counted; of a longer text the tokens are told by its beginning."""

MAX_FILE = 4 * 1024 * 1024
MAX_FILES = 2000
DAY_MS = 24 * 60 * 60 * 1000
CUT = "\n… cut here: the output was longer than `index.max_output_size` …\n"

PLAIN = Family("o200k", O200K, exact=True)
"""What `max_tokens` is counted by unless a model's own family is given."""

Progress = Callable[[int, int], None]
"""Files done, and files found so far."""


class Index:
    """`settings` are asked at every use, since they may change while the process runs."""

    def __init__(
        self,
        store: IndexStore,
        tasks: TaskGroup,
        settings: Callable[[], IndexSettings] = IndexSettings,
        family: Family = PLAIN,
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._settings = settings
        self._family = family
        self._counter = Counter()
        self._running = self._woken = False
        self._settled = anyio.Event()
        self._settled.set()

    def start(self) -> None:
        """Take up what an earlier process left unfinished."""
        self._wake()

    def count(self, text: str) -> int:
        return self._counter.count(text, self._family)

    async def add(self, new: NewSource) -> Source:
        """Keep a text; it is durable and searchable when this returns."""
        source = await self.keep(new)
        await self.settle()
        found = await self._store.row(source.id)
        return found[1] if found else source

    async def keep(self, new: NewSource) -> Source:
        """Keep a text; it is durable when this returns, and searchable soon."""
        prepared, figures, parts = await anyio.to_thread.run_sync(self._prepared, new)
        source = await self._store.put(prepared, figures, parts)
        self._wake()
        return source

    async def settle(self) -> None:
        """Wait until all that was kept so far can be searched."""
        await self._settled.wait()

    async def search(self, queries: Sequence[Query]) -> list[Results]:
        """One answer a query. A search that fails answers nothing, and the log tells why."""
        with anyio.move_on_after(WAIT_S):
            await self.settle()
        return [await self._search(query) for query in queries]

    async def get(
        self,
        id: str,
        lines: tuple[int, int] | None = None,
        *,
        chat: int | None = None,
        project: str | None = None,
    ) -> Whole | None:
        """A source or a hit by its id, whole or some lines (from 1, inclusive). None when there is none, or when it is
        neither of the chat nor of the project that the caller names."""
        key, _, ordinal = id.partition(".")
        found = await self._store.row(key)
        if found is None or not _within(found[1], chat, project):
            return None
        row, source = found
        text = await self._store.text(row)
        if text is None:
            return None
        await self._store.touch([key])
        if ordinal and lines is None:
            chunk = await self._store.chunk(row, int(ordinal)) if ordinal.isdecimal() else None
            return Whole(source, text[chunk.start : chunk.end], chunk.lines) if chunk else None
        if lines is None:
            return Whole(source, text, (1, source.lines))
        first, last = max(1, lines[0]), min(source.lines, lines[1])
        return Whole(source, "\n".join(text.split("\n")[first - 1 : last]), (first, max(first, last)))

    async def sources(
        self,
        *,
        chat: int | None = None,
        project: str | None = None,
        source: str | None = None,
        kind: SourceKind | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> SourcePage:
        """What is kept, newest first; of a chat, of a project, or all; `source` is an id or an exact label."""
        if cursor is not None and not cursor.isdecimal():
            raise Refused("invalid_params", "`cursor` is none that was given", params={"field": "cursor"})
        rows = await self._store.page(
            Bounds(chat, project, source, kind=kind), int(cursor) if cursor else None, limit + 1
        )
        more = str(rows[limit - 1][0]) if len(rows) > limit else None
        return SourcePage(tuple(source for _, source in rows[:limit]), more)

    async def remove(self, ids: Sequence[str]) -> Removed:
        return await self._store.remove(ids)

    async def remove_chat(self, chat: int) -> Removed:
        return await self._store.remove_chat(chat)

    async def remove_project(self, project: str) -> Removed:
        return await self._store.remove_project(project)

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
        are not with the reason. A file whose bytes have not changed is left as it is."""
        paths, skipped = await anyio.to_thread.run_sync(_paths, workspace, path)
        kept: list[Source] = []
        for at, one in enumerate(paths):
            try:
                kept.append(await self._keep_file(workspace, one, chat, project))
            except (Failure, NotText) as error:
                skipped.append((one, str(error)))
            if progress:
                progress(at + 1, len(paths))
        await self.settle()
        return kept, skipped

    async def sweep(self) -> Removed:
        """Remove what is older or more than the settings keep, least recently used first."""
        settings = self._settings()
        before = (
            time.time_ns() // 1_000_000 - settings.retention_days * DAY_MS if settings.retention_days else 0
        )
        return await self._store.expire(before, settings.max_bytes)

    def _prepared(self, new: NewSource) -> tuple[NewSource, Figures, list[bytes]]:
        text = well_formed(new.text)
        whole = len(text)
        text = _cut(text, self._settings().max_output_size)
        head = text[:COUNTED]
        tokens = self.count(head) * len(text) // max(1, len(head))
        figures = Figures(len(text.encode()), text.count("\n") + 1, tokens, len(text) != whole)
        return new, figures, packed(text)

    def _wake(self) -> None:
        self._woken = True
        if self._settled.is_set():
            self._settled = anyio.Event()
        if not self._running:
            self._running = True
            self._tasks.start_soon(self._index_all)

    async def _index_all(self) -> None:
        try:
            while self._woken:
                self._woken = False
                for pending in await self._store.pending():
                    await self._index(pending)
        except Failure as failure:
            logger.warning("texts wait to be indexed", extra={"error": failure.message})
        finally:
            self._running = False
            self._settled.set()

    async def _index(self, pending: Pending) -> None:
        text = await self._store.text(pending.id)
        if text is None:
            return
        divided = await anyio.to_thread.run_sync(
            lambda: [
                chunk for chunk in chunks(text, self._settings().chunk_bytes) if chunk.start >= pending.done
            ]
        )
        done = pending.done
        for group in _slices(divided):
            until = group[-1].end if group else done
            last = not group or group[-1] is divided[-1]
            entries = [(chunk, text[chunk.start : chunk.end]) for chunk in group]
            if not await self._store.enter(pending.id, done, entries, None if last else until):
                return
            done = until

    async def _search(self, query: Query) -> Results:
        words = re.findall(r"[^\W_]+", well_formed(query.text))
        if (
            not words
            or (query.scope == "chat" and query.chat is None)
            or (query.scope == "project" and query.project is None)
        ):
            return Results()
        bounds = Bounds(
            query.chat if query.scope == "chat" else None,
            query.project if query.scope == "project" else None,
            query.source,
            query.tool,
            query.kind,
        )
        match = " OR ".join(f'"{word}"' for word in words)
        try:
            found = await self._store.find(match, bounds, query.limit)
            return await anyio.to_thread.run_sync(partial(self._packed, found, query.max_tokens))
        except Failure as failure:
            logger.warning("a search failed", extra={"error": failure.message})
            return Results()

    def _packed(self, found: Sequence[Found], max_tokens: int) -> Results:
        hits: list[Hit] = []
        left = max_tokens
        for one in found:
            text = self._counter.cut(one.text, left, self._family)
            tokens = self.count(text)
            if not text or tokens > left:
                break
            left -= tokens
            hits.append(
                Hit(
                    id=f"{one.source.id}.{one.ordinal}",
                    source=one.source,
                    title=one.chunk.title or one.source.label,
                    lines=(one.chunk.lines[0], one.chunk.lines[0] + text.rstrip("\n").count("\n")),
                    text=text,
                    score=one.score,
                    tokens=tokens,
                )
            )
        return Results(tuple(hits), sum(hit.tokens for hit in hits))

    async def _keep_file(
        self, workspace: Workspace, path: str, chat: int | None, project: str | None
    ) -> Source:
        data = await anyio.to_thread.run_sync(workspace.read_bytes, path, MAX_FILE)
        digest = hashlib.sha256(data).hexdigest()
        known = await self._store.by_path(path, chat, project)
        if known and known[1] == digest:
            return known[0]
        text = decoded(data).text
        return await self.keep(
            NewSource(text, label=path, kind="file", chat=chat, project=project, path=path, hash=digest)
        )


def _within(source: Source, chat: int | None, project: str | None) -> bool:
    if chat is None and project is None:
        return True
    return (chat is not None and source.chat == chat) or (project is not None and source.project == project)


def _cut(text: str, max_bytes: int) -> str:
    if len(text) * 4 <= max_bytes or len(text.encode()) <= max_bytes:
        return text
    return text.encode()[:max_bytes].decode(errors="ignore") + CUT


def _slices(divided: Sequence[Chunk]) -> list[list[Chunk]]:
    groups: list[list[Chunk]] = [[]]
    for chunk in divided:
        if groups[-1] and chunk.end - groups[-1][0].start > SLICE:
            groups.append([])
        groups[-1].append(chunk)
    return groups


def _paths(workspace: Workspace, path: str) -> tuple[list[str], list[tuple[str, str]]]:
    try:
        ignore = Ignore(workspace, path)
        found: list[str] = []
        for place, entries in workspace.walk(path):
            entries[:] = ignore.kept(place, entries)
            found += ["/".join((*place.parts, entry.name)) for entry in entries if entry.kind == "file"]
        return found[:MAX_FILES], [(one, f"only {MAX_FILES} files at once") for one in found[MAX_FILES:]]
    except Refused as refused:
        if refused.reason != "kind":
            raise
        return [workspace.resolve(path).shown], []
