"""An import is bounded: what is wrong has a line and a reason, others go on meanwhile, and half of one is none."""

from __future__ import annotations

import itertools
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.reading import last_messages
from tests.support.sidecar import Refusal, Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

LONG_S = 120.0
"""For imports of many lines on a machine that does other work."""


def turn(id: str, prompt: str, **more: object) -> Json:
    base = {
        "items": [],
        "status": "completed",
        "model": "m",
        "engine": "e",
        "startedAt": 1,
        "reason": "end_turn",
    }
    return {"turn": {"id": id, "promptId": prompt, **base, **more}}


def message(id: str) -> Json:
    return {"id": id, "turnId": "t1", "type": "message", "status": "completed", "startedAt": 1, "text": "x"}


GOOD = '{"role":"user","text":"Hello"}'
PATCH = {"turnId": "t1", "filePath": "a", "ts": 1, "toolName": "w", "summary": "", "kind": "create"}
NESTED = '{"role":"user","text":"x","ts":' + "[" * 50_000
WRONG: dict[str, tuple[list[str], str]] = {
    "50,000 lists": ([GOOD, NESTED], "nesting"),
    "objects in a tool's input": (
        [
            GOOD,
            json.dumps(turn("t1", "p1")).replace(
                '"items": []', '"items": [' + '{"a":' * 300 + "1" + "}" * 300 + "]"
            ),
        ],
        "nesting",
    ),
    "lists in a configuration": (
        [GOOD, '{"sidecar":"chat","version":1,"config":{"meta":' + "[" * 2000 + "]" * 2000 + "}}"],
        "nesting",
    ),
    "a turn twice": ([json.dumps(turn("t1", "p1")), json.dumps(turn("t1", "p2"))], "duplicate"),
    "a prompt twice": ([json.dumps(turn("t1", "p1")), json.dumps(turn("t2", "p1"))], "duplicate"),
    "an item twice": ([GOOD, json.dumps(turn("t1", "p1", items=[message("i"), message("i")]))], "duplicate"),
    "a patch twice": (
        [GOOD, *[json.dumps({"patch": {"id": "a", **PATCH}})] * 2],
        "duplicate",
    ),
    "a text of 5 MiB": ([GOOD, json.dumps({"role": "user", "text": "x" * (5 << 20)})], "too_long"),
    "a line of 17 MiB": ([GOOD, json.dumps({"role": "user", "text": " " * (17 << 20)})], "too_long"),
    "a time beyond all times": ([GOOD, '{"role":"user","text":"x","ts":1e300}'], "not_understood"),
    "bytes that are no text": ([GOOD, '{"role":"user","text":"\\ud800"}'], "not_understood"),
    "a newer export": ([GOOD, '{"sidecar":"chat","version":2}'], "version"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("by", ["data", "path"])
def test_what_is_wrong_is_named_by_its_line_and_leaves_no_chat(spawn: Spawner, case: str, by: str) -> None:
    lines, reason = WRONG[case]
    sidecar = spawn()
    refusal = sidecar.refused("chat/import", chatId="c", **_source(spawn.folder, "\n".join(lines), by))
    assert (refusal.code, refusal.data["reason"]) == (-32602, reason)
    assert refusal.data["params"]["line"] == len(lines)
    assert refusal.data["params"]["field"] == by
    assert "SQLite" not in str(refusal)
    assert "UNIQUE" not in str(refusal)
    assert sidecar.refused("chat/history", chatId="c").code == -32002


@pytest.mark.slow
def test_other_chats_go_on_between_the_slices_of_an_import(spawn: Spawner) -> None:
    """By their order, not by a clock: five prompts, one after the other, are answered before the import is."""
    sidecar, other = spawn(), spawn()
    sidecar.run("warm", chatId="mine")
    other.run("warm", chatId="theirs")
    id = _begin(sidecar, _many(spawn.folder, 30_000))
    for number in range(5):
        sidecar.run(f"mine {number}", chatId="mine")
        other.run(f"theirs {number}", chatId="theirs")
        assert sidecar.answers(id) == []
    assert sidecar.result(id, LONG_S)["turns"] == 15_000


@pytest.mark.slow
def test_progress_grows_and_names_the_request(spawn: Spawner) -> None:
    sidecar = spawn()
    id = _begin(sidecar, _many(spawn.folder, 20_000))
    sidecar.result(id, LONG_S)
    told = [status["data"] for status in sidecar.statuses("progress")]
    assert {(data["operationId"], data["kind"]) for data in told} == {(str(id), "import")}
    assert all(before["done"] <= after["done"] for before, after in itertools.pairwise(told))
    assert all(data["done"] <= data["total"] for data in told)


def test_a_cancelled_import_leaves_no_chat_and_can_be_repeated(spawn: Spawner) -> None:
    sidecar, path = spawn(), _many(spawn.folder, 30_000)
    id = _begin(sidecar, path)
    sidecar.notify("$/cancelRequest", id=id)
    with pytest.raises(Refusal) as cancelled:
        sidecar.result(id, LONG_S)
    assert cancelled.value.code == -32800
    assert sidecar.refused("chat/history", chatId="big").code == -32002
    assert sidecar.call("chat/list")["items"] == []
    assert _rows(spawn) == {"events": 0, "turns": 0, "messages": 0, "prompts": 0}
    assert sidecar.call("chat/import", chatId="big", data=GOOD)["turns"] == 1


def test_a_cancelled_addition_hides_what_it_added(spawn: Spawner) -> None:
    sidecar, path = spawn(), _many(spawn.folder, 30_000)
    sidecar.run("first", chatId="big")
    id = _begin(sidecar, path, append=True)
    sidecar.notify("$/cancelRequest", id=id)
    with pytest.raises(Refusal):
        sidecar.result(id, LONG_S)
    assert last_messages(sidecar.call("chat/history", chatId="big")["turns"]) == ["first"]
    assert sidecar.run("second", chatId="big")["data"]["reason"] == "end_turn"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("looks", ["chat/list", "chat/open", "chat/history", "chat/import"])
def test_an_import_whose_process_was_killed_is_none(spawn: Spawner, looks: str) -> None:
    first = spawn()
    _begin(first, _many(spawn.folder, 30_000))
    first.kill()
    assert _rows(spawn)["turns"] > 0
    heir = spawn()
    if looks == "chat/list":
        assert heir.call("chat/list")["items"] == []
    elif looks == "chat/import":
        assert heir.call("chat/import", chatId="big", data=GOOD)["turns"] == 1
    elif looks == "chat/open":
        assert heir.call("chat/open", chatId="big")["turns"] == []
    else:
        assert heir.refused("chat/history", chatId="big").code == -32002


def test_an_addition_whose_process_was_killed_is_hidden(spawn: Spawner) -> None:
    first = spawn()
    first.run("first", chatId="big")
    _begin(first, _many(spawn.folder, 30_000), append=True)
    first.kill()
    heir = spawn()
    assert last_messages(heir.call("chat/open", chatId="big")["turns"]) == ["first"]
    assert heir.run("second", chatId="big")["data"]["reason"] == "end_turn"


@pytest.mark.slow
def test_a_chat_that_is_being_imported_is_listed_when_it_is_whole(spawn: Spawner) -> None:
    sidecar = spawn()
    id = _begin(sidecar, _many(spawn.folder, 20_000))
    listed = sidecar.call("chat/list")["items"]
    if not sidecar.answers(id):
        assert listed == []
    sidecar.result(id, LONG_S)
    assert [item["turns"] for item in sidecar.call("chat/list")["items"]] == [10_000]


def _many(folder: Path, lines: int) -> Path:
    path = folder / "many.jsonl"
    pair = (
        '{{"role":"user","text":"question {0} about jacquard"}}\n{{"role":"assistant","text":"answer {0}"}}\n'
    )
    path.write_text("".join(pair.format(number) for number in range(lines // 2)))
    return path


def _begin(sidecar: Sidecar, path: Path, **more: object) -> int:
    """Ask for an import, and wait until it has begun to write: the second half of its progress."""
    id = sidecar.ask("chat/import", chatId="big", path=str(path), **more)
    sidecar.wait_until(
        lambda: any(_writes(data) for data in sidecar.statuses("progress")), LONG_S, "progress"
    )
    assert sidecar.answers(id) == []
    return id


def _writes(status: Json) -> bool:
    return bool(2 * status["data"]["done"] > status["data"]["total"])


def _source(folder: Path, text: str, by: str) -> Json:
    if by == "data":
        return {"data": text}
    path = folder / "wrong.jsonl"
    path.write_text(text)
    return {"path": str(path)}


def _rows(spawn: Spawner) -> dict[str, int]:
    with closing(sqlite3.connect(spawn.data_dir / "sidecar.db")) as db:
        return {
            table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("events", "turns", "messages", "prompts")
        }
