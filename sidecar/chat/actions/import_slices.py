"""Imports a source into a chat in two passes over its lines: a survey, which writes nothing, then the slices.

Each slice is a commit of its own, so that commits of other chats come in between; heavy work runs in a thread.
`import.started` journals the start, and the last commit the end. An import that fails, is cancelled or is cut off
before that is undone: a chat that it created is removed, and turns that it added are hidden.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

import anyio
import anyio.to_thread
import msgspec

from ...model.chats import Chat
from ...model.content import Item, Turn
from ...model.events import NewEvent, encode
from ...model.failures import Refused
from ...store import Store
from ...store.engine.slices import Pace
from ..journal.running_turn import new_id
from ..sessions.journal_writer import JournalWriter
from .history_import import ImportedHistory, ImportSurvey, TurnEvents, TurnGrouper
from .import_filter import filter_turn
from .import_lines import MAX_BLOB_LINE_BYTES, MAX_LINES, Blob, ImportEntry, WrongLine, decode

LEAST_EVENTS, MOST_EVENTS = 50, 2000
"""The range of events per commit; the time of the last commit decides."""

SLICE_BYTES = 512 * 1024
"""Bytes of one commit, unless one event alone has more."""

SURVEY_S = 0.1
"""How long the survey runs between two checks for cancellation."""

MAX_INDEXED = 10_000
"""Tool outputs that an import adds to the index, newest first: the index removes the oldest anyway."""

ReportBytes = Callable[[int, int], None]
"""Called with the progress of an import and its total, in bytes: each byte is read twice."""


class ImportFile:
    """What is imported: a file, read from its start in each pass."""

    def __init__(self, file: BinaryIO, field: str) -> None:
        self.field = field
        self._file = file
        self._state = self._identity()
        self.size = file.seek(0, os.SEEK_END)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line that is not blank, with its number; Refused when there are too many, or one is too long."""
        self._file.seek(0)
        number = 0
        # Two bytes more than allowed: a line that is too long is then seen as such, without being read whole.
        while line := self._file.readline(MAX_BLOB_LINE_BYTES + 2):
            number += 1
            if number > MAX_LINES:
                raise WrongLine("too_many", f"there are more than {MAX_LINES} lines", MAX_LINES).refusal(
                    self.field, number
                )
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if stripped := line.strip():
                yield number, stripped

    def entries(self) -> Iterator[tuple[int, ImportEntry]]:
        for number, line in self.lines():
            try:
                yield number, decode(line)
            except WrongLine as wrong:
                raise wrong.refusal(self.field, number) from wrong

    @property
    def position(self) -> int:
        return self._file.tell()

    def check_unchanged(self) -> None:
        if self._identity() != self._state:
            raise Refused(
                "precondition_failed",
                f"`{self.field}`: the file was changed while it was imported",
                retryable=True,
            )

    def close(self) -> None:
        self._file.close()

    def _identity(self) -> tuple[int, ...]:
        try:
            found = os.fstat(self._file.fileno())
        except OSError:
            return ()  # not a file, but text in memory
        return (found.st_size, found.st_mtime_ns, found.st_ino)


async def survey(source: ImportFile, report: ReportBytes) -> ImportedHistory:
    """Read every line and write nothing; Refused, with the line, when one cannot be imported."""
    made = ImportSurvey()
    entries = source.entries()

    # In a thread, for SURVEY_S at a time: a thread that runs cannot be cancelled.
    def take_some() -> bool:
        until = time.monotonic() + SURVEY_S
        for number, entry in entries:
            try:
                made.take(entry)
            except WrongLine as wrong:
                raise wrong.refusal(source.field, number) from wrong
            if time.monotonic() > until:
                return True
        return False

    while await anyio.to_thread.run_sync(take_some):
        report(source.position, 2 * source.size)
    if not made.imported.turns:
        raise Refused("invalid_params", "There is no turn to import", params={"field": source.field})
    return made.imported


class Slices:
    """The events of a surveyed source, some at a time. Call `next` in a thread."""

    def __init__(self, source: ImportFile, imported: ImportedHistory, chat: Chat, *, renumber: bool) -> None:
        self._source = source
        self._imported = imported
        self._made = TurnEvents(chat, renumber=renumber)
        self._turns = TurnGrouper()
        self.blobs: list[Blob] = []
        """The blobs of the newest slice; they are stored before its events, which refer to them."""
        self.outputs: list[Item] = []
        """Tool calls whose output is to be indexed."""
        self._events = self._all(chat)

    def next(self, most: int) -> list[NewEvent]:
        """The next slice, of at most `most` events; empty at the end."""
        self.blobs = []
        events: list[NewEvent] = []
        size = 0
        for event in self._events:
            if event is not None:
                encoded = msgspec.structs.replace(event, data=encode(event.data))
                events.append(encoded)
                size += len(encoded.data)
            size += sum(len(blob.data) for blob in self.blobs[-1:]) if event is None else 0
            if len(events) >= most or size >= SLICE_BYTES:
                break
        return events

    def _all(self, chat: Chat) -> Iterator[NewEvent | None]:
        """Every event, and None after each blob."""
        for _, entry in self._source.entries():
            if isinstance(entry, Blob):
                self.blobs.append(entry)
                yield None
            elif turn := self._turns.take(entry):
                yield from self._of(turn)
        if turn := self._turns.last():
            yield from self._of(turn)
        yield from self._made.end(self._imported, chat)

    def _of(self, turn: Turn) -> Iterator[NewEvent]:
        filtered = filter_turn(turn, self._imported.blob_ids)
        yield from self._made.of(filtered)
        self.outputs += [item for item in filtered.items if item.output_source]
        del self.outputs[:-MAX_INDEXED]


def begun_event(*, created: bool) -> NewEvent:
    """The event that starts an import. Until its end is journalled, the import counts as incomplete."""
    return NewEvent("import.started", {"importId": new_id("im"), "created": created})


def take_slice(events: Iterator[NewEvent], most: int) -> list[NewEvent]:
    """The next `most` events, or fewer if they have many bytes; empty at the end. Call it in a thread."""
    slice: list[NewEvent] = []
    size = 0
    for event in events:
        slice.append(msgspec.structs.replace(event, data=encode(event.data)))
        size += len(slice[-1].data)
        if len(slice) >= most or size >= SLICE_BYTES:
            break
    return slice


async def append(
    session: JournalWriter,
    events: Iterator[NewEvent],
    begun: NewEvent,
    begun_seq: int,
    report: Callable[[int], None],
) -> None:
    """Append events to a chat in slices, after `begun`, which is in its journal already; `report` gets the number of
    those that are committed.
    """
    pace = Pace(LEAST_EVENTS, MOST_EVENTS)
    done = 0

    async def next_slice() -> list[NewEvent] | None:
        nonlocal done
        await pace.rest()
        report(done)  # the slices before this one are committed
        slice = await anyio.to_thread.run_sync(take_slice, events, pace.most)
        pace.begin()
        done += len(slice)
        return slice or None

    await session.append_slices(begun, next_slice, lambda: _ended_event(begun), begun_seq=begun_seq)


async def write(
    session: JournalWriter, slices: Slices, source: ImportFile, report: ReportBytes, *, created: bool
) -> None:
    """Append the import to the chat; undo what was appended when it does not reach its end."""
    store = session.store
    begun = begun_event(created=created)
    pace = Pace(LEAST_EVENTS, MOST_EVENTS)
    read = 0

    async def next_slice() -> list[NewEvent] | None:
        nonlocal read
        await pace.rest()
        while True:
            # Only now: what was read before is committed.
            report(source.size + read, 2 * source.size)
            events = await anyio.to_thread.run_sync(slices.next, pace.most)
            # Before the events: an event must never name a blob that a crash has kept from being stored.
            for blob in slices.blobs:
                await store.blobs.put(blob.data, blob.mime_type, blob.name)
            read = source.position
            # A slice may consist of blobs alone; an empty list would end the import.
            if events or not slices.blobs:
                pace.begin()
                return events or None

    def end() -> NewEvent:
        # The two passes must have read the same bytes. Checked last, because the file may change until then.
        source.check_unchanged()
        return _ended_event(begun)

    await session.append_slices(begun, next_slice, end)


def _ended_event(begun: NewEvent) -> NewEvent:
    return NewEvent("import.ended", {"importId": begun.data["importId"], "outcome": "completed"})


async def sweep(store: Store) -> int:
    """Remove chats that an import was creating when its process ended; return how many."""
    found = await store.imports.cut_off()
    for chat in found:
        await store.imports.remove(chat)
    return len(found)
