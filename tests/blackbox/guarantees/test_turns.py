"""Guarantees 1 and 3, and section 4: what a turn says, in which order, and what stays of it."""

from __future__ import annotations

from tests.support.reading import is_idle, last_messages, streamed_text, without_deltas
from tests.support.scripts import BEFORE, write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

TEXTS = [
    "hello",
    "two words",
    "  spaces  around\n\nand lines \t",
    "ünïcödé 👩‍👩‍👧 עברית",
    "x" * 300_000,
    "%s {} \\n \0",
]


def test_echo_streams_the_prompt_back_unaltered(sidecar: Sidecar) -> None:
    for number, text in enumerate(TEXTS):
        session = sidecar.run(text, chatId=f"c{number}")["sessionId"]
        assert streamed_text(sidecar.events(session)) == text
        assert sidecar.events(session, "message.completed")[0]["data"]["item"]["text"] == text


def test_a_turn_tells_its_story_in_order(sidecar: Sidecar) -> None:
    ended = sidecar.run("hello there", chatId="c", prompt="p1")
    session, turn = ended["sessionId"], ended["turnId"]
    sidecar.wait_event(session, is_idle)
    story = [e["type"] for e in sidecar.events(session) if e["type"] != "message.delta"]
    told = ["turn.started", "message.started", "message.completed", "turn.ended"]
    assert [type for type in story if type in told] == told
    assert story.index("prompt.accepted") < story.index("message.started")
    assert all(e.get("turnId") == turn for e in sidecar.events(session) if e["type"].split(".")[0] == "turn")


def test_the_state_runs_and_comes_to_rest(sidecar: Sidecar) -> None:
    session = sidecar.run("hello", chatId="c")["sessionId"]
    sidecar.wait_event(session, is_idle)
    states = [e["data"]["state"] for e in sidecar.events(session, "chat.state")]
    assert states == ["running", "idle"]
    assert sidecar.call("chat/open", chatId="c")["state"] == "idle"


def test_history_has_the_same_items_as_the_events(sidecar: Sidecar) -> None:
    ended = sidecar.run("hello there", chatId="c", prompt="p1")
    (turn,) = sidecar.call("chat/history", chatId="c")["turns"]
    accepted = sidecar.events(ended["sessionId"], "prompt.accepted")[0]["data"]["item"]
    completed = sidecar.events(ended["sessionId"], "message.completed")[0]["data"]["item"]
    assert turn["items"] == [accepted, completed]
    assert (turn["id"], turn["promptId"], turn["status"], turn["reason"], turn["model"]) == (
        ended["turnId"],
        "p1",
        "completed",
        "end_turn",
        "echo:",
    )


def test_everything_seen_survives_a_kill(spawn: Spawner) -> None:
    first = spawn()
    session = first.run("acknowledged words", chatId="c")["sessionId"]
    first.kill()
    second = spawn()
    stored, seen = without_deltas(second.journal(session)), without_deltas(first.events(session))
    assert [e for e in stored if e["seq"] <= seen[-1]["seq"]] == seen


def test_chats_run_side_by_side(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sidecar.say("hang", chatId="stuck")
    assert sidecar.run("other", chatId="free")["data"]["reason"] == "end_turn"


def test_a_failing_model_ends_the_turn_with_its_error_and_keeps_the_text(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    ended = sidecar.run("break", chatId="c")
    assert ended["data"]["reason"] == "error"
    assert (ended["data"]["error"]["code"], ended["data"]["error"]["data"]["name"]) == (
        -32013,
        "provider_error",
    )
    (turn,) = sidecar.call("chat/history", chatId="c")["turns"]
    assert turn["status"] == "failed"
    assert [item["text"] for item in turn["items"] if item["type"] == "message"] == [BEFORE]


def test_an_unknown_model_ends_the_turn_with_an_error(spawn: Spawner) -> None:
    sidecar = spawn(model="nonsense:none")
    answer = sidecar.answer(sidecar.ask("prompt/send", chatId="c", promptId="p", text="hello"))
    if "error" in answer:
        assert answer["error"]["code"] in (-32013, -32602)
    else:
        ended = sidecar.wait_turn(answer["result"]["sessionId"], answer["result"]["turnId"])
        assert ended["data"]["error"]["data"]["reason"] == "model_unknown"


def test_an_override_names_the_model_of_one_prompt(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sidecar.run("hello", chatId="c", overrides={"model": "echo:"})
    sidecar.run("hello", chatId="c")
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    assert last_messages(turns) == ["hello", "Answer."]
    assert turns[0]["model"] == "echo:"


def test_usage_adds_up_over_the_turns(sidecar: Sidecar) -> None:
    first = sidecar.run("one two three", chatId="c")["data"]["usage"]
    second = sidecar.run("four", chatId="c")["data"]["usage"]
    total = sidecar.call("chat/open", chatId="c")["usage"]
    assert total["outputTokens"] == first["outputTokens"] + second["outputTokens"]


def test_deltas_can_be_paced(spawn: Spawner) -> None:
    sidecar = spawn(deltaMs=50)
    text = " ".join("word" for _ in range(2000))
    session = sidecar.run(text, chatId="c")["sessionId"]
    assert streamed_text(sidecar.events(session)) == text
    assert len(sidecar.events(session, "message.delta")) < 200
