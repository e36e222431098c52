"""`chat/delete`: the text is gone, a tombstone stays, and only `chat/open` makes the chat again."""

from __future__ import annotations

import base64

import pytest

from tests.support.pictures import png
from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

CANARY = "xyzzycanary"


def test_a_deleted_chat_is_nowhere_to_be_found(sidecar: Sidecar) -> None:
    session = sidecar.run(f"say {CANARY}", chatId="c")["sessionId"]
    assert sidecar.call("chat/delete", chatId="c") == {"sessionId": session, "deleted": True}
    assert sidecar.call("chat/list")["items"] == []
    assert sidecar.call("chat/search", query=CANARY)["items"] == []
    assert sidecar.refused("chat/history", chatId="c").code == -32009
    assert sidecar.refused("chat/open", chatId="c", ifMissing="fail").code in (-32009, -32002)


def test_deleting_again_changes_nothing(sidecar: Sidecar) -> None:
    sidecar.run("hello", chatId="c")
    sidecar.call("chat/delete", chatId="c")
    assert sidecar.call("chat/delete", chatId="c")["deleted"] in (True, False)


def test_a_prompt_alone_does_not_raise_the_dead(sidecar: Sidecar) -> None:
    sidecar.run("hello", chatId="c")
    sidecar.call("chat/delete", chatId="c")
    assert sidecar.refused("prompt/send", chatId="c", promptId="p", text="hello").code == -32009
    assert sidecar.call("chat/list")["items"] == []


def test_opening_makes_it_again_with_a_new_epoch(sidecar: Sidecar) -> None:
    before = sidecar.run("hello", chatId="c", prompt="p")
    sidecar.call("chat/delete", chatId="c")
    after = sidecar.call("chat/open", chatId="c", after={"epoch": before["epoch"], "seq": before["seq"]})
    assert (after["status"], after["sessionId"], after["turns"]) == ("created", before["sessionId"], [])
    assert after["epoch"] != before["epoch"]
    assert after["replay"]["kind"] in ("snapshot", "none")
    assert sidecar.say("hello", chatId="c", prompt="p")["disposition"] == "started"


def test_an_old_cursor_does_not_fit_the_new_epoch(sidecar: Sidecar) -> None:
    before = sidecar.run("hello", chatId="c")
    sidecar.call("chat/delete", chatId="c")
    sidecar.call("chat/open", chatId="c")
    refusal = sidecar.refused("events/read", chatId="c", after={"epoch": before["epoch"], "seq": 1})
    assert refusal.code == -32008


@pytest.mark.sampled(1)
@pytest.mark.parametrize("late", [False, True])
def test_the_bytes_of_the_text_leave_the_database(spawn: Spawner, late: bool) -> None:
    sidecar = spawn()
    sidecar.run(f"say {CANARY}", chatId="c")
    picture = base64.b64encode(png() + CANARY.encode()).decode()
    blob = sidecar.call("blob/put", data=picture, mimeType="image/png")["blobId"]
    content = [{"type": "image", "blobId": blob, "mimeType": "image/png"}]
    sent = sidecar.call("prompt/send", chatId="c", promptId="p", content=content)
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    sidecar.call("chat/delete", chatId="c")
    if late:
        sidecar.run("the chat next door", chatId="other")
    sidecar.close_stdin()
    sidecar.wait()
    kept = [
        path.name
        for path in spawn.data_dir.rglob("*")
        if path.is_file() and CANARY.encode() in path.read_bytes()
    ]
    assert kept == []


def test_deleting_a_running_chat_ends_its_turn(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("hang", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    assert sidecar.call("chat/delete", chatId="c")["deleted"] is True
    assert sidecar.refused("turn/cancel", chatId="c").code == -32009
    assert sidecar.call("chat/open", chatId="c")["state"] == "idle"


def test_another_reader_learns_that_the_chat_is_gone(spawn: Spawner) -> None:
    writer, reader = spawn(), spawn()
    session = writer.run("hello", chatId="c")["sessionId"]
    reader.call("chat/open", chatId="c")
    writer.call("chat/delete", chatId="c")
    reader.wait_event(session, "chat.deleted")


def test_a_chat_owned_by_a_live_process_is_not_deleted_by_another(spawn: Spawner) -> None:
    owner, other = spawn(model=write_script(spawn.folder)), spawn()
    sent = owner.say("hang", chatId="c")
    owner.wait_event(sent["sessionId"], "message.delta")
    assert other.refused("chat/delete", chatId="c").code == -32011


def test_a_reader_of_a_chat_that_was_deleted_and_made_again_learns_it(spawn: Spawner) -> None:
    writer, reader = spawn(), spawn()
    old = writer.run("one", chatId="c")
    reader.call("chat/open", chatId="c")
    writer.call("chat/delete", chatId="c")
    writer.call("chat/open", chatId="c")
    writer.run("two", chatId="c")
    reader.wait_event(old["sessionId"], "chat.deleted")
    again = reader.call("chat/open", chatId="c")
    assert (again["status"], again["epoch"] == old["epoch"], len(again["turns"])) == ("resumed", False, 1)


def test_opening_right_behind_a_deletion_elsewhere_makes_the_chat_again(spawn: Spawner) -> None:
    writer, reader = spawn(), spawn()
    old = writer.run("one", chatId="c")
    reader.call("chat/open", chatId="c")
    writer.call("chat/delete", chatId="c")
    again = reader.call("chat/open", chatId="c")
    assert (again["status"], again["epoch"] == old["epoch"], again["turns"]) == ("created", False, [])
    assert reader.run("two", chatId="c")["epoch"] == again["epoch"]


def test_a_prompt_to_a_chat_that_was_made_again_elsewhere_streams_its_answer(spawn: Spawner) -> None:
    writer, reader = spawn(), spawn()
    old = writer.run("one", chatId="c")
    reader.call("chat/open", chatId="c")
    writer.call("chat/delete", chatId="c")
    new = writer.call("chat/open", chatId="c")
    ended = reader.run("two", chatId="c")
    assert (ended["epoch"], ended["epoch"] == old["epoch"]) == (new["epoch"], False)
