"""Guarantees 2, 5, 7 and 10: opening a chat, once or again, loses nothing and doubles nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.reading import last_messages, streamed_text, without_deltas
from tests.support.scripts import HALF_ANSWER, SLOW_ANSWER, write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

TEXT = "one two three four five six seven eight nine ten"


def test_a_new_chat_is_created_and_empty(sidecar: Sidecar) -> None:
    opened = sidecar.call("chat/open", chatId="new")
    assert {
        name: opened[name] for name in ("status", "access", "state", "turns", "pending", "openFiles")
    } == {
        "status": "created",
        "access": "writer",
        "state": "idle",
        "turns": [],
        "pending": [],
        "openFiles": [],
    }
    assert opened["replay"]["kind"] == "none"
    assert opened["queue"] == {"paused": False, "items": []}
    assert opened["asOf"] == {"epoch": opened["epoch"], "seq": opened["lastSeq"]}


def test_a_chat_without_turns_survives_a_kill_right_after_its_creation(spawn: Spawner) -> None:
    first = spawn()
    created = first.call("chat/open", chatId="empty")
    first.kill()
    resumed = spawn().call("chat/open", chatId="empty", ifMissing="fail")
    assert (resumed["status"], resumed["epoch"], resumed["turns"]) == ("resumed", created["epoch"], [])


def test_a_missing_chat_can_be_refused_and_is_not_made(sidecar: Sidecar) -> None:
    assert sidecar.refused("chat/open", chatId="ghost", ifMissing="fail").code == -32002
    assert sidecar.refused("chat/history", chatId="ghost").code == -32002
    assert sidecar.call("chat/list")["items"] == []


def test_opening_twice_attaches_and_events_come_once(sidecar: Sidecar) -> None:
    first = sidecar.call("chat/open", chatId="twice", after="start")
    second = sidecar.call("chat/open", chatId="twice", after="start")
    ended = sidecar.run(TEXT, chatId="twice")
    assert (first["status"], second["status"], second["replay"]["kind"]) == ("created", "attached", "none")
    assert streamed_text(sidecar.events(first["sessionId"])) == TEXT
    assert len(sidecar.events(first["sessionId"], "turn.ended")) == 1
    assert ended["data"]["reason"] == "end_turn"


def test_attaching_in_the_middle_of_a_turn_shows_what_was_said(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("hang", chatId="live")
    sidecar.wait_event(
        sent["sessionId"], lambda e: streamed_text(sidecar.events(e["sessionId"])) == HALF_ANSWER
    )
    again = sidecar.call("chat/open", chatId="live", after="start")
    assert (again["status"], again["state"]) == ("attached", "running")
    user, message = again["turns"][-1]["items"]
    assert (user["type"], message["status"], message["text"]) == ("user", "running", HALF_ANSWER)


def test_start_replays_the_whole_journal_before_what_is_new(spawn: Spawner) -> None:
    first = spawn()
    for number in range(3):
        first.run(f"{TEXT} {number}", chatId="old")
    session = first.frames[-1]["params"]["sessionId"]
    stored = first.journal(session)
    first.close_stdin()
    first.wait()
    second = spawn()
    opened = second.call("chat/open", chatId="old", after="start")
    second.run("fresh", chatId="old")
    assert opened["replay"] == {"kind": "events", "from": 1, "to": opened["lastSeq"]}
    replayed = [e for e in second.events(session) if e["seq"] <= opened["lastSeq"]]
    assert streamed_text(replayed) == streamed_text(stored)
    assert without_deltas(replayed) == without_deltas(stored)


def test_tail_gives_the_newest_turns_and_replays_nothing(spawn: Spawner) -> None:
    first = spawn()
    for number in range(5):
        first.run(f"prompt {number}", chatId="tail")
    first.close_stdin()
    first.wait()
    opened = spawn().call("chat/open", chatId="tail", tail={"turns": 2})
    assert (opened["status"], opened["replay"]["kind"]) == ("resumed", "none")
    assert last_messages(opened["turns"]) == ["prompt 3", "prompt 4"]
    assert opened["before"] is not None


def test_the_turns_before_a_tail_are_in_the_history(sidecar: Sidecar) -> None:
    for number in range(5):
        sidecar.run(f"prompt {number}", chatId="tail")
    sidecar.call("chat/close", chatId="tail")
    opened = sidecar.call("chat/open", chatId="tail", tail={"turns": 2})
    page = sidecar.call("chat/history", chatId="tail", before=opened["before"], limit=10)
    assert last_messages(page["turns"]) == ["prompt 0", "prompt 1", "prompt 2"]
    assert page["before"] is None


def test_every_cursor_inside_a_run_of_deltas_resumes_at_the_next_piece(sidecar: Sidecar) -> None:
    session = sidecar.run(TEXT, chatId="cut")["sessionId"]
    last = sidecar.events(session)[-1]["seq"]
    epoch = sidecar.events(session)[-1]["epoch"]
    texts = []
    for seq in range(last + 1):
        sidecar.call("chat/close", chatId="cut")
        seen = len(sidecar.events(session))
        opened = sidecar.call("chat/open", chatId="cut", after={"epoch": epoch, "seq": seq})
        expected = {"kind": "events", "from": seq + 1, "to": opened["lastSeq"]}
        assert opened["replay"] == (expected if seq < opened["lastSeq"] else {"kind": "none"})
        if seq < opened["lastSeq"]:
            sidecar.wait_event(session, lambda e, to=opened["lastSeq"]: e["seq"] == to, skip=seen)  # type: ignore[misc]
        texts.append(streamed_text(sidecar.events(session)[seen:]))
    words = TEXT.split(" ")
    assert set(texts) == {
        " ".join(words[n:]) if n == 0 else "".join(f" {w}" for w in words[n:]) for n in range(11)
    }


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cursor", [{"epoch": "nonsense", "seq": 1}, {"seq": 2**52}])
def test_an_unknown_cursor_gets_a_snapshot_with_a_reason(sidecar: Sidecar, cursor: dict[str, Any]) -> None:
    ended = sidecar.run(TEXT, chatId="lost")
    sidecar.call("chat/close", chatId="lost")
    opened = sidecar.call("chat/open", chatId="lost", after={"epoch": ended["epoch"], **cursor})
    assert opened["replay"]["kind"] == "snapshot"
    assert opened["replay"]["reason"]
    assert opened["turns"][-1]["items"][-1]["text"] == TEXT


def test_replay_then_live_without_a_gap_while_a_turn_streams(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("slow", chatId="busy")
    session = sent["sessionId"]
    for _ in range(10):
        sidecar.wait_event(session, "message.delta", skip=len(sidecar.events(session)))
        sidecar.call("chat/close", chatId="busy")
        sidecar.call("chat/open", chatId="busy", after="start")
    sidecar.wait_turn(session, sent["turnId"])
    assert sidecar.events(session, "message.completed")[-1]["data"]["item"]["text"] == SLOW_ANSWER


def test_a_closed_chat_sends_no_more_events_and_its_turn_goes_on(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("slow", chatId="closed")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    assert sidecar.call("chat/close", chatId="closed")["closed"] is True
    seen = len(sidecar.events(sent["sessionId"]))
    watcher = spawn()
    watcher.call("chat/open", chatId="closed", after="start")
    watcher.wait_turn(sent["sessionId"], sent["turnId"])
    sidecar.call("ping")
    assert len(sidecar.events(sent["sessionId"])) == seen


def test_a_prompt_opens_its_chat(sidecar: Sidecar) -> None:
    sent = sidecar.say("hello there", chatId="direct")
    ended = sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    assert sent["disposition"] == "started"
    assert ended["chatId"] == "direct"
    assert sidecar.call("chat/open", chatId="direct")["status"] == "attached"


def test_another_project_rebinds_the_chat_and_keeps_its_thread(spawn: Spawner) -> None:
    sidecar = spawn()
    old, new = spawn.folder / "old", spawn.folder / "new"
    old.mkdir()
    new.mkdir()
    first = sidecar.call("chat/open", chatId="moving", projectPath=str(old))
    sidecar.run("hello", chatId="moving", projectPath=str(new))
    again = sidecar.call("chat/open", chatId="moving")
    assert (again["sessionId"], again["projectPath"]) == (first["sessionId"], str(new.resolve()))
    assert len(again["turns"]) == 1


def test_a_refused_prompt_attaches_nothing(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("slow", chatId="busy")
    sidecar.call("chat/close", chatId="busy")
    seen = len(sidecar.events(sent["sessionId"]))
    assert (
        sidecar.refused("prompt/send", chatId="busy", promptId="p", text="x", delivery="reject").code
        == -32004
    )
    assert sidecar.refused("turn/retry", chatId="busy", promptId="p").code == -32004
    watcher = spawn()
    watcher.call("chat/open", chatId="busy", after="start")
    watcher.wait_turn(sent["sessionId"], sent["turnId"])
    sidecar.call("ping")
    assert len(sidecar.events(sent["sessionId"])) == seen
