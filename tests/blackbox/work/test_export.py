"""Export and import of a chat in which tools have worked: ledger, files in view, outputs and plans come along."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from tests.blackbox.work.workbench import Json, Workbench, call
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

pytestmark = pytest.mark.slow

PLAN = [("Fix it", "completed"), ("Test it", "in_progress")]
STEPS = [
    call("update_plan", plan=[{"step": step, "status": status} for step, status in PLAN]),
    call("read_file", path="notes.txt"),
    call("edit_file", path="notes.txt", old_string="second", new_string="2nd"),
    call("write_file", path="docs/new.md", content="new\n"),
    [call("read_file", path="src/add.py"), call("grep", pattern="third"), call("read_file", path="none")],
    call("run_command", command="seq 1 40000; exit 3"),
]
FURTHER = call("edit_file", path="notes.txt", old_string="first", new_string="1st")
AFTER = [call("edit_file", path="notes.txt", old_string="third", new_string="3rd"), "done"]


class Pair:
    """Both sidecars for the tests that only read."""

    def __init__(self, spawn: Spawner) -> None:
        bench = Workbench(spawn)
        self.worked = work(bench)
        self.elsewhere = import_elsewhere(self.worked, bench)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    spawner = Spawner(tmp_path_factory.mktemp("pair"))
    yield Pair(spawner)
    spawner.settle()


@pytest.fixture
def worked(bench: Workbench) -> Sidecar:
    return work(bench)


@pytest.fixture
def elsewhere(worked: Sidecar, bench: Workbench) -> Sidecar:
    return import_elsewhere(worked, bench)


def work(bench: Workbench) -> Sidecar:
    """A sidecar whose chat `c` has done all that, in two turns, with one patch reverted and a file pinned."""
    sidecar = bench.start([*STEPS, "done"], AFTER, ["more"])
    sidecar.run("go", chatId="c")
    sidecar.run("go on", chatId="c")
    sidecar.call("patches/revert", chatId="c", path="docs/new.md")
    sidecar.call("files/open", chatId="c", path="src/add.py", pinned=True)
    return sidecar


def import_elsewhere(worked: Sidecar, bench: Workbench) -> Sidecar:
    """Another sidecar with a database of its own, which has imported the chat as `copy`."""
    spawn = bench.spawn
    path = spawn.folder / "c.jsonl"
    worked.call("chat/export", chatId="c", path=str(path))
    other = spawn(model=bench.script([FURTHER, "again"]), data_dir=spawn.folder / "elsewhere")
    other.call("chat/import", chatId="copy", projectPath=str(bench.project), path=str(path))
    other.call("chat/open", chatId="copy", projectPath=str(bench.project), config={"mode": "auto"})
    return other


def items(sidecar: Sidecar, chat: str) -> list[Json]:
    return [item for turn in sidecar.call("chat/history", chatId=chat)["turns"] for item in turn["items"]]


def test_every_item_comes_in_as_it_went_out(pair: Pair) -> None:
    copied = items(pair.elsewhere, "copy")
    assert copied == items(pair.worked, "c")
    assert [item["status"] for item in copied if item["type"] == "tool"].count("failed") == 2
    (plan,) = [item for item in copied if item["type"] == "plan"]
    assert [(entry["content"], entry["status"]) for entry in plan["entries"]] == PLAN


def test_the_ledger_and_the_files_in_view_come_along(pair: Pair) -> None:
    worked, elsewhere = pair.worked, pair.elsewhere
    calls: list[tuple[str, str, Json]] = [
        ("patches/list", "items", {}),
        ("patches/show", "items", {"path": "notes.txt"}),
        ("patches/show", "items", {"path": "docs/new.md"}),
        ("files/list", "files", {}),
    ]
    for method, what, params in calls:
        original = worked.call(method, chatId="c", **params)[what]
        assert elsewhere.call(method, chatId="copy", **params)[what] == original
    statuses = [patch["status"] for patch in elsewhere.call("patches/list", chatId="copy")["items"]]
    assert statuses == ["applied", "reverted", "superseded"]
    assert elsewhere.call("files/list", chatId="copy")["files"][0]["pinned"]


def test_what_was_cleared_from_the_list_stays_cleared(worked: Sidecar, bench: Workbench) -> None:
    worked.call("patches/clear", chatId="c")
    data = worked.call("chat/export", chatId="c")["data"]
    worked.call("chat/import", chatId="copy", projectPath=str(bench.project), data=data)
    assert worked.call("patches/list", chatId="copy")["items"] == []
    assert worked.call("patches/export", chatId="copy")["files"] == 1


def test_the_patches_of_hidden_turns_stay_hidden(worked: Sidecar, bench: Workbench) -> None:
    first, second = worked.call("chat/history", chatId="c")["turns"]
    worked.call("chat/rewind", chatId="c", before={"turnId": second["id"]})
    data = worked.call("chat/export", chatId="c")["data"]
    worked.call("chat/import", chatId="copy", projectPath=str(bench.project), data=data)
    listed = worked.call("patches/list", chatId="copy")["items"]
    assert listed == worked.call("patches/list", chatId="c")["items"]
    assert {patch["turnId"] for patch in listed} == {first["id"]}


def test_outputs_that_are_kept_apart_can_be_read(pair: Pair) -> None:
    elsewhere = pair.elsewhere
    (output,) = [item["output"] for item in items(elsewhere, "copy") if item.get("output", {}).get("ref")]
    whole = base64.b64decode(elsewhere.call("blob/read", ref=output["ref"])["data"])
    assert whole.startswith(b"1\n2\n")
    assert b"\n40000\n" in whole


def test_a_change_is_taken_back_after_the_import(bench: Workbench, elsewhere: Sidecar) -> None:
    elsewhere.call("patches/revert", chatId="copy", path="notes.txt")
    elsewhere.call("patches/apply", chatId="copy", path="docs/new.md")
    assert bench.read("notes.txt") == "first\nsecond\nthird\n"
    assert bench.read("docs/new.md") == "new\n"


def test_the_model_still_knows_what_it_has_seen(bench: Workbench, elsewhere: Sidecar) -> None:
    """The scripted model edits without reading again, which is refused for a file that it has not seen."""
    elsewhere.run("go on", chatId="copy")
    assert bench.read("notes.txt") == "1st\n2nd\n3rd\n"
    elsewhere.call("patches/revert", chatId="copy", path="notes.txt")
    assert bench.read("notes.txt") == "first\nsecond\nthird\n"


def test_appended_patches_belong_to_the_copies_of_their_turns(worked: Sidecar, bench: Workbench) -> None:
    data = worked.call("chat/export", chatId="c")["data"]
    worked.run("hello", chatId="other", projectPath=str(bench.project))
    worked.call("chat/import", chatId="other", projectPath=str(bench.project), data=data, append=True)
    turns = {turn["id"] for turn in worked.call("chat/history", chatId="other")["turns"]}
    patches = worked.call("patches/list", chatId="other")["items"]
    original = worked.call("patches/list", chatId="c")["items"]
    assert {patch["turnId"] for patch in patches} <= turns
    assert [(p["filePath"], p["summary"]) for p in patches] == [
        (p["filePath"], p["summary"]) for p in original
    ]
    assert {patch["id"] for patch in patches}.isdisjoint(patch["id"] for patch in original)


def test_an_export_of_an_import_is_the_export(pair: Pair) -> None:
    first = pair.worked.call("chat/export", chatId="c")["data"].splitlines()
    second = pair.elsewhere.call("chat/export", chatId="copy")["data"].splitlines()
    assert sorted(second[1:]) == sorted(first[1:])
