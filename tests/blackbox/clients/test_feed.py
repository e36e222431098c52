"""Order of events: nothing lost, nothing doubled, whatever arrives."""

from __future__ import annotations

import anyio
import pytest
from sidecar_client import SidecarError, feed
from sidecar_client.events import Event
from sidecar_client.feed import Feed, Subscription

from tests.support.patience import PATIENCE_S

EPOCH = "e1"


class Journal:
    """Events 1 to n, and how often it was read."""

    def __init__(self, size: int) -> None:
        self.events = [delta(seq) for seq in range(1, size + 1)]
        self.reads: list[int] = []

    async def read(self, epoch: str, seq: int) -> list[Event]:
        self.reads.append(seq)
        return self.events[seq : seq + 100]

    def feed(self, at: int = 0) -> Feed:
        made = Feed(self.read)
        made.open(EPOCH, at)
        return made


def delta(seq: int, first: int | None = None) -> Event:
    text = "".join(f"[{n}]" for n in range(first or seq, seq + 1))
    return Event(
        session_id="s",
        chat_id=None,
        epoch=EPOCH,
        seq=seq,
        from_=first,
        ts=0,
        type="message.delta",
        data={"text": text},
    )


async def text_up_to(subscription: Subscription, last: int) -> str:
    parts = []
    with anyio.fail_after(PATIENCE_S):
        while subscription.last < last:
            parts.append((await anext(subscription)).text)
    return "".join(parts)


def whole(last: int) -> str:
    return "".join(f"[{n}]" for n in range(1, last + 1))


@pytest.mark.parametrize(
    ("arriving", "reads"),
    [
        ([delta(1), delta(2), delta(3)], []),
        ([delta(1), delta(1), delta(2), delta(2), delta(3)], []),
        ([delta(3, first=1)], []),
        ([delta(1), delta(3)], [1]),
        ([delta(2), delta(3, first=1)], [0]),
        ([delta(1), delta(3, first=1)], [1]),
    ],
    ids=["in order", "doubled", "a run", "a gap", "a run over a gap", "a run that overlaps"],
)
async def test_each_event_comes_once_and_in_order(arriving: list[Event], reads: list[int]) -> None:
    journal = Journal(3)
    source = journal.feed()
    subscription = source.subscribe()
    for event in arriving:
        source.receive(event)
    assert (await text_up_to(subscription, 3), journal.reads) == (whole(3), reads)


async def test_a_slow_subscriber_gets_from_the_journal_what_it_could_not_hold() -> None:
    size = feed.MAX_QUEUED * 3
    journal = Journal(size)
    source = journal.feed()
    subscription = source.subscribe()
    for event in journal.events:
        source.receive(event)
    assert len(subscription._queue) == feed.MAX_QUEUED
    assert await text_up_to(subscription, size) == whole(size)


async def test_two_subscribers_do_not_wait_for_each_other() -> None:
    source = Journal(2).feed()
    slow, fast = source.subscribe(), source.subscribe()
    source.receive(delta(1))
    source.receive(delta(2))
    assert await text_up_to(fast, 2) == await text_up_to(slow, 2) == whole(2)


async def test_a_subscriber_that_is_forgotten_is_let_go() -> None:
    source = Journal(1).feed()
    source.subscribe()
    assert len(source._subscriptions) == 0


async def test_a_journal_said_to_be_longer_is_read() -> None:
    source = Journal(5).feed()
    subscription = source.subscribe()
    source.catch_up(5)
    assert await text_up_to(subscription, 5) == whole(5)


async def test_following_from_an_earlier_place_reads_what_is_stored() -> None:
    assert await text_up_to(Journal(5).feed(at=5).subscribe(after=2), 5) == "[3][4][5]"


async def test_events_that_arrive_before_the_chat_is_known_open_count() -> None:
    seen: list[Event] = []
    source = Feed(Journal(3).read)
    source.watch = seen.append
    source.receive(delta(2))
    source.receive(delta(3))
    source.open(EPOCH, 2)
    assert ([event.seq for event in seen], source.last) == ([3], 3)


async def test_a_failure_comes_after_what_has_arrived() -> None:
    source = Journal(1).feed()
    subscription = source.subscribe()
    source.receive(delta(1))
    source.fail(ValueError("gone"))
    assert (await anext(subscription)).seq == 1
    with pytest.raises(ValueError, match="gone"):
        await anext(subscription)


async def test_a_journal_with_a_hole_is_an_error_not_a_loop() -> None:
    source = Journal(1).feed()
    subscription = source.subscribe()
    source.receive(delta(1))
    source.receive(delta(3))
    await anext(subscription)
    with pytest.raises(SidecarError, match="does not go on after 1"):
        await anext(subscription)
