"""What the model was sent with a turn can be read later, as long as it is stored."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.window.room import Json, Room, block, included, say_tool, sent_text
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

DAY_MS = 24 * 3600 * 1000


def read(sidecar: Sidecar, turn: str, chat: str = "c", **params: Any) -> Json:
    return sidecar.call("chat/context", chatId=chat, turnId=turn, **params)


def texts(found: Json) -> dict[str, str]:
    return {block["id"]: block["text"] for block in found["blocks"] if block.get("text")}


def database(spawn: Spawner) -> sqlite3.Connection:
    (path,) = Path(spawn.folder).rglob("sidecar.db")
    return sqlite3.connect(path)


def count(spawn: Spawner, table: str) -> int:
    db = database(spawn)
    (rows,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    db.close()
    return int(rows)


def test_every_text_that_the_provider_got_is_read_later(room: Room) -> None:
    room.write("AGENTS.md", "Use tabs.\n")
    room.ask("Remember the punch cards [[say=I do]]")
    turn = room.ask("And the looms [[say=Them too]]")["turnId"]
    before = read(room.sidecar, turn)
    found = texts(before)
    assert found["prompt"] == "And the looms [[say=Them too]]"
    assert "Use tabs." in found["rules"]
    assert "punch cards" in found["history"]
    assert "I do" in found["history"]
    assert '"read_file"' in found["tools"]
    assert (before["turnId"], before["request"], before["requests"]) == (turn, 1, 1)
    assert before.get("textGone") is None


def test_the_figures_are_those_of_the_event(sidecar: Sidecar) -> None:
    ended = sidecar.run("Hello", chatId="c")
    (event,) = sidecar.events(ended["sessionId"], "context.assembled")
    found = read(sidecar, ended["turnId"], includeText=False)
    names = ("model", "window", "budget", "used", "exact")
    assert {name: found.get(name) for name in names} == {name: event["data"].get(name) for name in names}
    assert [block["id"] for block in found["blocks"]] == [block["id"] for block in event["data"]["blocks"]]
    assert texts(found) == {}


def test_it_is_read_by_a_process_that_comes_later(spawn: Spawner) -> None:
    first = spawn()
    turn = first.run("Hello there", chatId="c")["turnId"]
    first.close_stdin()
    first.wait()
    assert texts(read(spawn(), turn))["prompt"] == "Hello there"


def test_each_request_of_a_turn_is_read(spawn: Spawner, tmp_path: Path) -> None:
    steps = [{"toolCall": {"name": "list_dir", "input": {"path": "."}}}, {"text": "Seen."}]
    (tmp_path / "script.json").write_text(json.dumps([{"steps": steps}]))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "loom.txt").write_text("A line\n")
    sidecar = spawn(model=f"scripted:{tmp_path}/script.json")
    ended = sidecar.run("Look", chatId="c", projectPath=str(tmp_path / "project"))
    second = read(sidecar, ended["turnId"], request=2)
    assert (second["request"], second["requests"]) == (2, 2)
    assert "loom.txt" in texts(second)["steps"]
    for number in (3, 0, -1):
        refusal = sidecar.refused("chat/context", chatId="c", turnId=ended["turnId"], request=number)
        assert (refusal.code, refusal.detail("field")) == (-32602, "request")


def test_files_that_make_space_for_an_answer_are_reported_as_dropped(room: Room) -> None:
    room.show("src/loom.py", "def loom(thread):\n    return thread\n" * 60)
    turn = room.ask(f"Explain src/loom.py [[n=1020]] {say_tool('list_dir')}")["turnId"]
    first, second = (read(room.sidecar, turn, request=number) for number in (1, 2))

    assert block(first, "file:src/loom.py")["included"] != "dropped"
    assert "def loom" in sent_text(room.asked[-2])
    assert "def loom" not in sent_text(room.asked[-1])
    dropped = block(second, "file:src/loom.py")
    assert (dropped["included"], dropped["gate"]) == ("dropped", "no-room")
    assert "file:src/loom.py" not in texts(second)
    assert sum(found["tokens"] for found in included(second)) == second["used"] <= second["budget"]


def test_a_turn_that_hangs_is_read_while_it_runs(spawn: Spawner, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps([{"steps": [{"hang": True}]}]))
    sidecar = spawn(model=f"scripted:{tmp_path}/script.json")
    sent = sidecar.say("Wait for me", chatId="c")
    sidecar.wait_event(sent["sessionId"], "context.assembled")
    sidecar.wait_until(lambda: bool(texts(read(sidecar, sent["turnId"]))), 10, "the texts")
    assert texts(read(sidecar, sent["turnId"]))["prompt"] == "Wait for me"


def test_an_imported_turn_says_that_nothing_was_recorded(sidecar: Sidecar) -> None:
    lines = '{"role":"user","text":"q"}\n{"role":"assistant","text":"a"}\n'
    sidecar.call("chat/import", chatId="c", data=lines)
    (turn,) = sidecar.call("chat/history", chatId="c")["turns"]
    found = read(sidecar, turn["id"])
    assert (found["blocks"], found["requests"], found["textGone"]) == ([], 0, "not_stored")
    assert found["used"] is None


def test_what_is_past_its_retention_is_removed(spawn: Spawner) -> None:
    first = spawn()
    old = first.run("An old prompt", chatId="c")["turnId"]
    first.close_stdin()
    first.wait()
    db = database(spawn)
    for change in (
        f"UPDATE sent_requests SET ts = ts - {91 * DAY_MS}",
        "UPDATE sent_uses SET day = day - 91",
    ):
        db.execute(change)
    db.commit()
    db.close()
    later = spawn()
    newer = later.run("A new prompt", chatId="d")["turnId"]
    read(later, newer, "d")
    later.wait_until(lambda: count(spawn, "sent_requests") == 1, 20, "the sweep")
    assert texts(read(later, newer, "d"))["prompt"] == "A new prompt"
    assert (count(spawn, "sent_texts"), count(spawn, "sent_uses")) == (1, 1)
    found = read(later, old)
    assert (found["textGone"], found["blocks"][0]["tokens"] > 0, texts(found)) == ("not_stored", True, {})


def test_without_its_rows_the_texts_of_a_turn_are_gone_and_its_figures_stay(spawn: Spawner) -> None:
    first = spawn()
    turn = first.run("Hello", chatId="c")["turnId"]
    first.close_stdin()
    first.wait()
    db = database(spawn)
    db.execute("DELETE FROM sent_texts")
    db.commit()
    db.close()
    found = read(spawn(), turn)
    assert (found["textGone"], found["used"] > 0, texts(found)) == ("damaged", True, {})


def test_a_purge_removes_what_only_its_chat_was_sent(spawn: Spawner) -> None:
    sidecar = spawn()
    sidecar.run("The same words", chatId="a")
    kept = sidecar.run("The same words", chatId="b")["turnId"]
    sidecar.run("Other words", chatId="a")
    read(sidecar, sidecar.call("chat/history", chatId="a")["turns"][-1]["id"], "a")
    assert count(spawn, "sent_texts") == 2
    sidecar.call("data/purge", scope="chat", chatId="a", confirm=True)
    assert (count(spawn, "sent_texts"), count(spawn, "sent_uses"), count(spawn, "sent_requests")) == (1, 1, 1)
    assert texts(read(sidecar, kept, "b"))["prompt"] == "The same words"
    sidecar.call("data/purge", scope="chat", chatId="b", confirm=True)
    assert count(spawn, "sent_texts") == 0


@pytest.mark.parametrize("other", [{"text": "x"}, {"budget": 100}, {"content": []}])
def test_a_turn_comes_without_a_prompt(sidecar: Sidecar, other: Json) -> None:
    turn = sidecar.run("Hello", chatId="c")["turnId"]
    refusal = sidecar.refused("chat/context", chatId="c", turnId=turn, **other)
    assert (refusal.code, refusal.detail("field")) == (-32602, next(iter(other)))


def test_an_unknown_turn_is_not_found(sidecar: Sidecar) -> None:
    sidecar.run("Hello", chatId="c")
    assert sidecar.refused("chat/context", chatId="c", turnId="ghost").code == -32002
    assert sidecar.refused("chat/context", chatId="c", request=1).code == -32602


def test_a_chat_grows_by_what_is_new(spawn: Spawner) -> None:
    """The history of a chat is sent with every turn and stored once."""
    sidecar = spawn()
    sidecar.call("chat/open", chatId="c", config={"window": 200_000})
    sizes = []
    for part in range(3):
        for turn in range(20):
            words = " ".join(
                f"{word:x}" for word in range(part * 9999 + turn * 401, part * 9999 + turn * 401 + 80)
            )
            ended = sidecar.run(f"{words}\n{words[::-1]}", chatId="c")
        read(sidecar, ended["turnId"])
        db = database(spawn)
        (size,) = db.execute("SELECT sum(length(data)) FROM sent_texts").fetchone()
        sizes.append(size)
        db.close()
    said = 20 * 2 * len(words) * 2
    assert sizes[2] - sizes[1] < said
    assert sizes[2] - sizes[1] < 1.5 * (sizes[1] - sizes[0])
