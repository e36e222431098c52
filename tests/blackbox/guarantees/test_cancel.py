"""`turn/cancel`: answered after the end is on the wire, with what became of the turn and the queue."""

from __future__ import annotations

import pytest

from tests.support.scripts import HALF_ANSWER, write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner


@pytest.fixture
def sidecar(spawn: Spawner) -> Sidecar:
    return spawn(model=write_script(spawn.folder))


def test_a_cancel_ends_the_turn_and_keeps_what_was_said(sidecar: Sidecar) -> None:
    sent = sidecar.say("hang", chatId="c")
    sidecar.wait_event(
        sent["sessionId"], lambda e: e["type"] == "message.delta" and e["data"]["text"].endswith("e")
    )
    result = sidecar.call("turn/cancel", chatId="c")
    ended = sidecar.events(sent["sessionId"], "turn.ended")
    assert (result["outcome"], result["endSeq"]) == ("cancelled", ended[0]["seq"])
    assert ended[0]["data"]["reason"] == "cancelled"
    (turn,) = sidecar.call("chat/history", chatId="c")["turns"]
    assert turn["status"] == "cancelled"
    assert (turn["items"][-1]["text"], turn["items"][-1]["status"]) == (HALF_ANSWER, "cancelled")


def test_the_answer_comes_after_the_terminal_event(sidecar: Sidecar) -> None:
    sent = sidecar.say("hang", chatId="c")
    id = sidecar.ask("turn/cancel", chatId="c")
    sidecar.result(id)
    order = [frame.get("id") or frame["params"].get("type") for frame in sidecar.frames]
    assert order.index("turn.ended") < order.index(id)
    assert sidecar.events(sent["sessionId"], "turn.ended")[0]["turnId"] == sent["turnId"]


def test_a_chat_answers_again_after_a_cancel(sidecar: Sidecar) -> None:
    sidecar.say("hang", chatId="c")
    sidecar.call("turn/cancel", chatId="c")
    assert sidecar.run("other", chatId="c")["data"]["reason"] == "end_turn"


def test_an_idle_chat_has_nothing_to_cancel(sidecar: Sidecar) -> None:
    sidecar.run("other", chatId="c")
    assert sidecar.call("turn/cancel", chatId="c")["outcome"] == "nothing_running"


def test_a_turn_that_has_ended_says_so(sidecar: Sidecar) -> None:
    ended = sidecar.run("other", chatId="c")
    result = sidecar.call("turn/cancel", chatId="c", turnId=ended["turnId"])
    assert (result["outcome"], result["endSeq"]) == ("already_ended", ended["seq"])


def test_a_turn_that_never_was_is_not_found(sidecar: Sidecar) -> None:
    sidecar.run("other", chatId="c")
    assert sidecar.refused("turn/cancel", chatId="c", turnId="ghost").code == -32002


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("queue", "ran", "waits"), [("pause", 1, 1), ("keep", 2, 0), ("clear", 1, 0)])
def test_the_queue_pauses_goes_on_or_is_cleared(sidecar: Sidecar, queue: str, ran: int, waits: int) -> None:
    sidecar.say("hang", chatId="c")
    sent = sidecar.say("next", chatId="c")
    sidecar.call("turn/cancel", chatId="c", queue=queue)
    if queue == "keep":
        sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    assert len(sidecar.call("chat/history", chatId="c")["turns"]) == ran
    assert len(sidecar.call("prompt/list", chatId="c")["queue"]["items"]) == waits


def test_eight_cancels_at_once_end_one_turn(sidecar: Sidecar) -> None:
    sent = sidecar.say("hang", chatId="c")
    ids = [sidecar.ask("turn/cancel", chatId="c") for _ in range(8)]
    outcomes = [sidecar.result(id)["outcome"] for id in ids]
    assert "cancelled" in outcomes
    assert len(sidecar.events(sent["sessionId"], "turn.ended")) == 1


def test_a_cancel_right_behind_its_prompt_acts(sidecar: Sidecar) -> None:
    sent = sidecar.ask("prompt/send", chatId="c", promptId="p", text="hang")
    cancel = sidecar.ask("turn/cancel", chatId="c")
    result = sidecar.result(sent)
    assert sidecar.result(cancel)["outcome"] == "cancelled"
    assert sidecar.wait_turn(result["sessionId"], result["turnId"])["data"]["reason"] == "cancelled"
