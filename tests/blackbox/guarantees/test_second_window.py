"""Guarantee 8: what a second window may ask of a chat whose turn another process runs, and when it is refused."""

from __future__ import annotations

import signal
import time

import pytest

from tests.support import processes
from tests.support.patience import PATIENCE_S
from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

SILENT_S = 3.0
"""The contract's patience with an owner that takes nothing."""

AT_ONCE_S = 1.0
"""A request for another process is taken within a quarter of a second; the rest is for what it causes."""


@pytest.fixture
def owner(spawn: Spawner) -> Sidecar:
    """A sidecar in the middle of a turn of chat `c` that will not end by itself."""
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("hang", chatId="c", prompt="p0")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    return sidecar


@pytest.fixture
def second(owner: Sidecar, spawn: Spawner) -> Sidecar:
    """Another sidecar on the same database that has chat `c` open."""
    window = spawn(model=write_script(spawn.folder))
    assert window.call("chat/open", chatId="c")["access"] == "reader"
    return window


def session_of(sidecar: Sidecar) -> str:
    (session,) = sidecar.seen()
    return session


def turn_of(sidecar: Sidecar) -> str:
    turn: str = sidecar.events(session_of(sidecar), "turn.started")[-1]["turnId"]
    return turn


def prompts_of(queue: Json) -> list[str]:
    return [item["promptId"] for item in queue["items"]]


def test_it_cancels_the_turn_and_sees_its_end_before_the_answer(owner: Sidecar, second: Sidecar) -> None:
    with processes.within(AT_ONCE_S, owner.pid, second.pid):
        cancelled = second.call("turn/cancel", chatId="c")
    seen = second.events(session_of(owner), "turn.ended")
    assert (cancelled["outcome"], [event["seq"] for event in seen]) == ("cancelled", [cancelled["endSeq"]])
    assert owner.wait_turn(session_of(owner), turn_of(owner))["data"]["reason"] == "cancelled"
    assert second.call("turn/cancel", chatId="c")["outcome"] == "nothing_running"


def test_it_steers_and_queues_and_the_owner_answers(owner: Sidecar, second: Sidecar) -> None:
    session, turn = session_of(owner), turn_of(owner)
    send = {"chatId": "c", "expectTurnId": turn}
    steered = second.call("prompt/send", promptId="p1", text="also this", delivery="steer", **send)
    queued = second.call("prompt/send", promptId="p2", text="then this", delivery="queue", **send)
    assert (steered["disposition"], steered["turnId"]) == ("steered", turn)
    assert (queued["disposition"], queued["position"]) == ("queued", 1)
    assert second.call("prompt/send", chatId="c", promptId="p2", text="x")["disposition"] == "duplicate"

    assert second.call("turn/cancel", chatId="c", queue="keep")["outcome"] == "cancelled"
    ended = second.wait_turn(session, queued["turnId"])
    assert ended["data"]["reason"] == "end_turn"
    assert second.wait_event(session, lambda e: e["data"].get("state") == "idle")
    assert owner.call("chat/history", chatId="c") == second.call("chat/history", chatId="c")


def test_it_edits_removes_and_continues_the_queue(owner: Sidecar, second: Sidecar) -> None:
    for name in ("p1", "p2"):
        second.say(name, chatId="c", prompt=name)
    queue = second.call("prompt/edit", chatId="c", promptId="p1", text="better")["queue"]
    assert queue["items"][0]["content"] == [{"type": "text", "text": "better"}]
    assert second.refused("prompt/edit", chatId="c", promptId="p1", text="x", revision=7).code == -32010
    assert prompts_of(second.call("prompt/remove", chatId="c", promptId="p2")["queue"]) == ["p1"]
    assert owner.call("prompt/list", chatId="c")["queue"]["items"] == queue["items"][:1]

    second.call("turn/cancel", chatId="c")  # the queue pauses, and the owner keeps the chat for it
    assert second.call("prompt/list", chatId="c")["queue"]["paused"]
    assert not second.call("prompt/resume", chatId="c")["queue"]["paused"]
    session = session_of(owner)
    started = second.wait_event(
        session, lambda e: e["type"] == "turn.started" and e["data"]["promptId"] == "p1"
    )
    assert second.wait_turn(session, started["turnId"])["data"]["reason"] == "end_turn"


def test_an_interrupting_prompt_and_one_that_would_be_rejected(owner: Sidecar, second: Sidecar) -> None:
    session = session_of(owner)
    send = {"chatId": "c", "text": "mine"}
    assert second.refused("prompt/send", promptId="p1", delivery="reject", **send).code == -32004
    assert (
        second.refused("prompt/send", promptId="p1", replace={"turnId": turn_of(owner)}, **send).code
        == -32004
    )
    sent = second.call("prompt/send", promptId="p1", delivery="interrupt", **send)
    assert sent["disposition"] == "started"
    assert second.wait_turn(session, sent["turnId"])["data"]["reason"] == "end_turn"
    # The answer precedes the events of the prompt here, too.
    texts = [frame for frame in second.frames if frame.get("params", {}).get("turnId") == sent["turnId"]]
    answer = next(frame for frame in second.frames if frame.get("result", {}).get("turnId") == sent["turnId"])
    assert second.frames.index(answer) < second.frames.index(texts[0])


def test_other_writes_are_refused_and_name_the_owner(owner: Sidecar, second: Sidecar) -> None:
    writes: dict[str, Json] = {
        "turn/retry": {"promptId": "p9"},
        "chat/rename": {"title": "mine"},
        "chat/configure": {"set": {"effort": "low"}},
        "files/clear": {},
        "prompt/send": {"promptId": "p9", "text": "/open:clear"},
    }
    for method, params in writes.items():
        refusal = second.refused(method, chatId="c", **params)
        assert (method, refusal.code, refusal.detail("owner")["pid"]) == (method, -32011, owner.pid)


def test_an_owner_that_is_silent_for_three_seconds_is_named(owner: Sidecar, second: Sidecar) -> None:
    owner.signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        refusals = [second.ask("turn/cancel", chatId="c"), second.ask("prompt/list", chatId="c")]
        refusal = second.answer(refusals[0])["error"]
        took = time.monotonic() - began
    finally:
        owner.signal(signal.SIGCONT)
    assert (refusal["code"], refusal["data"]["owner"]["pid"]) == (-32011, owner.pid)
    assert took >= SILENT_S
    # What was withdrawn is not executed later: the turn goes on until it is asked to end again.
    assert owner.call("chat/open", chatId="c")["turns"][-1]["status"] == "running"
    assert second.call("turn/cancel", chatId="c")["outcome"] == "cancelled"


def test_an_owner_that_dies_leaves_the_request_to_its_sender(owner: Sidecar, second: Sidecar) -> None:
    owner.signal(signal.SIGSTOP)  # so that it takes nothing before it is killed
    asked = second.ask("prompt/send", chatId="c", promptId="p1", text="mine")
    assert second.call("ping")
    owner.kill()
    sent = second.result(asked)
    assert sent["disposition"] == "started"
    assert second.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "end_turn"
    reasons = [e["data"]["reason"] for e in second.journal(sent["sessionId"]) if e["type"] == "turn.ended"]
    assert reasons == ["interrupted", "end_turn"]


def test_it_is_told_when_another_process_begins_and_ceases_to_write(owner: Sidecar, second: Sidecar) -> None:
    session, other = session_of(owner), second.call("chat/open", chatId="other")["sessionId"]
    writer = {"sessionId": session, "chatId": "c", "access": "writer"}
    reader = {**writer, "access": "reader", "owner": {"pid": owner.pid, "client": "tests 1"}}

    owner.call("turn/cancel", chatId="c")
    assert told_access(second, 1) == [writer]
    owner.say("hang", chatId="c", prompt="p1")
    assert told_access(second, 2) == [writer, reader]
    owner.kill()
    assert told_access(second, 3) == [writer, reader, writer]
    assert other != session


def told_access(sidecar: Sidecar, count: int) -> list[Json]:
    """The data of the statuses about access, once there are so many."""
    sidecar.wait_until(lambda: len(sidecar.statuses("access")) >= count, PATIENCE_S, f"{count} statuses")
    return [status["data"] for status in sidecar.statuses("access")]
