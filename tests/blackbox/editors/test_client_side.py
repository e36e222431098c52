"""What the editor does for the model: its buffers, its terminals, and the MCP servers that it brings."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.wire import Json

from .conftest import Start
from .editor import ALL, Editor, Refused
from .test_work import Play, allow, call, ended, play

__all__ = ["play"]

PLAIN_SERVER = Path(__file__).parents[2] / "unit" / "tools" / "mcp" / "plain_server.py"

READ = call("read_file", path="notes.txt")
EDIT = call("edit_file", path="notes.txt", old_string="zebra", new_string="okapi")


class Buffers:
    """The files that are open in the editor; writing one saves it."""

    def __init__(self, project: Path, unsaved: str) -> None:
        self.path = str(project / "notes.txt")
        self.text = unsaved
        self.written: list[str] = []

    def read(self, params: Json) -> Json:
        if params["path"] != self.path:
            raise Refused({"code": -32002, "message": "not open"})
        return {"content": self.text}

    def write(self, params: Json) -> Json:
        self.text = params["content"]
        Path(params["path"]).write_text(self.text)
        self.written.append(params["path"])
        return {}

    @property
    def answers(self) -> dict[str, Any]:
        return {
            "fs/read_text_file": self.read,
            "fs/write_text_file": self.write,
            "session/request_permission": allow,
        }


def test_unsaved_text_is_read_from_the_editor(play: Play, project: Path) -> None:
    buffers = Buffers(project, "The gnu, unsaved.\n")
    editor = play(READ, capabilities=ALL, answers=buffers.answers)

    editor.prompt(editor.new(), "Read it")

    assert "The gnu, unsaved." in json.dumps(ended(editor)["content"])


def test_an_edit_of_unsaved_text_goes_through_the_editor_and_into_the_ledger(
    play: Play, project: Path
) -> None:
    buffers = Buffers(project, "The zebra crosses.\nTyped and not saved.\n")
    editor = play(READ, EDIT, {"text": "Done."}, capabilities=ALL, answers=buffers.answers)
    session = editor.new()

    editor.prompt(session, "Change it")
    editor.prompt(session, "/patches:show 1")

    assert buffers.written == [buffers.path]
    assert (project / "notes.txt").read_text() == "The okapi crosses.\nTyped and not saved.\n"
    assert "+The okapi crosses." in editor.said()
    editor.prompt(session, "/patches:revert 1")
    assert (project / "notes.txt").read_text() == "The zebra crosses.\nTyped and not saved.\n"


def test_a_saved_file_is_written_by_sidecar_itself(play: Play, project: Path) -> None:
    buffers = Buffers(project, "The zebra crosses at noon.\n")
    editor = play(READ, EDIT, capabilities=ALL, answers=buffers.answers)

    editor.prompt(editor.new(), "Change it")

    assert buffers.written == []
    assert (project / "notes.txt").read_text() == "The okapi crosses at noon.\n"


def test_an_editor_that_only_reads_keeps_its_unsaved_text(play: Play, project: Path) -> None:
    buffers = Buffers(project, "The zebra, unsaved.\n")
    capabilities = {"fs": {"readTextFile": True}}
    editor = play(READ, EDIT, capabilities=capabilities, answers=buffers.answers)

    editor.prompt(editor.new(), "Change it")

    assert "has unsaved changes" in json.dumps(ended(editor)["content"])
    assert (project / "notes.txt").read_text() == "The zebra crosses at noon.\n"


def test_text_that_was_typed_during_the_permission_is_not_overwritten(play: Play, project: Path) -> None:
    buffers = Buffers(project, "The zebra, unsaved.\n")

    def type_meanwhile(params: Json) -> Json:
        buffers.text += "More.\n"
        return allow(params)

    answers = buffers.answers | {"session/request_permission": type_meanwhile}
    editor = play(READ, EDIT, capabilities=ALL, answers=answers)

    editor.prompt(editor.new(), "Change it")

    assert ended(editor)["status"] == "failed"
    assert buffers.text == "The zebra, unsaved.\nMore.\n"


class Terminals:
    """Terminals of the editor: each really runs its command."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.created: Json = {}

    def answers(self) -> dict[str, Any]:
        def create(params: Json) -> Json:
            self.calls.append("create")
            self.created = params
            argv = [params["command"], *params["args"]]
            self.ran = subprocess.run(argv, cwd=params["cwd"], capture_output=True, text=True, check=False)
            return {"terminalId": "term-1"}

        def note(name: str) -> Any:
            def answer(params: Json) -> Json:
                self.calls.append(name)
                results: dict[str, Json] = {
                    "output": {"output": self.ran.stdout, "truncated": False},
                    "wait": {"exitCode": self.ran.returncode},
                }
                return results.get(name, {})

            return answer

        return {
            "session/request_permission": allow,
            "terminal/create": create,
            "terminal/wait_for_exit": note("wait"),
            "terminal/output": note("output"),
            "terminal/release": note("release"),
            "terminal/kill": note("kill"),
        }


@pytest.mark.parametrize("mode", ["ask", "auto"])
def test_a_command_runs_in_the_editors_terminal_after_a_permission_that_says_where(
    play: Play, project: Path, mode: str
) -> None:
    terminals = Terminals()
    run = call("run_in_terminal", command="echo from the terminal; exit 3")
    editor = play(run, {"text": "Done."}, capabilities=ALL, answers=terminals.answers())
    session = editor.new()
    editor.request("session/set_mode", sessionId=session, modeId=mode)

    editor.prompt(session, "Run it")

    asked = editor.wait_asked("session/request_permission")
    assert "outside the sandbox" in json.dumps(asked["toolCall"]["content"])
    assert [option["kind"] for option in asked["options"]] == ["allow_once", "reject_once", "reject_always"]
    assert terminals.calls == ["create", "wait", "output", "release"]
    assert terminals.created["cwd"] == str(project)
    shown = [each["update"].get("content") for each in editor.updates]
    assert [{"type": "terminal", "terminalId": "term-1"}] in shown
    assert "from the terminal" in json.dumps(ended(editor)["content"])
    assert ended(editor)["rawOutput"] == {"exitCode": 3}


def test_a_cancel_kills_the_terminal(play: Play) -> None:
    terminals = Terminals()
    answers = terminals.answers()
    del answers["terminal/wait_for_exit"]
    editor = play(call("run_in_terminal", command="true"), capabilities=ALL, answers=answers)
    session = editor.new()
    prompt = editor.send_prompt(session, "Run it")
    editor.wait_asked("terminal/wait_for_exit")

    editor.notify("session/cancel", sessionId=session)

    assert editor.wait(prompt)["stopReason"] == "cancelled"
    assert terminals.calls == ["create", "kill", "release"]


def test_without_terminals_the_model_has_no_such_tool(play: Play) -> None:
    editor = play(call("run_in_terminal", command="true"), {"text": "Done."})

    editor.prompt(editor.new(), "Run it")

    assert "no tool" in json.dumps(ended(editor)["content"]).lower()


SECRET = "sesame-4711"


def test_a_tool_of_a_server_that_the_editor_brings_is_called(play: Play) -> None:
    args = [str(PLAIN_SERVER), "work"]
    server = {"name": "plain", "command": sys.executable, "args": args, "env": []}
    answers = {"session/request_permission": allow}
    editor = play(call("mcp__plain__echo", text="hello"), {"text": "Done."}, answers=answers)

    session = editor.new(mcpServers=[server])
    editor.prompt(session, "Ask it")
    while "no tool" in json.dumps(
        ended(editor)["content"]
    ):  # a turn does not wait long for a server to start
        editor.prompt(session, "Ask it")

    assert "hello" in json.dumps(ended(editor)["content"])


def test_the_secrets_of_servers_are_not_stored_with_the_session(start: Start, tmp_path: Path) -> None:
    started = {"name": "a", "command": "true", "args": [], "env": [{"name": "TOKEN", "value": SECRET}]}
    header = {"name": "Authorization", "value": f"Bearer {SECRET}"}
    reached = {"type": "http", "name": "b", "url": "http://127.0.0.1:9/", "headers": [header]}
    editor = start()
    session = editor.new(mcpServers=[started, reached])
    editor.prompt(session, "/help")
    replayed = editor.load(session)
    editor.close()

    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "sidecar.db")) as database:
        rows = database.execute("SELECT data FROM events UNION ALL SELECT config FROM chats").fetchall()
    stored = b"".join(bytes(data) for (data,) in rows if data).decode()
    assert "Authorization" in stored
    assert SECRET not in stored + json.dumps([replayed, editor.updates])


def test_a_server_that_fails_is_reported(start: Start) -> None:
    server = {"name": "broken", "command": "/no/such/program", "args": [], "env": []}
    editor = start(capabilities=ALL)

    editor.new(mcpServers=[server])

    notice = editor.wait_update("notice", severity="warning")
    assert "broken" in notice["title"]


@pytest.mark.parametrize(
    ("server", "field"),
    [
        ({"type": "sse", "name": "x", "url": "http://x", "headers": []}, "mcpServers[0].type"),
        ({"name": "x y", "command": "true", "args": [], "env": []}, "mcpServers[0].name"),
        ({"name": "x", "command": "true", "args": [], "env": {"A": "b"}}, "mcpServers[0].env"),
    ],
)
def test_a_wrong_server_is_named(editor: Editor, server: Json, field: str) -> None:
    with pytest.raises(Refused) as refused:
        editor.new(mcpServers=[server])

    assert refused.value.code == -32602
    assert f"`{field}`" in refused.value.message
