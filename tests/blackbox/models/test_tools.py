"""The model looks at the project's files, over every API, and at nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.models.talk import Json, Talk
from tests.support.spawner import Spawner

pytestmark = pytest.mark.sampled(2)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "notes.txt").write_text("first\nsecond\nthird\n")
    (folder / "src" / "main.py").write_text("print('hello')\n")
    (folder / "picture.bin").write_bytes(b"\x00\x01\x02")
    (tmp_path / "secret.txt").write_text("the secret")
    (folder / "way-out").symlink_to(tmp_path / "secret.txt")
    return folder


def called(talk: Talk, project: Path, *calls: str) -> list[Json]:
    """The tool items of a prompt whose model makes these calls."""
    markers = " ".join(f"[[tool={call}]]" for call in calls)
    sent = talk.send("c", f"[[say=Looking]] {markers}", projectPath=str(project))
    assert talk.end(sent)["reason"] == "end_turn"
    assert [request.rule for request in talk.asked] == [None] * len(talk.asked)
    ended = {item["id"]: item for item in talk.items(sent, "tool")}
    started = [event["data"]["item"]["id"] for event in talk.turn(sent) if event["type"] == "tool.started"]
    return [ended[id] for id in started]


@pytest.mark.sampled(1)
def test_files_are_read_side_by_side_and_go_back_to_the_model(talk: Talk, project: Path) -> None:
    read, listed = called(
        talk, project, 'read_file:{"path": "notes.txt", "start_line": 2}', 'list_dir:{"path": "."}'
    )

    assert read["output"]["text"] == "2\tsecond\n3\tthird"
    assert (read["kind"], read["title"], read["locations"]) == (
        "read",
        "Read notes.txt",
        [{"path": "notes.txt"}],
    )
    assert "notes.txt\t19" in listed["output"]["text"]
    assert "src/" in listed["output"]["text"]
    assert "second" in talk.asked[-1].body.decode()


@pytest.mark.sampled(1)
def test_the_model_is_told_of_tools_only_in_a_project(talk: Talk, project: Path) -> None:
    talk.ask("[[say=hi]]", chat="plain")
    talk.ask("[[say=hi]]", chat="project", projectPath=str(project))

    plain, with_project = (request.body.decode() for request in talk.asked)
    assert "read_file" not in plain
    assert "read_file" in with_project


@pytest.mark.sampled(1)
def test_tools_can_be_left_out(talk: Talk, project: Path) -> None:
    talk.sidecar.call(
        "chat/open",
        chatId="c",
        projectPath=str(project),
        config={"tools": {"deny": ["read_file"], "allow": []}},
    )
    (denied,) = called(talk, project, 'read_file:{"path": "notes.txt"}')

    assert denied["status"] == "failed"
    assert '"read_file"' not in talk.asked[0].body.decode()


ESCAPES = [
    "../secret.txt",
    "src/../../secret.txt",
    "way-out",
    "/etc/passwd",
    "/proc/self/environ",
    "~/secret.txt",
    "notes.txt\0",
    "src",
    "picture.bin",
    "no-such-file",
    "",
]


def test_nothing_outside_the_project_is_read(spawn: Spawner, project: Path) -> None:
    calls = [{"name": "read_file", "input": {"path": path}} for path in ESCAPES]
    calls += [
        {"name": "read_file", "input": {"path": os.path.abspath(spawn.data_dir / "sidecar.db")}},
        {"name": "read_file", "input": {"path": 7}},
        {"name": "read_file", "input": {}},
        {"name": "read_file", "input": {"path": "notes.txt", "start_line": 99}},
        {"name": "read_file", "input": {"path": "notes.txt", "start_line": 3, "end_line": 2}},
        {"name": "list_dir", "input": {"path": ".."}},
    ]
    items = played(spawn, project, calls)

    assert [item["status"] for item in items] == ["failed"] * len(calls)
    assert not [item for item in items if "secret" in item["output"]["text"].replace("secret.txt", "")]
    assert all(item["output"]["text"] for item in items)


def test_names_that_are_no_text_are_listed(spawn: Spawner, project: Path) -> None:
    Path(os.fsdecode(os.fsencode(project) + b"/odd\xff")).write_text("x")
    (item,) = played(spawn, project, [{"name": "list_dir", "input": {}}])

    assert item["status"] == "completed"
    assert "odd\N{REPLACEMENT CHARACTER}" in item["output"]["text"]


def test_a_linked_database_is_not_read(spawn: Spawner, project: Path) -> None:
    spawn().run("make the database", chatId="x")
    database = next(path for path in Path(spawn.data_dir).iterdir() if path.suffix == ".db")
    os.link(database, project / "innocent.txt")
    (item,) = played(spawn, project, [{"name": "read_file", "input": {"path": "innocent.txt"}}])

    assert item["status"] == "failed"


def played(spawn: Spawner, project: Path, calls: list[dict[str, Any]]) -> list[Json]:
    """The tool items of a script that makes these calls, in their order."""
    script = spawn.folder / "calls.json"
    replies = [{"match": "", "steps": [{"toolCalls": calls}, {"text": "done"}]}]
    script.write_text(json.dumps({"replies": replies}))
    sidecar = spawn(model=f"scripted:{script}")
    ended = sidecar.run("go", chatId="c", projectPath=str(project))
    assert ended["data"]["reason"] == "end_turn"
    events = sidecar.events(ended["sessionId"], "tool.ended")
    by_id = {event["data"]["item"]["id"]: event["data"]["item"] for event in events}
    started = sidecar.events(ended["sessionId"], "tool.started")
    return [by_id[event["data"]["item"]["id"]] for event in started]


@pytest.mark.sampled(1)
def test_a_task_of_several_steps_is_done_over_every_api(talk: Talk, project: Path) -> None:
    """Read, edit, run, be denied, be stopped in a loop: the strict imitation takes every history on the way."""
    talk.sidecar.call("chat/open", chatId="c", projectPath=str(project), config={"mode": "auto"})
    steps = [
        ['read_file:{"path": "notes.txt"}', 'list_dir:{"path": "."}'],
        ['edit_file:{"path": "notes.txt", "old_string": "second", "new_string": "2nd"}'],
        ['run_command:{"command": "cat notes.txt"}', 'write_file:{"path": ".git/config", "content": "x"}'],
        ['no_such_tool:{"a": 1}'],
    ]
    markers = "[[next]]".join("".join(f"[[tool={call}]]" for call in step) for step in steps)
    sent = talk.send("c", f"{markers}[[next]][[say=Done]]")

    assert talk.end(sent)["reason"] == "end_turn"
    assert [request.rule for request in talk.asked] == [None] * 5
    assert [item["status"] for item in talk.items(sent, "tool")] == [
        "completed", "completed", "completed", "completed", "denied", "failed"
    ]  # fmt: skip
    assert (project / "notes.txt").read_text() == "first\n2nd\nthird\n"
    talk.sidecar.kill()


@pytest.mark.sampled(1)
def test_a_tool_call_that_a_crash_cut_does_not_spoil_the_chat(
    api: str, talk: Talk, project: Path, spawn: Spawner, tmp_path: Path
) -> None:
    """The history that is sent after a restart has a result for the dangling call."""
    talk.sidecar.call("chat/open", chatId="c", projectPath=str(project), config={"mode": "auto"})
    sent = talk.send("c", '[[tool=run_command:{"command": "sleep 600"}]][[next]][[say=Done]]')
    talk.sidecar.wait_event(sent["sessionId"], "tool.started")
    talk.sidecar.kill()

    again = Talk(api, talk.fake, spawn, tmp_path)
    assert again.ask("[[say=Still here]]")["reason"] == "end_turn"
    assert again.asked[-1].rule is None
    assert "interrupted" in again.asked[-1].body.decode()
