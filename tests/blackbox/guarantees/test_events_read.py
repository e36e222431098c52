"""`events/read`: the journal of any chat, from any place, without touching it."""

from __future__ import annotations

import pytest

from tests.support.reading import is_idle, streamed_text, without_deltas
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

TEXT = "".join(f"w{number} " for number in range(50)) + "ünï 👩‍👩‍👧 end"


def test_a_run_is_split_at_every_cursor(sidecar: Sidecar) -> None:
    session = sidecar.run(TEXT, chatId="c")["sessionId"]
    epoch = sidecar.epoch(session)
    whole = sidecar.journal(session)
    for seq in range(whole[-1]["seq"]):
        first = sidecar.call("events/read", chatId="c", after={"epoch": epoch, "seq": seq})["events"][0]
        assert first.get("from", first["seq"]) == seq + 1
    assert [e["seq"] for e in whole] == sorted({e["seq"] for e in whole})


def test_the_pieces_of_a_run_sum_up_to_the_text_from_every_cursor(sidecar: Sidecar) -> None:
    session = sidecar.run(TEXT, chatId="c")["sessionId"]
    rests = []
    for seq in range(sidecar.events(session)[-1]["seq"]):
        rests.append(streamed_text(sidecar.journal(session, seq)))
    assert all(TEXT.endswith(rest) for rest in rests)
    assert [len(rest) for rest in rests] == sorted((len(rest) for rest in rests), reverse=True)
    assert (rests[0], rests[-1]) == (TEXT, "")


def test_what_came_live_is_what_is_stored(sidecar: Sidecar) -> None:
    sidecar.call("chat/open", chatId="c", after="start")
    session = sidecar.run(TEXT, chatId="c")["sessionId"]
    sidecar.wait_event(session, is_idle)
    live, stored = sidecar.events(session), sidecar.journal(session)
    assert (without_deltas(live), streamed_text(live)) == (without_deltas(stored), streamed_text(stored))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("limit", [1, 2, 7])
def test_pages_follow_one_another_without_a_gap(sidecar: Sidecar, limit: int) -> None:
    session = sidecar.run(TEXT, chatId="c")["sessionId"]
    cursor, seen, more = {"epoch": sidecar.epoch(session), "seq": 0}, 0, True
    while more:
        page = sidecar.call("events/read", chatId="c", after=cursor, limit=limit)
        assert len(page["events"]) <= limit
        for event in page["events"]:
            assert event.get("from", event["seq"]) == seen + 1
            seen = event["seq"]
        cursor, more = page["next"], page["hasMore"]
        assert cursor["seq"] == seen
    assert seen == sidecar.journal(session)[-1]["seq"]


def test_a_page_stays_near_its_bytes_and_still_moves_on(sidecar: Sidecar) -> None:
    session = sidecar.run("x" * 200_000, chatId="c")["sessionId"]
    cursor, pages, text = {"epoch": sidecar.epoch(session), "seq": 0}, 0, ""
    while True:
        page = sidecar.call("events/read", chatId="c", after=cursor, maxBytes=1)
        text += streamed_text(page["events"])
        pages, cursor = pages + 1, page["next"]
        if not page["hasMore"]:
            break
        assert page["events"]
    assert pages > 3
    assert text == "x" * 200_000


def test_a_chat_that_was_never_opened_here_is_read_and_not_attached(spawn: Spawner) -> None:
    writer, reader = spawn(), spawn()
    session = writer.run(TEXT, chatId="c")["sessionId"]
    assert reader.journal(session)[-1]["seq"] >= writer.events(session)[-1]["seq"]
    writer.run("more", chatId="c")
    reader.call("ping")
    assert reader.events(session) == []


def test_an_unknown_chat_is_not_found(sidecar: Sidecar) -> None:
    assert sidecar.refused("events/read", chatId="ghost", after={"epoch": "e", "seq": 0}).code == -32002


@pytest.mark.sampled(1)
@pytest.mark.parametrize("wrong", ["epoch", "ahead"])
def test_a_cursor_that_cannot_be_is_refused_with_the_true_one(sidecar: Sidecar, wrong: str) -> None:
    session = sidecar.run(TEXT, chatId="c")["sessionId"]
    stored = sidecar.journal(session)[-1]
    cursor = {"epoch": "no", "seq": 1} if wrong == "epoch" else {"epoch": stored["epoch"], "seq": 10**6}
    refusal = sidecar.refused("events/read", chatId="c", after=cursor)
    assert refusal.code == -32008
    assert (refusal.detail("epoch"), refusal.detail("lastSeq")) == (stored["epoch"], stored["seq"])
