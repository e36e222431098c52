"""Edit-and-resend and regenerate: the head moves, siblings stay, nothing is erased."""

from __future__ import annotations

import pytest

from tests.support.reading import last_messages
from tests.support.scripts import HALF_ANSWER, write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner


def test_replace_rewinds_before_the_turn_and_sends_in_one_step(sidecar: Sidecar) -> None:
    ended = [sidecar.run(text, chatId="c") for text in ("one", "two", "three")]
    sent = sidecar.say("second", chatId="c", replace={"turnId": ended[1]["turnId"]})
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    assert last_messages(turns) == ["one", "second"]
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
    assert last_messages(sidecar.call("chat/history", chatId="c")["turns"]) == ["one"]


def test_retry_from_the_start_regenerates_and_keeps_the_sibling(sidecar: Sidecar) -> None:
    sidecar.run("zero", chatId="c")
    old = sidecar.run("one", chatId="c")
    sent = sidecar.call("turn/retry", chatId="c", promptId="again")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    assert last_messages(turns) == ["zero", "one"]
    assert (turns[1]["id"], turns[1]["siblings"]) == (sent["turnId"], [old["turnId"]])
    assert sent["turnId"] != old["turnId"]


def test_retry_names_its_turn_and_hides_what_follows(sidecar: Sidecar) -> None:
    ended = [sidecar.run(text, chatId="c") for text in ("one", "two", "three")]
    sent = sidecar.call("turn/retry", chatId="c", promptId="again", turnId=ended[0]["turnId"])
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    assert last_messages(sidecar.call("chat/history", chatId="c")["turns"]) == ["one"]


def test_the_branches_survive_a_restart(spawn: Spawner) -> None:
    first = spawn()
    old = first.run("one", chatId="c")
    sent = first.say("uno", chatId="c", replace={"turnId": old["turnId"]})
    first.wait_turn(sent["sessionId"], sent["turnId"])
    first.kill()
    (turn,) = spawn().call("chat/open", chatId="c")["turns"]
    assert (turn["items"][-1]["text"], turn["siblings"]) == ("uno", [old["turnId"]])


def test_retry_with_another_model_uses_it(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sidecar.run("hello", chatId="c")
    sent = sidecar.call("turn/retry", chatId="c", promptId="again", overrides={"model": "echo:"})
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    (turn,) = sidecar.call("chat/history", chatId="c")["turns"]
    assert (turn["items"][-1]["text"], turn["model"]) == ("hello", "echo:")


def test_retry_during_a_turn_waits_or_is_refused(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sidecar.say("hang", chatId="c")
    assert sidecar.refused("turn/retry", chatId="c", promptId="again").code == -32004


def test_retry_in_an_empty_chat_is_not_found(sidecar: Sidecar) -> None:
    sidecar.call("chat/open", chatId="c")
    assert sidecar.refused("turn/retry", chatId="c", promptId="again").code == -32002


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["cancel", "kill"])
def test_retry_from_here_goes_on_with_an_unfinished_turn(spawn: Spawner, how: str) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("hang", chatId="c")
    sidecar.wait_event(
        sent["sessionId"], lambda e: e["type"] == "message.delta" and e["data"]["text"].endswith("e")
    )
    if how == "cancel":
        sidecar.call("turn/cancel", chatId="c")
    else:
        sidecar.kill()
        sidecar = spawn(model=write_script(spawn.folder))
    retried = sidecar.call(
        "turn/retry", chatId="c", promptId="again", **{"from": "here"}, overrides={"model": "echo:"}
    )
    assert sidecar.wait_turn(retried["sessionId"], retried["turnId"])["data"]["reason"] == "end_turn"
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    said = [item["text"] for turn in turns for item in turn["items"] if item["type"] == "message"]
    assert said[0] == HALF_ANSWER
    assert len(said) == 2


def test_a_turn_that_ended_well_cannot_go_on_from_here(sidecar: Sidecar) -> None:
    sidecar.run("one", chatId="c")
    assert sidecar.refused("turn/retry", chatId="c", promptId="again", **{"from": "here"}).code == -32010


def _edited(sidecar: Sidecar, *texts: str, at: int) -> tuple[list[str], str]:
    """A chat of these prompts, of which one was edited; the ids of its turns, and that of the new turn."""
    old = [sidecar.run(text, chatId="c")["turnId"] for text in texts]
    sent = sidecar.say("edited", chatId="c", replace={"turnId": old[at]})
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    return old, sent["turnId"]


def test_a_sibling_says_where_its_branch_ends(sidecar: Sidecar) -> None:
    (a, b, _, d), edited = _edited(sidecar, "A", "B", "C", "D", at=1)
    first, second = sidecar.call("chat/history", chatId="c")["turns"]
    assert ([first["id"], second["id"]], first["branches"]) == ([a, edited], [])
    (branch,) = second["branches"]
    assert (branch["turnId"], branch["tip"], branch["turns"]) == (b, d, 3)


@pytest.mark.parametrize("of", [1, 2, 3])
def test_the_history_around_a_hidden_turn_is_that_of_its_branch(sidecar: Sidecar, of: int) -> None:
    old, edited = _edited(sidecar, "A", "B", "C", "D", at=1)
    page = sidecar.call("chat/history", chatId="c", around={"turnId": old[of]})
    assert last_messages(page["turns"]) == ["A", "B", "C", "D"]
    assert [turn.get("hidden", False) for turn in page["turns"]] == [False, True, True, True]
    assert page["turns"][1]["siblings"] == [edited]
    assert (page["before"], page["after"]) == (None, None)


def test_the_pages_of_a_hidden_branch_stay_in_it(sidecar: Sidecar) -> None:
    old, _ = _edited(sidecar, "A", "B", "C", "D", "E", at=1)
    sidecar.run("after the edit", chatId="c")
    page = sidecar.call("chat/history", chatId="c", around={"turnId": old[2]}, limit=1)
    assert last_messages(page["turns"]) == ["C"]
    newer = sidecar.call("chat/history", chatId="c", after=page["after"])
    older = sidecar.call("chat/history", chatId="c", before=page["before"])
    assert (last_messages(older["turns"]), last_messages(newer["turns"])) == (["A", "B"], ["D", "E"])


def test_the_tip_shows_a_hidden_branch_again(sidecar: Sidecar) -> None:
    _, edited = _edited(sidecar, "A", "B", "C", at=1)
    (branch,) = sidecar.call("chat/history", chatId="c")["turns"][1]["branches"]
    sidecar.call("chat/rewind", chatId="c", to={"turnId": branch["tip"]})
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    assert last_messages(turns) == ["A", "B", "C"]
    assert [(other["turnId"], other["tip"]) for other in turns[1]["branches"]] == [(edited, edited)]


def test_a_branch_of_a_branch_is_found_by_its_newest_turn(sidecar: Sidecar) -> None:
    (_, b, c), _ = _edited(sidecar, "A", "B", "C", at=2)
    sent = sidecar.say("other B", chatId="c", replace={"turnId": b})
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    (branch,) = sidecar.call("chat/history", chatId="c")["turns"][1]["branches"]
    page = sidecar.call("chat/history", chatId="c", around={"turnId": branch["tip"]})
    assert last_messages(page["turns"]) == ["A", "B", "edited"]
    assert page["turns"][2]["branches"][0]["turnId"] == c
