"""The ledger: every change by a tool, what became of it since, and the way back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.blackbox.work.workbench import Json, Workbench, call
from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar

READ = call("read_file", path="notes.txt")
SECOND = call("edit_file", path="notes.txt", old_string="second", new_string="2nd")
THIRD = call("edit_file", path="notes.txt", old_string="third", new_string="3rd")
NEW = call("write_file", path="docs/new.md", content="new\n")


def worked(bench: Workbench, *steps: Json) -> Sidecar:
    sidecar = bench.start([*steps, "done"], ["again"])
    sidecar.run("go", chatId="c")
    return sidecar


def listed(sidecar: Sidecar) -> list[tuple[str, str, str]]:
    items = sidecar.call("patches/list", chatId="c")["items"]
    return [(item["filePath"], item["summary"], item["status"]) for item in items]


def test_every_change_is_listed_newest_first(bench: Workbench) -> None:
    sidecar = worked(bench, READ, SECOND, THIRD, NEW)
    assert listed(sidecar) == [
        ("docs/new.md", "New file: 1 line", "applied"),
        ("notes.txt", "-1, +1 lines", "applied"),
        ("notes.txt", "-1, +1 lines", "superseded"),
    ]
    shown = sidecar.call("patches/show", chatId="c", path="docs/new.md")["items"][0]
    assert shown["unifiedDiff"].startswith("--- /dev/null\n+++ b/docs/new.md\n@@ ")
    assert "+new\n" in shown["unifiedDiff"]


def test_a_revert_puts_the_bytes_back_and_apply_makes_the_change_again(bench: Workbench) -> None:
    sidecar = worked(bench, READ, SECOND, NEW)
    new, second = sidecar.call("patches/list", chatId="c")["items"]

    would = sidecar.call("patches/revert", chatId="c", id=new["id"], dryRun=True)
    assert would["fileChanges"] == [{"path": "docs/new.md", "kind": "delete", "status": "would_restore"}]
    assert bench.read("docs/new.md") == "new\n"
    sidecar.call("patches/revert", chatId="c", id=new["id"])
    sidecar.call("patches/revert", chatId="c", path="notes.txt")
    assert not (bench.project / "docs/new.md").exists()
    assert bench.read("notes.txt") == "first\nsecond\nthird\n"
    assert [status for *_, status in listed(sidecar)] == ["reverted", "reverted"]

    sidecar.call("patches/apply", chatId="c", id=second["id"])
    assert bench.read("notes.txt") == "first\n2nd\nthird\n"
    assert [status for *_, status in listed(sidecar)] == ["reverted", "applied"]


def test_an_edit_from_outside_is_drift_and_stops_a_revert(bench: Workbench) -> None:
    sidecar = worked(bench, READ, SECOND)
    (bench.project / "notes.txt").write_text("mine now\n")

    assert listed(sidecar) == [("notes.txt", "-1, +1 lines", "drifted")]
    refusal = sidecar.refused("patches/revert", chatId="c", path="notes.txt")
    assert refusal.code == -32010
    change = refusal.detail("fileChanges")[0]
    assert (change["status"], change["reasonCode"]) == ("conflict", "drifted")
    assert bench.read("notes.txt") == "mine now\n"


def test_an_older_change_is_not_taken_out_from_under_a_newer_one(bench: Workbench) -> None:
    sidecar = worked(bench, READ, SECOND, THIRD)
    older = sidecar.call("patches/list", chatId="c")["items"][1]
    assert sidecar.refused("patches/revert", chatId="c", id=older["id"]).code == -32010
    sidecar.call("patches/revert", chatId="c", path="notes.txt")
    assert bench.read("notes.txt") == "first\nsecond\nthird\n"


def test_the_list_survives_a_restart_and_can_be_cleared(bench: Workbench) -> None:
    first = worked(bench, READ, SECOND, NEW)
    before = first.call("patches/list", chatId="c")["items"]
    first.kill()

    second = bench.start(["hi"])
    assert second.call("patches/list", chatId="c")["items"] == before
    assert second.call("patches/clear", chatId="c")["cleared"] == 2
    assert listed(second) == []
    assert second.call("patches/export", chatId="c")["files"] == 2


def test_the_list_is_bounded_and_the_export_is_not(bench: Workbench) -> None:
    writes = [call("write_file", path=f"f{number:02}.txt", content=f"{number}\n") for number in range(25)]
    sidecar = worked(bench, *writes)
    items = sidecar.call("patches/list", chatId="c")["items"]

    assert [items[0]["filePath"], items[-1]["filePath"], len(items)] == ["f24.txt", "f05.txt", 20]
    assert sidecar.call("patches/export", chatId="c")["files"] == 25


@pytest.mark.sampled(1)
@pytest.mark.parametrize("of_turn", [True, False])
def test_an_export_is_a_patch_that_git_applies(bench: Workbench, tmp_path: Path, of_turn: bool) -> None:
    binary = bytes(range(256))
    (bench.project / "latin.txt").write_bytes("café\r\n".encode("latin-1"))
    (bench.project / "data.bin").write_bytes(binary)
    bench.git("add", ".")
    bench.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "more")
    steps = [
        READ,
        SECOND,
        call("read_file", path="latin.txt"),
        call("edit_file", path="latin.txt", old_string="caf", new_string="Caf"),
        call("write_file", path="no newline", content="end"),
        NEW,
    ]
    sidecar = bench.start([*steps, "done"])
    ended = sidecar.run("go", chatId="c")
    bench.git("clone", "-q", str(bench.project), str(tmp_path / "clone"))
    turn = {"turnId": ended["turnId"]} if of_turn else {}
    target = tmp_path / "out.patch"
    exported = sidecar.call("patches/export", chatId="c", path=str(target), **turn)

    assert (exported["files"], exported["bytes"]) == (4, target.stat().st_size)
    subprocess.run(["git", "apply", str(target)], cwd=tmp_path / "clone", check=True, timeout=PATIENCE_S)
    for name in ("notes.txt", "latin.txt", "no newline", "docs/new.md"):
        assert (tmp_path / "clone" / name).read_bytes() == (bench.project / name).read_bytes()


def test_an_edit_of_a_file_that_changed_since_is_refused(bench: Workbench) -> None:
    steps = [READ, {"hang": True}]
    sidecar = bench.start(steps, [SECOND, "done"])
    sent = sidecar.say("go", chatId="c")
    sidecar.wait_event(sent["sessionId"], "tool.ended")
    (bench.project / "notes.txt").write_text("first\nsecond\nthird\nfourth\n")
    sidecar.call("turn/cancel", chatId="c")
    ended = sidecar.run("again", chatId="c")

    item = sidecar.events(ended["sessionId"], "tool.ended")[-1]["data"]["item"]
    assert item["status"] == "failed"
    assert "changed" in item["output"]["text"]
    assert bench.read("notes.txt").endswith("fourth\n")


def test_what_the_model_saw_is_remembered_across_a_restart(bench: Workbench) -> None:
    first = bench.start([READ, "done"])
    first.run("go", chatId="c")
    first.kill()
    second = bench.start([SECOND, "done"])
    second.run("go", chatId="c")

    assert bench.read("notes.txt") == "first\n2nd\nthird\n"
