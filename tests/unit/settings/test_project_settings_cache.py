"""The settings about tools, as a running sidecar goes by them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blackbox.work.workbench import Workbench, call, outputs, statuses, tools, wait_ready
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.unit.tools.mcp.mounting import plain

WRITE = call("write_file", path="new.txt", content="hello\n")
LIST = call("run_command", command="ls")


@pytest.fixture
def bench(spawn: Spawner) -> Workbench:
    return Workbench(spawn)


def user_says(bench: Workbench, text: str) -> None:
    file = bench.spawn.folder / "home" / ".config" / "sidecar" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def project_says(bench: Workbench, text: str) -> None:
    (bench.project / ".sidecar").mkdir()
    (bench.project / ".sidecar" / "config.toml").write_text(text)


def server() -> str:
    config = plain(name="notes")
    return f"[mcp.notes]\ncommand = {json.dumps(config.command)}\nargs = {json.dumps(config.args)}\n"


def rules(sidecar: Sidecar) -> list[tuple[Any, ...]]:
    items = sidecar.call("permissionRules/list", chatId="c")["items"]
    return [(rule["id"], rule["scope"], rule["effect"], rule["rule"]) for rule in items]


def test_what_the_user_denies_no_project_allows(bench: Workbench) -> None:
    user_says(bench, 'permissions.deny = ["edit(*.txt)"]\n')
    project_says(bench, 'permissions = {allow = ["*"], deny = []}\n')
    sidecar = bench.start([WRITE, LIST, "done"], mode="ask")
    sidecar.call("project/trust", path=str(bench.project), trusted=True)

    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied", "completed"]
    assert sidecar.asked == []
    assert rules(sidecar) == [
        ("file-user-1", "user", "deny", "edit(*.txt)"),
        ("file-project-1", "project", "allow", "*"),
    ]


def test_what_a_project_allows_is_asked_for_until_it_is_trusted(bench: Workbench) -> None:
    project_says(bench, 'permissions.allow = ["run(ls)"]\n')
    sidecar = bench.start([LIST, "done"], [LIST, "done"], mode="ask")
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}

    before = sidecar.run("go", chatId="c")
    sidecar.call("project/trust", path=str(bench.project), trusted=True)
    sidecar.run("again", chatId="c")

    assert statuses(sidecar, before["sessionId"]) == ["denied", "completed"]
    assert len(sidecar.asked) == 1


def test_a_rule_that_is_not_understood_lets_nothing_run(bench: Workbench) -> None:
    user_says(bench, 'permissions.deny = ["write(*.txt)"]\n')
    sidecar = bench.start([WRITE, "done"])

    ended = sidecar.run("go", chatId="c")

    assert ended["data"]["reason"] == "error"
    assert "`permissions.deny`: 'write(*.txt)' is not understood" in json.dumps(ended["data"])
    assert not (bench.project / "new.txt").exists()


def test_a_server_of_the_settings_is_mounted(bench: Workbench) -> None:
    user_says(bench, server())
    sidecar = bench.start([call("mcp__notes__echo", x=1), "done"])

    wait_ready(sidecar)
    ended = sidecar.run("go", chatId="c")
    checks = {check["name"]: check["code"] for check in sidecar.call("doctor/run")["checks"]}

    assert outputs(sidecar, ended["sessionId"]) == ['{"x": 1}']
    assert checks["mcp.notes"] == "mcp_ready"


def test_a_projects_server_is_mounted_once_the_project_is_trusted(bench: Workbench) -> None:
    project_says(bench, server())
    sidecar = bench.start([call("mcp__notes__echo", x=1), "done"], [call("mcp__notes__echo", x=2), "done"])

    ended = sidecar.run("go", chatId="c")
    sidecar.call("project/trust", path=str(bench.project), trusted=True)
    sidecar.call("tools/list", chatId="c")
    wait_ready(sidecar)
    sidecar.run("again", chatId="c")

    assert outputs(sidecar, ended["sessionId"]) == ["There is no tool called 'mcp__notes__echo'.", '{"x": 2}']


def test_a_tool_that_is_denied_is_not_there_after_the_next_write(bench: Workbench) -> None:
    sidecar = bench.start([LIST, "done"], [LIST, "done"])

    ended = sidecar.run("go", chatId="c")
    sidecar.call("settings/write", scope="user", set={"tools.deny": ["run_command"]})
    sidecar.run("again", chatId="c")

    first, second = tools(sidecar, ended["sessionId"])
    assert first["status"] == "completed"
    assert second["output"]["text"].startswith("There is no tool called 'run_command'.")
