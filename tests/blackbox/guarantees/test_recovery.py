"""Guarantee 4: what a killed sidecar left unfinished gets its end when the chat is next opened."""

from __future__ import annotations

import pytest

from tests.support.reading import streamed_text, without_deltas
from tests.support.scripts import HALF_ANSWER, write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json


def stream_half(sidecar: Sidecar, chat: str = "c", prompt: str = "p") -> Json:
    """Start a turn that stops in the middle of a sentence, and return the answer to its prompt."""
    sent = sidecar.say("hang", chatId=chat, prompt=prompt)
    sidecar.wait_event(
        sent["sessionId"], lambda e: streamed_text(sidecar.events(e["sessionId"])) == HALF_ANSWER
    )
    return sent


@pytest.fixture
def crashed(spawn: Spawner) -> tuple[Sidecar, Json]:
    """A sidecar that was killed in the middle of a turn, and the answer to that turn's prompt."""
    sidecar = spawn(model=write_script(spawn.folder))
    sent = stream_half(sidecar)
    sidecar.kill()
    return sidecar, sent


def test_an_unfinished_turn_is_closed_and_its_text_kept(
    crashed: tuple[Sidecar, Json], spawn: Spawner
) -> None:
    sent = crashed[1]
    opened = spawn().call("chat/open", chatId="c")
    (turn,) = opened["turns"]
    assert (opened["status"], opened["state"]) == ("resumed", "idle")
    assert (turn["status"], turn["reason"]) == ("interrupted", "interrupted")
    assert (turn["items"][-1]["text"], turn["items"][-1]["status"]) == (HALF_ANSWER, "interrupted")
    assert opened["recovered"] == {"turns": [sent["turnId"]], "items": [turn["items"][-1]["id"]]}


def test_the_closure_is_journalled_before_the_result(crashed: tuple[Sidecar, Json], spawn: Spawner) -> None:
    first, sent = crashed
    seen = first.events(sent["sessionId"])[-1]
    second = spawn()
    cursor = {"epoch": seen["epoch"], "seq": seen["seq"]}
    opened = second.call("chat/open", chatId="c", after=cursor)
    assert opened["replay"] == {"kind": "events", "from": seen["seq"] + 1, "to": opened["lastSeq"]}
    assert second.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "interrupted"
    assert without_deltas(second.journal(sent["sessionId"], seen["seq"])) == without_deltas(
        second.events(sent["sessionId"])
    )


def test_a_closed_turn_is_closed_once(crashed: tuple[Sidecar, Json], spawn: Spawner) -> None:
    session = crashed[1]["sessionId"]
    for _ in range(3):
        sidecar = spawn()
        opened = sidecar.call("chat/open", chatId="c")
        sidecar.kill()
    assert opened.get("recovered") is None
    assert len([e for e in spawn().journal(session) if e["type"] == "turn.ended"]) == 1


def test_the_chat_answers_again(crashed: tuple[Sidecar, Json], spawn: Spawner) -> None:
    sidecar = spawn()
    ended = sidecar.run("hello again", chatId="c")
    assert ended["data"]["reason"] == "end_turn"
    statuses = [turn["status"] for turn in sidecar.call("chat/history", chatId="c")["turns"]]
    assert statuses == ["interrupted", "completed"]


def test_reading_alone_closes_nothing(crashed: tuple[Sidecar, Json], spawn: Spawner) -> None:
    reader, session = spawn(), crashed[1]["sessionId"]
    reader.call("chat/list")
    assert [e for e in reader.journal(session) if e["type"] == "turn.ended"] == []


def test_leaving_in_good_order_needs_no_closure(spawn: Spawner) -> None:
    first = spawn(model=write_script(spawn.folder))
    sent = stream_half(first)
    first.close_stdin()
    first.wait()
    second = spawn()
    ended = [e for e in second.journal(sent["sessionId"]) if e["type"] == "turn.ended"]
    assert [e["data"]["reason"] for e in ended] == ["interrupted"]
    opened = second.call("chat/open", chatId="c")
    assert opened.get("recovered") is None
    assert opened["turns"][-1]["items"][-1]["text"] == HALF_ANSWER


def test_every_chat_of_a_killed_sidecar_is_closed_by_itself(spawn: Spawner) -> None:
    first = spawn(model=write_script(spawn.folder))
    for number in range(4):
        stream_half(first, f"c{number}")
    first.kill()
    second = spawn()
    for number in range(4):
        assert second.call("chat/open", chatId=f"c{number}")["turns"][-1]["status"] == "interrupted"
