"""Paths that lead out, by a model's calls through the pipe: refused one by one, with the user allowing everything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.blackbox.work.workbench import Json, Workbench, call, statuses, tools
from tests.support.patience import PATIENCE_S
from tests.unit.tools.escaping import FORBIDDEN, GIT, HEADERS, READING, WRITING, Way, foreign_texts, scene
from tests.unit.workspace.corpus import Verdict, escapes
from tests.unit.workspace.trees import Tree, litter, outside

SAMPLE = {"outside": 16, None: 6, "kind": 6, "own_file": 4, "links": 4, "name": 4}
"""How many paths of each class go through the pipe; all of them go through the tools in tests/unit/tools."""

DATABASE = "sidecar.db"
LOGS = {"own.wal": "sidecar.db-wal", "own.shm": "sidecar.db-shm"}
"""Hard links in the project to further files of the running sidecar's own database."""

WAYS = {
    **{name: way for name, way in (READING | WRITING).items() if name != "grep without ripgrep"},
    **{name: HEADERS[name] for name in ("--- to create", "git to modify", "octal to modify")},
    "git_diff": GIT,
}
TRY_LOCK = """
import fcntl, sys
with open(sys.argv[1], "rb+") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
"""
"""SQLite's shared lock: every connection in WAL mode holds it for as long as it lives."""


@pytest.fixture
def tree(bench: Workbench) -> Tree:
    tree = scene(bench.spawn.folder / "scene")
    bench.project = tree.root
    bench.git("init", "-q")
    return tree


def sample(tree: Tree) -> dict[str, Verdict]:
    """Some paths of every class, spread over its list; those that JSON can say."""
    chosen = {
        path: escapes(tree)[path] for path in (".", "none")
    }  # harmless: to list the one and to write the other works
    for reason, count in SAMPLE.items():
        paths = [path for path, verdict in escapes(tree).items() if verdict[1] == reason and _sayable(path)]
        chosen |= {path: escapes(tree)[path] for path in paths[:: max(1, len(paths) // count)][:count]}
    return chosen


@pytest.mark.slow
def test_no_call_of_any_tool_reaches_what_is_outside(bench: Workbench, tree: Tree) -> None:
    paths = {**sample(tree), **dict.fromkeys(LOGS, ("denied", "own_file"))}
    tried = [(name, path) for name in WAYS for path in paths]
    steps = [[_called(WAYS[name], path) for path in paths] for name in WAYS]
    sidecar = bench.start([*steps, "done"])
    sidecar.answering["permission/request"] = lambda params: {"decision": "allow_once"}
    database = link_database(bench)
    before = outside(tree)
    sent = sidecar.say("go", chatId="c")
    ended = sidecar.wait_turn(sent["sessionId"], sent["turnId"], timeout=120)

    items = tools(sidecar, sent["sessionId"])
    assert (ended["data"]["reason"], len(items)) == ("end_turn", len(tried))
    forbidden = [(name, path) for name, path in tried if WAYS[name].strict and paths[path][1] in FORBIDDEN]
    done = {way for way, item in zip(tried, items, strict=True) if item["status"] == "completed"}
    assert done & set(forbidden) == set()
    assert {("list_dir", "."), ("write_file", "none"), ("git_diff", ".")} <= done
    assert [way for way, item in zip(tried, items, strict=True) if tells(item)] == []
    assert [request for request in sidecar.asked if tells(request["params"])] == []
    assert [item["output"]["text"] for item in items if "inside the sidecar" in item["output"]["text"]] == []
    assert outside(tree) == before
    assert litter(tree.base) == []
    assert locked(database)
    assert sidecar.call("chat/history", chatId="c")["turns"][0]["status"] == "completed"


def test_a_further_folder_is_open_to_tools_and_what_is_around_it_is_not(bench: Workbench, tree: Tree) -> None:
    extra, shut = str(tree.extra), str(tree.outside)
    os.symlink(shut, tree.extra / "out")
    (tree.base / "extra_evil").mkdir()
    allowed = [
        call("read_file", path=f"{extra}/more.txt"),
        call("edit_file", path=f"{extra}/more.txt", old_string="more", new_string="most"),
        call("write_file", path=f"{extra}/deep/er.txt", content="new\n"),
        call("list_dir", path=extra),
        call("glob", pattern="*.txt", path=extra),
        call("grep", pattern="most", path=extra),
        call("run_command", command="pwd -P && touch made", cwd=extra),
        call("read_file", path=f"{tree.root}/../extra/more.txt"),
    ]
    refused = [
        call("read_file", path=f"{extra}/../outside/secret.txt"),
        call("read_file", path=f"{extra}/out/secret.txt"),
        call("read_file", path="into_extra/more.txt"),
        call("write_file", path=f"{extra}_evil/new.txt", content="new\n"),
        call("write_file", path=f"{extra}/out/new.txt", content="new\n"),
        call("list_dir", path=f"{extra}/out"),
        call("glob", pattern="*", path=f"{extra}_evil"),
        call("grep", pattern="secret", path=f"{extra}/.."),
        call("run_command", command="ls", cwd=f"{extra}/out"),
    ]
    sidecar = bench.start([*allowed, *refused, "done"], [*allowed[:1], "done"])
    sidecar.call("chat/configure", chatId="c", set={"extraFolders": [extra]})
    before = outside(tree)
    ended = sidecar.run("go", chatId="c")

    expected = ["completed"] * len(allowed) + ["failed"] * len(refused)
    assert statuses(sidecar, ended["sessionId"]) == expected
    assert [(tree.extra / name).read_text() for name in ("more.txt", "deep/er.txt")] == ["most", "new\n"]
    assert (tree.extra / "made").exists()
    assert outside(tree) == before

    sidecar.call("chat/configure", chatId="c", set={"extraFolders": None})
    sidecar.run("again", chatId="c")
    assert statuses(sidecar, ended["sessionId"])[-1] == "failed"


def link_database(bench: Workbench) -> Path:
    """Have what the corpus calls the database be that of the running sidecar."""
    for name in ("hard", "a/b/hard", "hard.txt"):
        (bench.project / name).unlink()
        os.link(bench.spawn.data_dir / DATABASE, bench.project / name)
    for name, file in LOGS.items():
        os.link(bench.spawn.data_dir / file, bench.project / name)
    return bench.spawn.data_dir / DATABASE


def locked(database: Path) -> bool:
    """Whether the sidecar holds its lock: had it opened and closed the file by another name, it would not."""
    run = subprocess.run(
        [sys.executable, "-c", TRY_LOCK, database], stderr=subprocess.PIPE, timeout=PATIENCE_S
    )
    assert run.returncode == 0 or b"BlockingIOError" in run.stderr
    return run.returncode != 0


def test_the_lock_tells_whether_the_database_was_opened(bench: Workbench) -> None:
    sidecar = bench.start(["hi"])
    database = bench.spawn.data_dir / DATABASE
    assert locked(database)
    sidecar.close_stdin()
    sidecar.wait()
    assert not locked(database)


def tells(said: Json) -> bool:
    """Whether it shows anything that stands only outside, and that the model did not say itself."""
    sent = str(said.get("input"))
    shown = str({name: value for name, value in said.items() if name != "input"})
    return any(
        text in shown and text not in sent
        for text in (*foreign_texts(), "SQLite format 3", "SIDECAR_DATA_DIR=")
    )


def _called(way: Way, path: str) -> Json:
    return call(way.tool().spec.name, **way.input(path))


def _sayable(path: str) -> bool:
    try:
        return len(path.encode()) < 10_000
    except UnicodeEncodeError:
        return False
