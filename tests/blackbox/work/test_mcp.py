"""MCP servers as tools of a chat: named by the app or the settings, never silently absent."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from tests.blackbox.work.workbench import (
    Json,
    Workbench,
    call,
    outputs,
    statuses,
    tools,
    wait_ready,
    wait_state,
)
from tests.support.sidecar import Sidecar

PROGRAM = str(Path(__file__).parents[2] / "unit" / "tools" / "mcp" / "plain_server.py")


def server(name: str, *args: str) -> Json:
    return {"name": name, "command": sys.executable, "args": [PROGRAM, "work", *args]}


def states(sidecar: Sidecar) -> dict[str, Json]:
    return {state["name"]: state for state in sidecar.call("tools/list", chatId="c")["servers"]}


def test_a_server_of_the_chat_is_mounted_and_asked_for(bench: Workbench) -> None:
    sidecar = bench.start([call("mcp__plain__echo", text="hello"), "done"], mode="ask")
    sidecar.call("chat/configure", chatId="c", set={"mcpServers": [server("plain")]})
    wait_ready(sidecar)
    sidecar.answering["permission/request"] = lambda params: {"decision": "allow_once"}
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["completed"]
    assert "hello" in outputs(sidecar, ended["sessionId"])[0]
    asked = sidecar.wait_asked("permission/request")["params"]
    assert (asked["kind"], asked["subject"]) == ("mcp", "plain/echo")
    listed = {item["name"]: item for item in sidecar.call("tools/list", chatId="c")["items"]}
    assert (listed["mcp__plain__echo"]["source"], listed["mcp__plain__echo"]["server"]) == ("mcp", "plain")
    assert states(sidecar)["plain"]["state"] == "ready"


def test_a_server_that_cannot_start_is_shown_with_its_reason(bench: Workbench) -> None:
    sidecar = bench.start(["still answers"])
    broken = {"name": "broken", "command": "/no/such/program"}
    sidecar.call("chat/configure", chatId="c", set={"mcpServers": [broken]})
    ended = sidecar.run("go", chatId="c")

    assert ended["data"]["reason"] == "end_turn"
    wait_state(sidecar, "failed")
    state = states(sidecar)["broken"]
    assert (state["state"], bool(state["error"])) == ("failed", True)


def test_a_project_starts_its_own_servers_only_once_it_is_trusted(bench: Workbench) -> None:
    (bench.project / ".sidecar").mkdir()
    lines = f'[mcp.plain]\ncommand = "{sys.executable}"\nargs = ["{PROGRAM}", "work"]\n'
    (bench.project / ".sidecar" / "config.toml").write_text(lines)
    sidecar = bench.start(
        [call("mcp__plain__echo", text="hello"), "done"], [call("mcp__plain__echo", text="hi"), "done"]
    )
    ended = sidecar.run("go", chatId="c")
    assert "no tool called" in outputs(sidecar, ended["sessionId"])[0]
    assert states(sidecar) == {}

    sidecar.call("project/trust", path=str(bench.project), trusted=True)
    sidecar.call("chat/open", chatId="c")
    wait_ready(sidecar)
    sidecar.run("again", chatId="c")
    assert "hi" in outputs(sidecar, ended["sessionId"])[1]


def test_a_wrong_server_is_refused_by_name(bench: Workbench) -> None:
    sidecar = bench.start(["hi"])
    for wrong, field in [
        ({"name": "x"}, "set.mcpServers[0]"),
        ({"name": "x y", "command": "ls"}, "set.mcpServers[0].name"),
        ({"name": "x", "comand": "ls"}, "set.mcpServers[0].comand"),
    ]:
        refusal = sidecar.refused("chat/configure", chatId="c", set={"mcpServers": [wrong]})
        assert refusal.code == -32602
        assert refusal.data["params"]["field"].startswith(field)


def test_images_of_a_server_are_stored_for_the_app(bench: Workbench) -> None:
    sidecar = bench.start([call("mcp__plain__photo"), call("mcp__plain__picture"), "done"])
    sidecar.call("chat/configure", chatId="c", set={"mcpServers": [server("plain")]})
    wait_ready(sidecar)
    ended = sidecar.run("go", chatId="c")

    photo, broken = tools(sidecar, ended["sessionId"])
    first, second = photo["output"]["content"]
    stored = sidecar.call("blob/read", blobId=first["blobId"])
    assert (first == second, stored["mimeType"]) == (True, "image/png")
    assert base64.b64decode(stored["data"]).startswith(b"\x89PNG")
    assert "image 1 of this result is left out" in broken["output"]["text"]
    assert "content" not in broken["output"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("package", "text"),
    [
        ("mcp", "raise ImportError('half installed')"),
        ("mcp", "raise RuntimeError('wrong version')"),
        ("mcp_types", "raise OSError('disk error')"),
        ("httpx2", "this is no Python"),
        ("pydantic", ""),
    ],
    ids=["an import error", "another error", "of its types", "a syntax error", "without its names"],
)
def test_a_broken_sdk_fails_its_servers_and_nothing_else(bench: Workbench, package: str, text: str) -> None:
    packages = bench.project.parent / "packages"
    packages.mkdir()
    (packages / f"{package}.py").write_text(text)
    sidecar = bench.start(["first"], ["second"], env={"PYTHONPATH": str(packages)})
    sidecar.call("chat/configure", chatId="c", set={"mcpServers": [server("plain")]})

    assert sidecar.run("go", chatId="c")["data"]["reason"] == "end_turn"
    sidecar.wait_frame(
        lambda f: (
            f.get("method") == "status"
            and f["params"]["type"] == "mcp"
            and f["params"]["data"].get("state") == "failed"
        )
    )
    assert states(sidecar)["plain"]["error"].startswith("the MCP SDK cannot be imported (")
    assert sidecar.run("again", chatId="c")["data"]["reason"] == "end_turn"
