"""The referee catches broken streams: each test is a good stream with one thing broken."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.frames import FrameReader, encode
from tests.support.referee import Referee

Json = dict[str, Any]
SESSION = "sc-tab-7-bf133f99bd6e5d06"


def event(seq: int, type: str, turn: str | None = "t1", first: int | None = None, **data: Any) -> Json:
    params = {
        "sessionId": SESSION,
        "chatId": "tab-7",
        "epoch": "e",
        "seq": seq,
        "ts": 1,
        "type": type,
        "data": data,
    }
    params |= {"turnId": turn} if turn else {}
    return {"jsonrpc": "2.0", "method": "event", "params": params | ({"from": first} if first else {})}


def item(status: str, text: str = "") -> Json:
    return {"id": "m1", "turnId": "t1", "type": "message", "status": status, "startedAt": 1, "text": text}


def answer(id: int, **result: Any) -> Json:
    ref = {"sessionId": SESSION, "chatId": "tab-7"}
    return {"jsonrpc": "2.0", "id": id, "result": ref | result}


def good() -> list[Json]:
    return [
        answer(1, disposition="started", epoch="e", seq=1, turnId="t1"),
        event(1, "prompt.accepted", promptId="p", turnId="t1", delivery="queue"),
        event(2, "turn.started", promptId="p", model="echo:", engine="native"),
        event(3, "message.started", item=item("running")),
        event(6, "message.delta", first=4, itemId="m1", text="abc"),
        event(7, "message.completed", item=item("completed", "abc")),
        event(8, "turn.ended", reason="end_turn", usage={}),
    ]


def violations(frames: list[Json]) -> list[str]:
    referee = Referee()
    referee.asked(1, "prompt/send", {"chatId": "tab-7", "promptId": "p"})
    for frame in frames:
        referee.received(frame)
    return referee.finish(all_answered=True, all_ended=True)


def test_a_good_stream_has_no_violation() -> None:
    assert violations(good()) == []


@pytest.mark.parametrize("missing", range(2, 7))
def test_any_lost_event_is_noticed(missing: int) -> None:
    frames = good()
    del frames[missing]
    assert violations(frames)


@pytest.mark.parametrize("twice", range(7))
def test_any_doubled_frame_is_noticed(twice: int) -> None:
    frames = good()
    frames.insert(twice, frames[twice])
    assert violations(frames)


@pytest.mark.parametrize("place", range(6))
def test_any_two_frames_that_change_places_are_noticed(place: int) -> None:
    frames = good()
    frames[place : place + 2] = reversed(frames[place : place + 2])
    assert violations(frames)


BROKEN = {
    "a second turn.ended": event(9, "turn.ended", reason="end_turn", usage={}),
    "an event after turn.ended": event(9, "usage.updated"),
    "a second end of an item": event(9, "message.completed", turn=None, item=item("completed")),
    "a delta after the end of its item": event(9, "message.delta", turn=None, itemId="m1", text="x"),
    "another epoch": event(9, "chat.state", turn=None, state="idle") | {"params": {}},
    "a run of over 64 KiB": event(10, "message.delta", turn=None, first=9, itemId="m2", text="x" * 65537),
    "a run of something else than deltas": event(10, "chat.state", turn=None, first=9, state="idle"),
    "a second answer": answer(1, disposition="started", epoch="e", seq=1),
    "an answer to nothing": answer(2),
    "a result of a wrong shape": {"jsonrpc": "2.0", "id": 1, "result": {"disposition": "maybe"}},
    "an error outside of the vocabulary": {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "?"}},
    "a batch": [],
}


@pytest.mark.parametrize("extra", BROKEN.values(), ids=BROKEN.keys())
def test_what_must_not_follow_is_noticed(extra: Json) -> None:
    assert violations([*good(), extra])


def test_text_that_is_not_the_sum_of_its_deltas_is_noticed() -> None:
    frames = good()
    frames[5] = event(7, "message.completed", item=item("completed", "abd"))
    assert violations(frames)


@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_frames_are_read_across_any_border(framing: str) -> None:
    reader, wire = FrameReader(framing), encode(b'{"a":1}', framing) + encode(b'{"b":2}', framing)
    assert [body for byte in wire for body in reader.feed(bytes([byte]))] == [b'{"a":1}', b'{"b":2}']
