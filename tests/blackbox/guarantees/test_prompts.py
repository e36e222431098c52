"""Prompts and their queue: each runs once, in order, and waits when it should. Guarantee 6 and section 3."""

from __future__ import annotations

import base64

import pytest

from tests.support.pictures import png
from tests.support.reading import is_idle, item_text
from tests.support.scripts import SLOW_ANSWER, write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json
from tests.unit.fake_provider.images import PNG


@pytest.fixture
def scripted(spawn: Spawner) -> Sidecar:
    return spawn(model=write_script(spawn.folder))


@pytest.fixture
def busy(scripted: Sidecar) -> Sidecar:
    """A sidecar whose chat `c` has a turn (prompt `p0`) that streams and will not end by itself."""
    sent = scripted.say("hang", chatId="c", prompt="p0")
    scripted.wait_event(sent["sessionId"], "message.delta")
    return scripted


def waiting(sidecar: Sidecar, chat: str = "c") -> list[str]:
    items = sidecar.call("prompt/list", chatId=chat)["queue"]["items"]
    assert [item["position"] for item in items] == sorted(item["position"] for item in items)
    return [item["promptId"] for item in items]


def paused(sidecar: Sidecar, chat: str = "c") -> bool:
    result: bool = sidecar.call("prompt/list", chatId=chat)["queue"]["paused"]
    return result


def end(sidecar: Sidecar, how: str) -> None:
    if how == "kill":
        return sidecar.kill()
    sidecar.close_stdin()
    sidecar.wait()
    return None


def test_a_repeated_prompt_answers_duplicate_and_does_not_run(sidecar: Sidecar) -> None:
    first = sidecar.say("hello", chatId="c", prompt="p")
    sidecar.wait_turn(first["sessionId"], first["turnId"])
    second = sidecar.say("something else", chatId="c", prompt="p")
    assert (second["disposition"], second["turnId"]) == ("duplicate", first["turnId"])
    assert len(sidecar.call("chat/history", chatId="c")["turns"]) == 1


def test_a_prompt_is_a_duplicate_in_its_own_session_only(sidecar: Sidecar) -> None:
    sidecar.run("hello", chatId="a", prompt="p")
    assert sidecar.say("hello", chatId="b", prompt="p")["disposition"] == "started"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["kill", "exit"])
def test_a_prompt_never_runs_twice_across_a_restart(spawn: Spawner, how: str) -> None:
    first = spawn(model=write_script(spawn.folder))
    sent = first.say("hang", chatId="c", prompt="p")
    first.wait_event(sent["sessionId"], "message.delta")
    end(first, how)
    second = spawn(model=write_script(spawn.folder))
    again = second.say("hang", chatId="c", prompt="p")
    assert (again["disposition"], again["turnId"]) == ("duplicate", sent["turnId"])
    (turn,) = second.call("chat/history", chatId="c")["turns"]
    assert turn["status"] == "interrupted"


def test_a_waiting_prompt_is_a_duplicate_too(busy: Sidecar) -> None:
    first = busy.say("next", chatId="c", prompt="p1")
    second = busy.say("next", chatId="c", prompt="p1")
    assert (second["disposition"], second["turnId"]) == ("duplicate", first["turnId"])
    assert waiting(busy) == ["p1"]


def test_two_equal_prompts_at_once_run_once(sidecar: Sidecar) -> None:
    ids = [sidecar.ask("prompt/send", chatId="c", promptId="p", text="hello") for _ in range(8)]
    results = [sidecar.result(id) for id in ids]
    assert sorted(r["disposition"] for r in results) == ["duplicate"] * 7 + ["started"]
    assert len({r["turnId"] for r in results}) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("params", [{}, {"text": "a", "content": [{"type": "text", "text": "a"}]}])
def test_a_prompt_has_either_text_or_content(sidecar: Sidecar, params: Json) -> None:
    assert sidecar.refused("prompt/send", chatId="c", promptId="p", **params).code == -32602


def test_prompts_sent_at_once_run_in_their_order(sidecar: Sidecar) -> None:
    ids = [sidecar.ask("prompt/send", chatId="c", promptId=f"p{n}", text=f"text {n}") for n in range(20)]
    results = [sidecar.result(id) for id in ids]
    sidecar.wait_turn(results[-1]["sessionId"], results[-1]["turnId"])
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    assert [turn["promptId"] for turn in turns] == [f"p{n}" for n in range(20)]
    assert [turn["id"] for turn in turns] == [result["turnId"] for result in results]


def test_a_queued_prompt_says_where_it_waits(busy: Sidecar) -> None:
    sent = [busy.say(f"text {n}", chatId="c", prompt=f"p{n}") for n in (1, 2, 3)]
    assert [s["disposition"] for s in sent] == ["queued"] * 3
    positions = [s["position"] for s in sent]
    assert [p - positions[0] for p in positions] == [0, 1, 2]
    items = busy.call("prompt/list", chatId="c")["queue"]["items"]
    assert [(i["promptId"], i["turnId"], i["content"][0]["text"]) for i in items] == [
        (f"p{n}", s["turnId"], f"text {n}") for n, s in zip((1, 2, 3), sent, strict=True)
    ]
    assert [e["data"]["promptId"] for e in busy.events(sent[0]["sessionId"], "prompt.queued")] == [
        "p1",
        "p2",
        "p3",
    ]


def test_the_queue_goes_on_when_a_turn_ends(scripted: Sidecar) -> None:
    scripted.say("slow", chatId="c")
    second = scripted.say("other", chatId="c")
    assert second["disposition"] == "queued"
    assert scripted.wait_turn(second["sessionId"], second["turnId"])["data"]["reason"] == "end_turn"


def test_the_queue_holds_256_prompts(busy: Sidecar) -> None:
    ids = [busy.ask("prompt/send", chatId="c", promptId=f"q{n}", text="x") for n in range(257)]
    assert {busy.result(id)["disposition"] for id in ids[:256]} == {"queued"}
    refusal = busy.answer(ids[256])["error"]
    assert refusal["code"] == -32001
    assert refusal["data"]["retryAfterMs"] >= 0
    assert len(waiting(busy)) == 256


def test_a_queued_prompt_can_be_edited_and_runs_as_edited(busy: Sidecar) -> None:
    sent = busy.say("draft", chatId="c", prompt="p1", overrides={"model": "echo:"})
    content = [{"type": "text", "text": "final"}]
    queue = busy.call("prompt/edit", chatId="c", promptId="p1", content=content)["queue"]
    assert queue["items"][0]["content"] == content
    busy.call("turn/cancel", chatId="c", queue="keep")
    busy.wait_turn(sent["sessionId"], sent["turnId"])
    turn = busy.call("chat/history", chatId="c")["turns"][-1]
    assert [item["text"] for item in turn["items"] if item["type"] == "message"] == ["final"]
    assert len(busy.events(sent["sessionId"], "prompt.edited")) == 1


def test_a_queued_prompt_can_be_edited_as_plain_text(busy: Sidecar) -> None:
    busy.say("draft", chatId="c", prompt="p1")
    queue = busy.call("prompt/edit", chatId="c", promptId="p1", text="final")["queue"]
    assert queue["items"][0]["content"] == [{"type": "text", "text": "final"}]
    for wrong in ({}, {"text": ""}, {"text": "x", "content": [{"type": "text", "text": "x"}]}):
        refusal = busy.refused("prompt/edit", chatId="c", promptId="p1", **wrong)
        assert (refusal.code, refusal.detail("field")) == (-32602, "text")


def test_an_edit_of_an_older_revision_is_refused(busy: Sidecar) -> None:
    busy.say("draft", chatId="c", prompt="p1")
    old = busy.call("prompt/list", chatId="c")["queue"]["items"][0]["revision"]
    content = [{"type": "text", "text": "mine"}]
    busy.call("prompt/edit", chatId="c", promptId="p1", content=content, revision=old)
    for method, params in (("prompt/edit", {"content": content}), ("prompt/remove", {})):
        refusal = busy.refused(method, chatId="c", promptId="p1", revision=old, **params)
        assert refusal.code == -32010


def test_a_removed_prompt_never_runs(busy: Sidecar) -> None:
    first = busy.say("one", chatId="c", prompt="p1")
    second = busy.say("two", chatId="c", prompt="p2")
    busy.call("prompt/remove", chatId="c", promptId="p1")
    assert waiting(busy) == ["p2"]
    busy.call("turn/cancel", chatId="c", queue="keep")
    busy.wait_turn(second["sessionId"], second["turnId"])
    assert [e["data"]["promptId"] for e in busy.events(first["sessionId"], "prompt.removed")] == ["p1"]
    assert "p1" not in [turn["promptId"] for turn in busy.call("chat/history", chatId="c")["turns"]]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["prompt/edit", "prompt/remove"])
def test_a_prompt_that_does_not_wait_cannot_change(busy: Sidecar, method: str) -> None:
    params: Json = {"content": [{"type": "text", "text": "x"}]} if method == "prompt/edit" else {}
    assert busy.refused(method, chatId="c", promptId="ghost", **params).code == -32002
    assert busy.refused(method, chatId="c", promptId="p0", **params).code in (-32002, -32010)


def test_the_queue_pauses_after_a_cancel_until_it_is_resumed(busy: Sidecar) -> None:
    sent = busy.say("next", chatId="c", prompt="p1")
    busy.call("turn/cancel", chatId="c")
    assert (paused(busy), waiting(busy)) == (True, ["p1"])
    busy.call("prompt/resume", chatId="c")
    busy.wait_turn(sent["sessionId"], sent["turnId"])
    assert (paused(busy), waiting(busy)) == (False, [])


def test_the_queue_pauses_after_a_failed_turn(scripted: Sidecar) -> None:
    sent = scripted.say("break slowly", chatId="c")
    scripted.say("next", chatId="c", prompt="p1")
    scripted.wait_turn(sent["sessionId"], sent["turnId"])
    scripted.wait_event(sent["sessionId"], is_idle)
    assert (paused(scripted), waiting(scripted)) == (True, ["p1"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["kill", "exit"])
def test_the_queue_pauses_after_a_restart(spawn: Spawner, how: str) -> None:
    first = spawn(model=write_script(spawn.folder))
    first.say("hang", chatId="c", prompt="p0")
    queued = [first.say(f"text {n}", chatId="c", prompt=f"p{n}") for n in (1, 2)]
    end(first, how)
    second = spawn(model=write_script(spawn.folder))
    opened = second.call("chat/open", chatId="c")
    assert opened["queue"]["paused"] is True
    assert [item["promptId"] for item in opened["queue"]["items"]] == ["p1", "p2"]
    second.call("prompt/resume", chatId="c")
    for sent in queued:
        assert second.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "end_turn"


def test_a_new_prompt_starts_at_once_while_the_queue_is_paused(busy: Sidecar) -> None:
    busy.say("waits", chatId="c", prompt="p1")
    busy.call("turn/cancel", chatId="c")
    sent = busy.say("now", chatId="c", prompt="p2")
    assert sent["disposition"] == "started"
    busy.wait_turn(sent["sessionId"], sent["turnId"])
    assert waiting(busy) == ["p1"]


def test_reject_answers_that_a_turn_is_in_progress(busy: Sidecar) -> None:
    refusal = busy.refused("prompt/send", chatId="c", promptId="p1", text="x", delivery="reject")
    assert refusal.code == -32004
    assert waiting(busy) == []


def test_reject_starts_on_an_idle_chat(scripted: Sidecar) -> None:
    assert scripted.say("x", chatId="c", delivery="reject")["disposition"] == "started"


def test_an_interrupt_ends_the_turn_and_runs_ahead_of_the_queue(busy: Sidecar) -> None:
    waits = busy.say("later", chatId="c", prompt="p1")
    sent = busy.say("urgent", chatId="c", prompt="p2", delivery="interrupt")
    session = sent["sessionId"]
    busy.wait_turn(session, sent["turnId"])
    ended = busy.events(session, "turn.ended")
    assert (ended[0]["data"]["reason"], ended[1]["turnId"]) == ("cancelled", sent["turnId"])
    assert waits["turnId"] not in [e["turnId"] for e in ended[:2]]


def test_a_steer_joins_the_running_turn(scripted: Sidecar) -> None:
    sent = scripted.say("slow", chatId="c", prompt="p0")
    scripted.wait_event(sent["sessionId"], "message.delta")
    steered = scripted.say("and this", chatId="c", prompt="p1", delivery="steer")
    assert (steered["disposition"], steered["turnId"]) == ("steered", sent["turnId"])
    scripted.wait_turn(sent["sessionId"], sent["turnId"])
    (turn,) = scripted.call("chat/history", chatId="c")["turns"]
    assert [(item["type"], item_text(item)) for item in turn["items"]] == [
        ("user", "slow"),
        ("message", SLOW_ANSWER),
        ("user", "and this"),
        ("message", "Answer."),
    ]


def test_a_steered_prompt_is_not_steered_twice(scripted: Sidecar) -> None:
    sent = scripted.say("slow", chatId="c", prompt="p0")
    scripted.say("and this", chatId="c", prompt="p1", delivery="steer")
    assert scripted.say("and this", chatId="c", prompt="p1", delivery="steer")["disposition"] == "duplicate"
    scripted.wait_turn(sent["sessionId"], sent["turnId"])


def test_a_steer_without_a_turn_still_runs(scripted: Sidecar) -> None:
    scripted.run("hello", chatId="c")
    sent = scripted.say("late", chatId="c", delivery="steer")
    assert sent["disposition"] in ("queued", "started")
    assert scripted.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "end_turn"


def test_a_prompt_for_a_turn_that_does_not_run_is_refused(busy: Sidecar) -> None:
    refusal = busy.refused(
        "prompt/send", chatId="c", promptId="p1", text="x", delivery="steer", expectTurnId="other"
    )
    assert refusal.code == -32010


def test_content_blocks_come_back_in_the_history(sidecar: Sidecar) -> None:
    image = {"type": "image", "data": PNG.data, "mimeType": "image/png"}
    blocks = [
        {"type": "text", "text": "look"},
        image,
        {"type": "resource_link", "uri": "file:///a"},
        {"type": "resource", "uri": "file:///b", "text": "body", "range": {"start": 0, "end": 2}},
    ]
    sent = sidecar.call("prompt/send", chatId="c", promptId="p", content=blocks)
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    kept = sidecar.call("chat/history", chatId="c")["turns"][0]["items"][0]["content"]
    assert [kept[0], kept[2], kept[3]] == [blocks[0], blocks[2], blocks[3]]
    assert (kept[1]["mimeType"], kept[1]["size"], "data" in kept[1]) == (
        "image/png",
        len(base64.b64decode(PNG.data)),
        False,
    )
    assert sidecar.call("blob/read", blobId=kept[1]["blobId"])["data"] == image["data"]


def test_an_attached_file_is_kept_as_it_was_at_send_time(spawn: Spawner) -> None:
    sidecar, picture = spawn(), spawn.folder / "a.png"
    picture.write_bytes(png())
    block = {"type": "image", "path": str(picture), "mimeType": "image/png"}
    sent = sidecar.call("prompt/send", chatId="c", promptId="p", content=[block])
    picture.write_bytes(b"after")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    kept = sidecar.call("chat/history", chatId="c")["turns"][0]["items"][0]["content"][0]
    assert sidecar.call("blob/read", blobId=kept["blobId"])["total"] == len(png())


BROKEN: list[Json] = [
    {"type": "text"},
    {"type": "image"},
    {"type": "image", "data": "no base64!", "mimeType": "image/png"},
    {"type": "image", "blobId": "unknown", "mimeType": "image/png"},
    {"type": "image", "path": "/nowhere/at/all.png", "mimeType": "image/png"},
    {"type": "image", "path": "/dev/zero", "mimeType": "image/png"},
    {"type": "image", "path": "/", "mimeType": "image/png"},
    {"type": "resource_link"},
    {"type": "poem", "text": "x"},
]


def test_a_broken_block_is_refused_and_no_turn_starts(sidecar: Sidecar) -> None:
    for block in BROKEN:
        refusal = sidecar.refused("prompt/send", chatId="c", promptId="p", content=[block])
        assert refusal.code in (-32602, -32002), block
    sidecar.call("chat/open", chatId="c")
    assert sidecar.call("chat/history", chatId="c")["turns"] == []
