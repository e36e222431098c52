"""Export and import: what goes out comes in as it was; plain turns come in by the thousand."""

from __future__ import annotations

import json

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.processes import cpu_seconds
from tests.support.reading import item_text, last_messages
from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json
from tests.unit.fake_provider.images import PNG


def lines(*turns: Json) -> str:
    return "".join(json.dumps(turn) + "\n" for turn in turns)


def without_ids(turns: list[Json]) -> list[Json]:
    """Turns in a new chat may have ids of their own; everything else must be the same."""
    places = {turn["id"]: number for number, turn in enumerate(turns)}
    return [
        {
            **turn,
            "id": places[turn["id"]],
            "parentTurnId": places.get(turn.get("parentTurnId", "")),
            "siblings": len(turn.get("siblings", [])),
            "items": [{**item, "id": 0, "turnId": 0} for item in turn["items"]],
        }
        for turn in turns
    ]


@pytest.fixture
def told(spawn: Spawner) -> Sidecar:
    """A sidecar whose chat `c` has an answered, a failed, a cancelled and a retried turn with an image."""
    sidecar = spawn(model=write_script(spawn.folder))
    sidecar.run("hello", chatId="c")
    sidecar.run("break", chatId="c")
    sidecar.say("hang", chatId="c")
    sidecar.call("turn/cancel", chatId="c")
    image = {"type": "image", "data": PNG.data, "mimeType": "image/png"}
    sent = sidecar.call(
        "prompt/send", chatId="c", promptId="img", content=[{"type": "text", "text": "ü\u2028"}, image]
    )
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    sent = sidecar.call("turn/retry", chatId="c", promptId="again")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    return sidecar


@pytest.mark.sampled(1)
@pytest.mark.parametrize("by", ["data", "path"])
def test_an_export_imports_as_it_was(told: Sidecar, spawn: Spawner, by: str) -> None:
    path = {"path": str(spawn.folder / "c.jsonl")} if by == "path" else {}
    exported = told.call("chat/export", chatId="c", **path)
    source = path or {"data": exported["data"]}
    elsewhere = spawn(data_dir=spawn.folder / "elsewhere")
    imported = elsewhere.call("chat/import", chatId="copy", **source)
    assert imported["turns"] == exported["turns"]
    original = told.call("chat/history", chatId="c")["turns"]
    copy = elsewhere.call("chat/history", chatId="copy")["turns"]
    assert without_ids(copy) == without_ids(original)


def test_an_exported_image_comes_along(told: Sidecar, spawn: Spawner) -> None:
    data = told.call("chat/export", chatId="c")["data"]
    elsewhere = spawn(data_dir=spawn.folder / "elsewhere")
    elsewhere.call("chat/import", chatId="c", data=data)
    turn = elsewhere.call("chat/history", chatId="c")["turns"][-1]
    (image,) = [block for block in turn["items"][0]["content"] if block["type"] == "image"]
    assert elsewhere.call("blob/read", blobId=image["blobId"])["data"] == PNG.data


def test_an_imported_chat_goes_on(told: Sidecar, spawn: Spawner) -> None:
    data = told.call("chat/export", chatId="c")["data"]
    told.call("chat/import", chatId="copy", data=data)
    assert told.run("more", chatId="copy")["data"]["reason"] == "end_turn"


def test_an_export_of_an_import_is_the_export(told: Sidecar) -> None:
    first = told.call("chat/export", chatId="c")["data"]
    told.call("chat/import", chatId="c2", data=first)
    second = told.call("chat/export", chatId="c2")["data"]
    assert len(second.splitlines()) == len(first.splitlines())


def test_an_export_to_a_path_is_a_private_file(told: Sidecar, spawn: Spawner) -> None:
    path = spawn.folder / "c.jsonl"
    result = told.call("chat/export", chatId="c", path=str(path))
    assert result["bytes"] == path.stat().st_size
    assert all(isinstance(json.loads(line), dict) for line in path.read_text().split("\n") if line)


def test_markdown_shows_who_said_what(sidecar: Sidecar) -> None:
    sidecar.run("an *odd* question", chatId="c")
    exported = sidecar.call("chat/export", chatId="c", format="markdown")
    assert exported["data"].count("an *odd* question") >= 2


def test_plain_turns_become_turns(sidecar: Sidecar) -> None:
    data = lines(
        {"role": "user", "text": "Hello", "ts": 1700000000000, "id": "m1"},
        {"role": "assistant", "text": "Hi.", "ts": 1700000001000},
        {"role": "Ada", "text": "May I?"},
        {"role": "assistant", "text": "You may."},
    )
    imported = sidecar.call("chat/import", chatId="c", data=data)
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    assert (imported["turns"], len(turns)) == (2, 2)
    assert [[item_text(item) for item in turn["items"]] for turn in turns] == [
        ["Hello", "Hi."],
        ["May I?", "You may."],
    ]
    assert turns[1]["items"][0]["name"] == "Ada"
    assert turns[0]["startedAt"] == 1700000000000
    assert {turn["status"] for turn in turns} == {"completed"}


def test_importing_into_a_chat_with_turns_needs_append(sidecar: Sidecar) -> None:
    sidecar.run("first", chatId="c")
    data = lines({"role": "user", "text": "Hello"}, {"role": "assistant", "text": "Hi."})
    assert sidecar.refused("chat/import", chatId="c", data=data).code == -32003
    sidecar.call("chat/import", chatId="c", data=data, append=True)
    assert last_messages(sidecar.call("chat/history", chatId="c")["turns"]) == ["first", "Hi."]


def test_importing_into_an_open_empty_chat_works(sidecar: Sidecar) -> None:
    sidecar.call("chat/open", chatId="c")
    data = lines({"role": "user", "text": "Hello"}, {"role": "assistant", "text": "Hi."})
    sidecar.call("chat/import", chatId="c", data=data)
    assert last_messages(sidecar.call("chat/history", chatId="c")["turns"]) == ["Hi."]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "data", ["not json", '{"role":"user"}', '{"text":"x"}', "[]", '{"role":"user","text":5}']
)
def test_a_broken_import_is_refused_and_leaves_no_chat(sidecar: Sidecar, data: str) -> None:
    good = lines({"role": "user", "text": "Hello"})
    assert sidecar.refused("chat/import", chatId="c", data=good + data).code == -32602
    assert sidecar.refused("chat/history", chatId="c").code == -32002


def test_an_import_needs_exactly_one_source(sidecar: Sidecar) -> None:
    assert sidecar.refused("chat/import", chatId="c").code == -32602
    assert sidecar.refused("chat/import", chatId="c", data="", path="/nowhere").code == -32602


def test_imported_words_are_found(sidecar: Sidecar) -> None:
    sidecar.call("chat/import", chatId="c", data=lines({"role": "user", "text": "jacquard loom"}))
    assert [hit["chatId"] for hit in sidecar.call("chat/search", query="jacquard")["items"]] == ["c"]


IMPORT_WITHIN = 20.0
"""Seconds of processor time: a few times what a quiet machine takes."""


@pytest.mark.slow
def test_twenty_thousand_turns_import_in_seconds_and_open_at_once(spawn: Spawner) -> None:
    """The contract says 100,000 in seconds; a fifth of them keeps the suite short."""
    sidecar, path = spawn(), spawn.folder / "many.jsonl"
    pair = '{{"role":"user","text":"question {0}"}}\n{{"role":"assistant","text":"answer {0}"}}\n'
    path.write_text("".join(pair.format(n) for n in range(20_000)))
    before = cpu_seconds(sidecar.pid)
    id = sidecar.ask("chat/import", chatId="many", path=str(path))
    assert sidecar.result(id, 4 * PATIENCE_S)["turns"] == 20_000
    assert cpu_seconds(sidecar.pid) - before < IMPORT_WITHIN
    sidecar.kill()
    heir = spawn()
    before = cpu_seconds(heir.pid)
    opened = heir.call("chat/open", chatId="many", tail={"turns": 1})
    assert last_messages(opened["turns"]) == ["answer 19999"]
    assert cpu_seconds(heir.pid) - before < 1


@pytest.mark.slow
def test_too_much_to_replay_is_a_snapshot_with_a_reason_or_all_of_it(sidecar: Sidecar) -> None:
    data = lines({"role": "user", "text": "q"}, {"role": "assistant", "text": "a"}) * 5000
    session = sidecar.call("chat/import", chatId="many", data=data)["sessionId"]
    opened = sidecar.call("chat/open", chatId="many", after="start")
    if opened["replay"]["kind"] == "snapshot":
        assert opened["replay"]["reason"]
        assert last_messages(opened["turns"])[-1] == "a"
    else:
        sidecar.wait_event(session, lambda e: e["seq"] == opened["lastSeq"], timeout=PATIENCE_S)
