"""Brings the chats of other programs in: new ones whole, grown ones by what is new. Run again, it changes nothing.

A chat is there completely or not at all; what was brought before a cancel stays. Reading and encoding run in a thread,
for a moment at a time, and each commit is short, so that other chats go on meanwhile.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import anyio.to_thread
import msgspec

from ...foreign.base import ForeignChat, FoundChat, Problem, Reader
from ...foreign.records import Unreadable
from ...foreign.redaction import redact, without_bytes
from ...foreign.registry import EXPORTS, READERS
from ...model.chats import ChatKey
from ...model.events import NewEvent, encode
from ...model.failures import Failure, StorageFailed, invalid_param
from ...store.engine.slices import Pace
from ...store.imports import BlobBytes, Known, KnownTurns, NewChat
from ...system.clock import now
from ..journal import identity
from ..journal.identity import ChatAddress
from ..journal.running_turn import new_id
from ..sessions.chats import Chats
from . import grown_chats
from .grown_chats import Growth
from .history_import import TurnEvents, first_title
from .import_export import all_names
from .import_filter import AllNames, clean_title, may_import_patch
from .import_slices import LEAST_EVENTS, MOST_EVENTS, SLICE_BYTES, sweep

logger = logging.getLogger(__name__)

READ_S = 0.02
"""How long one visit to the thread reads, unless one chat alone takes longer."""

MAX_LISTED = 20_000
"""Chats and problems that one result names; the counts are of all."""

Status = Literal["new", "grown"]


class HistoryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to bring: from which program and place, since when (milliseconds), and of which project."""

    platform: str
    path: str | None = None
    since: int | None = None
    project: str | None = None
    namespace: str | None = None
    dry_run: bool = False


class BroughtChat(msgspec.Struct, frozen=True):
    """A chat that was brought in, or would be."""

    key: ChatKey
    status: Status
    title: str | None
    project: str | None
    turns: int
    messages: int
    updated_at: int


class Brought(msgspec.Struct):
    """What an import has done so far. `skipped` are chats outside of the request, `deleted` those deleted here."""

    chats: list[BroughtChat] = []
    problems: list[Problem] = []
    new: int = 0
    grown: int = 0
    unchanged: int = 0
    skipped: int = 0
    deleted: int = 0
    turns: int = 0
    messages: int = 0
    problem_count: int = 0

    def add(self, chat: BroughtChat) -> None:
        self.new += chat.status == "new"
        self.grown += chat.status == "grown"
        self.turns += chat.turns
        self.messages += chat.messages
        if len(self.chats) < MAX_LISTED:
            self.chats.append(chat)

    def report(self, problem: Problem, count: int = 1) -> None:
        self.problem_count += count
        if len(self.problems) < MAX_LISTED:
            self.problems.append(problem)


Report = Callable[[int, int, Brought], None]
"""Called with the progress in bytes, the total, and what was brought so far."""


class _Ready(msgspec.Struct):
    """A chat that was read: to be created, or to be added to."""

    brought: BroughtChat
    new: NewChat | None = None
    more: Iterator[NewEvent] | None = None
    """The events of a large new chat that do not fit into its first commit."""
    growth: Growth | None = None
    size: int = 0


async def import_history(chats: Chats, request: HistoryRequest, report: Report) -> Brought:
    """Import as `request` says; a cancel between two chats keeps those that are there."""
    work = _Import(chats, request, report)
    await work.prepare()
    while batch := await work.read_batch():
        if request.dry_run:
            for ready in batch:
                work.brought.add(ready.brought)
        else:
            await work.store_batch(batch)
        work.report()
    return work.brought


class _Import:
    def __init__(self, chats: Chats, request: HistoryRequest, report: Report) -> None:
        self._chats = chats
        self._report = report
        self._store = chats.store
        self._request = request
        self._reader = READERS.get(request.platform)
        self._namespace = request.namespace or "default"
        self._known: dict[str, Known] = {}
        self._waiting: list[FoundChat] = []
        self._names: dict[str, AllNames] = {}
        self._projects: dict[str, str | None] = {}
        self._pace = Pace(LEAST_EVENTS, MOST_EVENTS)
        self.brought = Brought()
        self.done = self.total = 0

    def report(self) -> None:
        self._report(self.done, self.total, self.brought)

    async def prepare(self) -> None:
        """Find the chats, and which of them are here."""
        if self._reader is None:
            raise invalid_param("platform", f"one of {', '.join(READERS)}")
        if self._request.path is None and self._request.platform in EXPORTS:
            raise invalid_param("path", "the export that you have downloaded: a zip, its folder or its JSON")
        if self._request.path is not None and not os.path.isabs(self._request.path):
            raise invalid_param("path", "an absolute path")
        await sweep(self._store)  # what an earlier import has left behind when it was killed
        self._known = await self._store.imports.known(self._namespace, f"{self._request.platform}:")
        await anyio.to_thread.run_sync(self._find, self._reader)

    def _find(self, reader: Reader) -> None:
        """Find what is to be read. Blocking."""
        for each in reader.find(self._request.path):
            if isinstance(each, Problem):
                self.brought.report(each)
            elif self._is_wanted(each):
                self._waiting.append(each)
        self._waiting.sort(key=lambda each: each.updated_at)  # taken from the end: the newest first
        self.total = sum(each.size for each in self._waiting)

    def _is_wanted(self, found: FoundChat) -> bool:
        key = self._key(found.id)
        known = self._known.get(key.session_id)
        since = self._request.since
        if known and known.deleted:
            self.brought.deleted += 1
        elif known and known.mark == self._mark(found):
            self.brought.unchanged += 1
        elif since is not None and found.updated_at and found.updated_at < since:
            self.brought.skipped += 1
        else:
            return True
        return False

    def _key(self, id: str) -> ChatKey:
        chat_id = f"{self._request.platform}:{id}"
        shown = "".join(char if char.isprintable() else "_" for char in chat_id)
        return identity.chat_key(
            shown.encode(errors="replace")[:400].decode(errors="ignore"), None, self._namespace
        )

    def _mark(self, found: FoundChat) -> str:
        return found.mark

    async def read_batch(self) -> list[_Ready]:
        """Read chats until one commit is full or the time is over; empty when all are read."""
        batch: list[_Ready] = []
        while self._waiting and not batch:
            known = await self._known_turns(self._waiting[-1])
            batch = await anyio.to_thread.run_sync(self._read_some, known)
        return batch

    async def _known_turns(self, found: FoundChat) -> KnownTurns | None:
        known = self._known.get(self._key(found.id).session_id)
        return await self._store.imports.known_turns(known.chat) if known else None

    def _read_some(self, known: KnownTurns | None) -> list[_Ready]:
        """Blocking. The first chat may be one that is here; then it is read alone."""
        until, batch, size, events = time.monotonic() + READ_S, list[_Ready](), 0, 0
        while self._waiting and size < SLICE_BYTES and events < self._pace.most:
            found = self._waiting[-1]
            is_here = self._key(found.id).session_id in self._known
            if is_here and known is None:
                break  # what it has is read first
            self._waiting.pop()
            self.done += found.size
            if ready := self._read(found, known):
                batch.append(ready)
                size += ready.size
                events += len(ready.new.events) if ready.new else 0
            if is_here or time.monotonic() > until:
                break
        return batch

    def _read(self, found: FoundChat, known: KnownTurns | None) -> _Ready | None:
        try:
            chat = redact(found.read())
            return self._ready(found, chat, known)
        except Unreadable as error:
            self.brought.report(Problem(found.file, None, str(error)))
        except Exception as error:
            # A file of another program may break any assumption; the others are read all the same.
            logger.exception("a chat of another program cannot be read", extra={"file": found.file})
            self.brought.report(
                Problem(found.file, None, f"it cannot be read: {type(error).__name__}: {error}"[:500])
            )
        return None

    def _ready(self, found: FoundChat, chat: ForeignChat, known: KnownTurns | None) -> _Ready | None:
        for problem in chat.problems:
            self.brought.report(problem)
        if chat.stray:
            self.brought.report(Problem(found.file, None, f"{chat.stray} more problems"), chat.stray)
        if not chat.turns or not self._is_in_request(chat):
            self.brought.skipped += 1
            return None
        self._filter(chat)
        key = self._key(found.id)
        if known is not None:
            growth = grown_chats.growth(chat, known)
            if not growth.turns and not growth.patches:
                self.brought.unchanged += 1
                return None
            growth.source = self._source(found)
            return _Ready(_brought(key, chat, "grown", growth.turns), growth=growth)
        return self._new_chat(found, key, chat)

    def _is_in_request(self, chat: ForeignChat) -> bool:
        if self._request.since is not None and chat.updated_at < self._request.since:
            return False
        wanted = self._request.project
        if wanted is None:
            return True
        project = self._project(chat.project)
        return project is not None and (project == wanted or project.startswith(wanted.rstrip("/") + "/"))

    def _project(self, path: str | None) -> str | None:
        """The project's folder as chats here name it, which may be gone; None for one that is no project."""
        if path is None or not os.path.isabs(path) or "\0" in path:
            return None
        if path not in self._projects:
            real = os.path.realpath(path)
            own = any(
                real == folder or real.startswith(folder.rstrip("/") + "/")
                for folder in self._chats.services.own_folders
            )
            self._projects[path] = None if own else real
        return self._projects[path]

    def _filter(self, chat: ForeignChat) -> None:
        """Drop the bytes of changes that a revert could write where nothing may be written."""
        project = self._project(chat.project)
        chat.project = project
        chat.title = clean_title(chat.title)
        if not chat.patches:
            return
        if (project or "") not in self._names:
            self._names[project or ""] = all_names(project, self._store)
        names, carried = self._names[project or ""], set(chat.blobs)
        ids = {turn.id for turn in chat.turns}
        chat.patches = [
            patch if may_import_patch(patch, ids, carried, project, names) else without_bytes(patch)
            for patch in chat.patches
        ]

    def _new_chat(self, found: FoundChat, key: ChatKey, chat: ForeignChat) -> _Ready:
        source, importing = self._source(found), new_id("im")
        begun = {"importId": importing, "created": True, "source": source}
        events = _encoded(_events_of_new(chat, begun))
        first: list[NewEvent] = []
        size = sum(len(blob.data) for blob in chat.blobs.values())
        # Blobs of a large chat are all in its first commit: one that names a blob must not come before it.
        for event in events:
            first.append(event)
            size += len(event.data)
            if size >= SLICE_BYTES or len(first) >= self._pace.most:
                break
        else:
            events = iter(())
        rest = next(events, None)
        blobs = [BlobBytes(blob.data, blob.mime_type, blob.name) for blob in chat.blobs.values()]
        new = NewChat(key, chat.project, chat.created_at, blobs, first)
        more = None if rest is None else _chain(rest, events)
        return _Ready(_brought(key, chat, "new", chat.turns), new=new, more=more, size=size)

    def _source(self, found: FoundChat) -> dict[str, object]:
        return {"platform": self._request.platform, "mark": self._mark(found), "at": now()}

    async def store_batch(self, batch: Sequence[_Ready]) -> None:
        small = [ready for ready in batch if ready.new and ready.more is None]
        if small:
            self._pace.begin()
            created = await self._store.imports.create([ready.new for ready in small if ready.new])
            await self._pace.rest()
            for ready, done in zip(small, created, strict=True):
                if done:
                    self.brought.add(ready.brought)
                else:
                    self.brought.unchanged += 1  # another import was faster
        for ready in batch:
            if ready.more is not None:
                await self._store_large(ready)
            elif ready.growth is not None:
                await self._add_growth(ready)

    async def _store_large(self, ready: _Ready) -> None:
        """Create a chat in several commits; it is removed again when it does not reach its end."""
        assert ready.new is not None
        assert ready.more is not None
        begun = await self._store.imports.begin(ready.new)
        if begun is None:
            self.brought.unchanged += 1
            return
        last_seq, pace = begun.last_seq, self._pace
        events, held = ready.more, begun.generation
        slice = await anyio.to_thread.run_sync(_take, events, pace.most)
        try:
            while slice:
                following = await anyio.to_thread.run_sync(_take, events, pace.most)
                pace.begin()
                done = await self._store.journal.append(
                    begun.chat, last_seq, held, slice, release=not following, yields=True
                )
                await pace.rest()
                self.report()
                last_seq, slice = done.events[-1].seq, following
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._store.imports.remove(begun.chat)
            raise
        self.brought.add(ready.brought)

    async def _add_growth(self, ready: _Ready) -> None:
        assert ready.growth is not None
        key = ready.brought.key
        try:
            session = await self._chats.existing_session(ChatAddress(key.value, None, self._namespace))
            await grown_chats.append(session, ready.growth)
        except StorageFailed:
            raise
        except Failure as failure:
            problem = f"the chat {key.value} here cannot go on: {failure.message}"
            self.brought.report(Problem(ready.growth.file, None, problem))
            return
        self.brought.add(ready.brought)


def _events_of_new(chat: ForeignChat, begun: dict[str, object]) -> Iterator[NewEvent]:
    yield NewEvent("import.started", begun)
    made = TurnEvents(None, renumber=False)
    for turn in chat.turns:
        yield from made.of(turn)
    for patch in chat.patches:
        yield NewEvent("patch.recorded", patch, ts=patch.ts)
    yield from made.move(chat.head)
    title = chat.title or first_title(chat.turns)
    if title:
        by = chat.title_by if chat.title else "sidecar"
        yield NewEvent("chat.renamed", {"title": title, "by": by})
    yield NewEvent("import.ended", {"importId": begun["importId"], "outcome": "completed"})


def _encoded(events: Iterator[NewEvent]) -> Iterator[NewEvent]:
    for event in events:
        yield msgspec.structs.replace(event, data=encode(event.data))


def _chain(first: NewEvent, rest: Iterator[NewEvent]) -> Iterator[NewEvent]:
    yield first
    yield from rest


def _take(events: Iterator[NewEvent], most: int) -> list[NewEvent]:
    """The next events for one commit. Blocking."""
    slice: list[NewEvent] = []
    size = 0
    for event in events:
        slice.append(event)
        size += len(event.data)
        if len(slice) >= most or size >= SLICE_BYTES:
            break
    return slice


def _brought(key: ChatKey, chat: ForeignChat, status: Status, turns: Sequence[object]) -> BroughtChat:
    return BroughtChat(
        key,
        status,
        chat.title or first_title(chat.turns),
        chat.project,
        len(turns),
        sum(len(getattr(turn, "items", ())) for turn in turns),
        chat.updated_at,
    )
