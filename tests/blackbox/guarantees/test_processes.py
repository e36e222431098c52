"""Guarantee 8: several sidecars on one database, one writer for each chat, readers live."""

from __future__ import annotations

import signal

import pytest

from tests.support import processes
from tests.support.patience import PATIENCE_S
from tests.support.reading import last_messages, streamed_text, without_deltas
from tests.support.scripts import SLOW_ANSWER, write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.verdict import journal_violations, missing_events

LIVE_S = 0.5
"""The contract says 250 ms; the rest is for what the test does itself."""


@pytest.fixture
def owner(spawn: Spawner) -> Sidecar:
    """A sidecar in the middle of a turn of chat `c` that will not end by itself."""
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("hang", chatId="c", prompt="p0")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    return sidecar


def test_a_reader_sees_the_turn_of_another_process_live(spawn: Spawner) -> None:
    writer, reader = spawn(model=write_script(spawn.folder)), spawn()
    sent = writer.say("slow", chatId="c")
    writer.wait_event(sent["sessionId"], "message.delta")
    opened = reader.call("chat/open", chatId="c", after="start")
    assert (opened["access"], opened["owner"]["pid"], opened["state"]) == ("reader", writer.pid, "running")
    writer.wait_turn(sent["sessionId"], sent["turnId"])
    with processes.within(LIVE_S, writer.pid, reader.pid):
        reader.wait_turn(sent["sessionId"], sent["turnId"])
    assert streamed_text(reader.events(sent["sessionId"])) == SLOW_ANSWER


def test_a_reader_that_was_there_first_sees_it_too(spawn: Spawner) -> None:
    reader, writer = spawn(), spawn()
    session = reader.call("chat/open", chatId="c")["sessionId"]
    ended = writer.run("hello there", chatId="c")
    with processes.within(LIVE_S, reader.pid):
        reader.wait_turn(session, ended["turnId"])
    seen = without_deltas(reader.events(session))
    assert seen == [
        e for e in without_deltas(writer.journal(session)) if seen[0]["seq"] <= e["seq"] <= seen[-1]["seq"]
    ]


def test_the_owner_lets_go_when_the_chat_is_idle(spawn: Spawner) -> None:
    pair = [spawn(), spawn()]
    for sidecar in pair:
        session = sidecar.call("chat/open", chatId="c")["sessionId"]
    for number in range(6):
        ended = pair[number % 2].run(f"turn {number}", chatId="c")
        pair[(number + 1) % 2].wait_turn(session, ended["turnId"])
    turns = pair[0].call("chat/history", chatId="c")["turns"]
    assert last_messages(turns) == [f"turn {number}" for number in range(6)]
    assert without_deltas(pair[0].events(session)) == without_deltas(pair[1].events(session))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("reap", [True, False], ids=["gone", "zombie"])
def test_a_killed_owner_loses_the_chat_at_once(owner: Sidecar, spawn: Spawner, reap: bool) -> None:
    other = spawn()
    opened = other.call("chat/open", chatId="c")
    assert opened["access"] == "reader"
    owner.kill(reap=reap)
    sent = other.result(other.ask("prompt/send", chatId="c", promptId="p1", text="mine now"), timeout=3)
    assert sent["disposition"] == "started"
    other.wait_turn(sent["sessionId"], sent["turnId"])
    ended = [e["data"]["reason"] for e in other.journal(sent["sessionId"]) if e["type"] == "turn.ended"]
    assert ended == ["interrupted", "end_turn"]


def test_a_zombie_is_no_owner_for_one_who_opens(owner: Sidecar, spawn: Spawner) -> None:
    owner.kill(reap=False)
    opened = spawn().call("chat/open", chatId="c")
    assert (opened["access"], opened["state"]) == ("writer", "idle")
    assert opened["turns"][-1]["status"] == "interrupted"


def test_an_owner_that_is_leaving_is_waited_for(owner: Sidecar, spawn: Spawner) -> None:
    other = spawn()
    owner.close_stdin()
    assert other.run("mine now", chatId="c")["data"]["reason"] == "end_turn"


def test_a_reader_never_closes_the_turn_of_a_live_owner(owner: Sidecar, spawn: Spawner) -> None:
    other = spawn()
    opened = other.call("chat/open", chatId="c")
    assert (opened["turns"][-1]["status"], opened.get("recovered")) == ("running", None)
    assert owner.call("turn/cancel", chatId="c")["outcome"] == "cancelled"
    with processes.within(LIVE_S, owner.pid, other.pid):
        ended = other.wait_event(opened["sessionId"], "turn.ended")
    assert ended["data"]["reason"] == "cancelled"


def test_of_several_heirs_one_closes_the_turn(owner: Sidecar, spawn: Spawner) -> None:
    heirs = [spawn() for _ in range(3)]
    owner.kill(reap=False)
    opened = [heir.result(id) for heir, id in [(heir, heir.ask("chat/open", chatId="c")) for heir in heirs]]
    session = opened[0]["sessionId"]
    assert len([e for e in heirs[0].journal(session) if e["type"] == "turn.ended"]) == 1
    assert len([o for o in opened if o.get("recovered")]) == 1


def test_three_sidecars_can_create_one_database_and_one_chat_at_once(spawn: Spawner) -> None:
    crowd = [spawn(initialize=False) for _ in range(3)]
    ids = []
    for sidecar in crowd:
        sidecar.ask("initialize", protocol="sidecar", versions=[1], client={"name": "x"})
        ids.append(sidecar.ask("chat/open", chatId="c"))
    opened = [sidecar.result(id) for sidecar, id in zip(crowd, ids, strict=True)]
    assert sorted(o["status"] for o in opened) == ["created", "resumed", "resumed"]
    assert len({o["epoch"] for o in opened}) == 1


def test_sidecars_write_different_chats_of_one_database_at_once(spawn: Spawner) -> None:
    crowd = [spawn() for _ in range(3)]
    sent = []
    for place, sidecar in enumerate(crowd):
        ids = [
            sidecar.ask("prompt/send", chatId=f"c{place}", promptId=f"p{n}", text=f"text {n} " * 50)
            for n in range(20)
        ]
        sent.append(sidecar.result(ids[-1]))
    for sidecar, last in zip(crowd, sent, strict=True):
        sidecar.wait_turn(last["sessionId"], last["turnId"], timeout=PATIENCE_S)
    assert [item["turns"] for item in crowd[0].call("chat/list")["items"]] == [20, 20, 20]


def test_a_prompt_of_another_process_is_a_duplicate_here_too(spawn: Spawner) -> None:
    first, second = spawn(), spawn()
    ended = first.run("hello", chatId="c", prompt="p")
    again = second.say("hello", chatId="c", prompt="p")
    assert (again["disposition"], again["turnId"]) == ("duplicate", ended["turnId"])


@pytest.mark.slow
def test_an_owner_that_was_stopped_for_too_long_ends_its_turn_and_reads(
    owner: Sidecar, spawn: Spawner
) -> None:
    """The lease expires after 20 s: there is no shorter way to lose it and live."""
    other, turn = spawn(), owner.events(owner_session(owner), "turn.started")[0]["turnId"]
    owner.signal(signal.SIGSTOP)
    send = {"chatId": "c", "promptId": "p1", "text": "mine now"}
    taken = processes.poll_until(
        lambda: "result" in other.answer(other.ask("prompt/send", **send)), PATIENCE_S, 0.25
    )
    owner.signal(signal.SIGCONT)
    assert taken
    assert owner.wait_turn(owner_session(owner), turn)["data"]["reason"] == "interrupted"
    assert owner.run("back again", chatId="c", overrides={"model": "echo:"})["data"]["reason"] == "end_turn"
    journal = other.journal(owner_session(owner))
    assert journal_violations(owner_session(owner), journal) == []
    assert missing_events(owner.seen(), {owner_session(owner): journal}) == []


def owner_session(sidecar: Sidecar) -> str:
    (session,) = sidecar.seen()
    return session
