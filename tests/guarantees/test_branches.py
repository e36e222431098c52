"""Edit-and-resend and regenerate: the head moves, siblings stay, nothing is erased."""

from __future__ import annotations

import pytest

from tests.support.reading import answers
from tests.support.scripts import HALF, play
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner


def test_replace_rewinds_before_the_turn_and_sends_in_one_step(sidecar: Sidecar) -> None:
    ended = [sidecar.run(text, chatId="c") for text in ("one", "two", "three")]
    sent = sidecar.say("second", chatId="c", replace={"turnId": ended[1]["turnId"]})
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    assert answers(turns) == ["one", "second"]
    assert turns[1]["parentTurnId"] == turns[0]["id"]
    assert ended[1]["turnId"] in turns[1]["siblings"]
    (rewound,) = sidecar.events(sent["sessionId"], "chat.rewound")
    assert (rewound["data"]["head"], rewound["data"]["hidden"]) == (
        ended[0]["turnId"],
        [ended[1]["turnId"], ended[2]["turnId"]],
    )


def test_the_first_turn_can_be_replaced(sidecar: Sidecar) -> None:
    first = sidecar.run("one", chatId="c")
    sent = sidecar.say("uno", chatId="c", replace={"turnId": first["turnId"]})
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    (turn,) = sidecar.call("chat/history", chatId="c")["turns"]
    assert (turn["items"][-1]["text"], turn["siblings"]) == ("uno", [first["turnId"]])


def test_a_repeated_replace_is_a_duplicate_and_rewinds_once(sidecar: Sidecar) -> None:
    first = sidecar.run("one", chatId="c")
    for _ in range(2):
        sent = sidecar.say("uno", chatId="c", prompt="p", replace={"turnId": first["turnId"]})
        sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    assert sent["disposition"] == "duplicate"
    assert len(sidecar.events(sent["sessionId"], "chat.rewound")) == 1


def test_an_unknown_turn_cannot_be_replaced(sidecar: Sidecar) -> None:
    sidecar.run("one", chatId="c")
    refusal = sidecar.refused("prompt/send", chatId="c", promptId="x", text="y", replace={"turnId": "ghost"})
    assert refusal.code == -32002
    assert answers(sidecar.call("chat/history", chatId="c")["turns"]) == ["one"]


def test_retry_from_the_start_regenerates_and_keeps_the_sibling(sidecar: Sidecar) -> None:
    sidecar.run("zero", chatId="c")
    old = sidecar.run("one", chatId="c")
    sent = sidecar.call("turn/retry", chatId="c", promptId="again")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    assert answers(turns) == ["zero", "one"]
    assert (turns[1]["id"], turns[1]["siblings"]) == (sent["turnId"], [old["turnId"]])
    assert sent["turnId"] != old["turnId"]


def test_retry_names_its_turn_and_hides_what_follows(sidecar: Sidecar) -> None:
    ended = [sidecar.run(text, chatId="c") for text in ("one", "two", "three")]
    sent = sidecar.call("turn/retry", chatId="c", promptId="again", turnId=ended[0]["turnId"])
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    assert answers(sidecar.call("chat/history", chatId="c")["turns"]) == ["one"]


def test_the_branches_survive_a_restart(spawn: Spawner) -> None:
    first = spawn()
    old = first.run("one", chatId="c")
    sent = first.say("uno", chatId="c", replace={"turnId": old["turnId"]})
    first.wait_turn(sent["sessionId"], sent["turnId"])
    first.kill()
    (turn,) = spawn().call("chat/open", chatId="c")["turns"]
    assert (turn["items"][-1]["text"], turn["siblings"]) == ("uno", [old["turnId"]])


def test_retry_with_another_model_uses_it(spawn: Spawner) -> None:
    sidecar = spawn(model=play(spawn.folder))
    sidecar.run("hello", chatId="c")
    sent = sidecar.call("turn/retry", chatId="c", promptId="again", overrides={"model": "echo:"})
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    (turn,) = sidecar.call("chat/history", chatId="c")["turns"]
    assert (turn["items"][-1]["text"], turn["model"]) == ("hello", "echo:")


def test_retry_during_a_turn_waits_or_is_refused(spawn: Spawner) -> None:
    sidecar = spawn(model=play(spawn.folder))
    sidecar.say("hang", chatId="c")
    assert sidecar.refused("turn/retry", chatId="c", promptId="again").code == -32004


def test_retry_in_an_empty_chat_is_not_found(sidecar: Sidecar) -> None:
    sidecar.call("chat/open", chatId="c")
    assert sidecar.refused("turn/retry", chatId="c", promptId="again").code == -32002


@pytest.mark.parametrize("how", ["cancel", "kill"])
def test_retry_from_here_goes_on_with_an_unfinished_turn(spawn: Spawner, how: str) -> None:
    sidecar = spawn(model=play(spawn.folder))
    sent = sidecar.say("hang", chatId="c")
    sidecar.wait_event(
        sent["sessionId"], lambda e: e["type"] == "message.delta" and e["data"]["text"].endswith("e")
    )
    if how == "cancel":
        sidecar.call("turn/cancel", chatId="c")
    else:
        sidecar.kill()
        sidecar = spawn(model=play(spawn.folder))
    retried = sidecar.call(
        "turn/retry", chatId="c", promptId="again", **{"from": "here"}, overrides={"model": "echo:"}
    )
    assert sidecar.wait_turn(retried["sessionId"], retried["turnId"])["data"]["reason"] == "end_turn"
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    said = [item["text"] for turn in turns for item in turn["items"] if item["type"] == "message"]
    assert said[0] == HALF
    assert len(said) == 2


def test_a_turn_that_ended_well_cannot_go_on_from_here(sidecar: Sidecar) -> None:
    sidecar.run("one", chatId="c")
    assert sidecar.refused("turn/retry", chatId="c", promptId="again", **{"from": "here"}).code == -32010
