"""The values of `env` and `headers` in a project's settings of MCP servers, whatever their names: no reader shows them
to the model unless the user permits it.
"""

from __future__ import annotations

import json

import pytest

from sidecar.fake_provider import FakeProvider
from tests.blackbox.window.room import Room
from tests.blackbox.work.workbench import Json, Workbench, call, outputs

SECRET = "plum-4711-harbour"
SERVERS = json.dumps(
    {
        "mcpServers": {
            "a": {"command": "x", "env": {"COLOUR": SECRET}},
            "b": {"url": "https://h/", "headers": {"X-Team": SECRET}},
        }
    },
    indent=1,
)

FILES = {
    ".mcp.json": SERVERS,
    "sub/.mcp.json": SERVERS,
    ".vscode/mcp.json": SERVERS,
    ".cursor/mcp.json": SERVERS,
    ".claude/settings.json": SERVERS,
    ".claude/settings.local.json": SERVERS,
    ".sidecar/config.toml": f'[mcp.a]\ncommand = "x"\nenv = {{COLOUR = "{SECRET}"}}\n',
}


def plant(bench: Workbench, name: str) -> None:
    path = bench.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FILES[name])


def readers(name: str) -> list[Json]:
    folder = name.rpartition("/")[0] or "."
    return [
        call("read_file", path=name),
        call("read_file", path=f"./{folder}/../{name}"),
        call("read_file", path="alias.txt"),
        call("grep", pattern="COLOUR|X-Team|env"),
        call("grep", pattern="COLOUR", path=folder),
        call("git_diff"),
        call("index_path", path="."),
        call("search_context", queries=["COLOUR", "plum"], scope="project"),
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FILES)
def test_no_reader_shows_them_unasked(bench: Workbench, name: str) -> None:
    plant(bench, name)
    bench.git("add", "-f", "-N", ".")
    (bench.project / "alias.txt").symlink_to(name)
    sidecar = bench.start([*readers(name), "done"], mode="ask")
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    ended = sidecar.run("go", chatId="c")
    assert SECRET not in "\n".join(outputs(sidecar, ended["sessionId"]))
    asked = [frame["params"]["subject"] for frame in sidecar.asked]
    assert name in asked


def test_what_the_user_permits_is_read(bench: Workbench) -> None:
    plant(bench, ".mcp.json")
    sidecar = bench.start([call("read_file", path=".mcp.json"), "done"], mode="ask")
    sidecar.answering["permission/request"] = lambda params: {"decision": "allow_once"}
    ended = sidecar.run("go", chatId="c")
    assert SECRET in "\n".join(outputs(sidecar, ended["sessionId"]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [".mcp.json", ".vscode/mcp.json", ".claude/settings.json"])
def test_an_instruction_file_does_not_import_them(large: Room, fake: FakeProvider, name: str) -> None:
    plant(large.bench, name)
    large.write("AGENTS.md", f"Use tabs. @{name}\n@./{name}\n")
    large.ask("Say something [[say=Well]]")
    assert "Use tabs." in large.asked[-1].body.decode()
    assert SECRET not in large.asked[-1].body.decode()
