"""Events on their way to the journal: buffered, joined and committed in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from sidecar.chat.journal.recorder import Recorder
from sidecar.model.events import NewEvent, StoredEvent
from sidecar.model.failures import StorageFailed
from sidecar.store.facets.journal import Appended
from sidecar.store.store import Store
from tests.support.patience import PATIENCE_S
from tests.unit.chat.memory import events, open_session
from tests.unit.engines.sinks import ScriptedReplies

DELTA = ("message.delta", "t-1", "i-1")
NOTE = NewEvent("notice", {"code": "note"}, "t-1")


class ListJournal:
    """Takes commits as lists of types and texts; `failures` of them fail. `held` keeps the next one waiting."""

    def __init__(self) -> None:
        self.commits: list[list[Any]] = []
        self.failures = 0
        self.held = anyio.Event()
        self.held.set()
        self.began = anyio.Event()

    @property
    def journal(self) -> ListJournal:
        return self

    async def append(
        self, chat: int, last_seq: int, generation: int | None, new: list[NewEvent], **options: Any
    ) -> Appended:
        self.began.set()
        await self.held.wait()
        if self.failures:
            self.failures -= 1
            raise StorageFailed("io", "The disk is gone")
        self.commits.append([event.data.get("text", event.type) for event in new])
        stored = [
            StoredEvent(seq, seq, 0, event.turn_id, event.type, b"{}")
            for seq, event in enumerate(new, last_seq + 1)
        ]
        return Appended(1, stored)


@asynccontextmanager
async def recording() -> AsyncIterator[tuple[Recorder, ListJournal]]:
    journal = ListJournal()
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(PATIENCE_S):
            yield Recorder(cast("Store", journal), 1, "e", 0, tasks, lambda: "test"), journal


async def test_waiting_for_the_disk_ends_when_nothing_follows_the_commit_under_way() -> None:
    async with open_session(ScriptedReplies()) as session:
        await session.recorder.delta(*DELTA, "a")
        await anyio.lowlevel.checkpoint()  # the commit begins, and what collects is empty
        await session.recorder.wait_flushed()
        found = await events(session)

    assert found == [("message.delta", {"itemId": "i-1", "text": "a"})]


async def test_deltas_that_come_during_a_commit_join_into_one_event_of_the_next() -> None:
    async with recording() as (recorder, journal):
        journal.held = anyio.Event()
        await recorder.delta(*DELTA, "a")
        await journal.began.wait()
        for text in "bcd":
            await recorder.delta(*DELTA, text)
        journal.held.set()
        await recorder.wait_flushed()

    assert journal.commits == [["a"], ["bcd"]]


async def test_an_event_between_deltas_keeps_its_place_and_its_caller_gets_it_alone() -> None:
    async with recording() as (recorder, journal):
        journal.held = anyio.Event()
        await recorder.delta(*DELTA, "a")
        await journal.began.wait()
        await recorder.delta(*DELTA, "b")
        async with anyio.create_task_group() as tasks:
            found: list[StoredEvent] = []

            async def record() -> None:
                found.extend(await recorder.record(NOTE))

            tasks.start_soon(record)
            await anyio.wait_all_tasks_blocked()
            await recorder.delta(*DELTA, "c")
            journal.held.set()
        await recorder.wait_flushed()

    assert journal.commits == [["a"], ["b", "notice", "c"]]
    assert [(event.seq, event.type) for event in found] == [(3, "notice")]


async def test_text_of_a_failed_commit_is_in_the_next_one_before_what_came_later() -> None:
    async with recording() as (recorder, journal):
        journal.failures = 1
        await recorder.delta(*DELTA, "a")
        await recorder.wait_flushed()
        with pytest.raises(StorageFailed):
            await recorder.delta(*DELTA, "lost")
        recorder.forget_failure()
        await recorder.delta(*DELTA, "b")
        (noted,) = await recorder.record(NOTE)

    assert journal.commits == [["a", "b", "notice"]]
    assert (noted.seq, noted.type) == (3, "notice")


async def test_an_awaited_event_that_fails_is_its_callers_and_is_not_written_later() -> None:
    async with recording() as (recorder, journal):
        journal.failures = 1
        with pytest.raises(StorageFailed):
            await recorder.record(NOTE)
        await recorder.record(NewEvent("chat.state", {"state": "idle"}))

    assert journal.commits == [["chat.state"]]


async def test_what_ends_something_shares_no_commit_with_others_that_are_awaited() -> None:
    async with recording() as (recorder, journal):
        journal.held = anyio.Event()
        async with anyio.create_task_group() as tasks:
            writes: list[Callable[[], Any]] = [
                lambda: recorder.record(NOTE),
                lambda: recorder.record(NewEvent("chat.state", {}), last=True),
            ]
            for write in writes:
                tasks.start_soon(write)
            await anyio.wait_all_tasks_blocked()
            journal.held.set()

    assert journal.commits == [["notice"], ["chat.state"]]
