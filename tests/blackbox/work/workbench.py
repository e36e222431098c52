"""A project, a model that plays a script in it, and a client that answers what it is asked."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

Json = dict[str, Any]

ALL = {"permissions": True, "input": True, "buffers": False}


class Workbench:
    """`project` is a git repository with one commit. Scripts are lists of steps, a list of calls or a text each."""

    def __init__(self, spawn: Spawner) -> None:
        self.spawn = spawn
        self.project = spawn.folder / "project"
        (self.project / "src").mkdir(parents=True)
        (self.project / "notes.txt").write_text("first\nsecond\nthird\n")
        (self.project / "src" / "add.py").write_text("def add(a, b):\n    return a - b\n")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "start")

    def git(self, *words: str) -> str:
        run = subprocess.run(
            ["git", *words], cwd=self.project, check=True, capture_output=True, text=True, timeout=PATIENCE_S
        )
        return run.stdout

    def script(self, *replies: list[Any]) -> str:
        """The model that plays these replies, prompt after prompt."""
        path = self.spawn.folder / "script.json"
        path.write_text(
            json.dumps({"replies": [{"steps": [_step(step) for step in reply]} for reply in replies]})
        )
        return f"scripted:{path}"

    def start(self, *replies: list[Any], mode: str | None = "auto", **hello: Any) -> Sidecar:
        """A sidecar whose model plays `replies`, with the chat `c` open in the project."""
        sidecar = self.spawn(model=self.script(*replies), **{"capabilities": ALL, **hello})
        self.open(sidecar, mode)
        return sidecar

    def open(self, sidecar: Sidecar, mode: str | None = "auto", **more: Any) -> Json:
        config = {"config": {"mode": mode}} if mode else {}
        return sidecar.call("chat/open", chatId="c", projectPath=str(self.project), **config, **more)

    def path(self, name: str) -> str:
        return str((self.project / name).resolve())

    def read(self, name: str) -> str:
        return (self.project / name).read_text()


def call(name: str, **input: Any) -> Json:
    return {"name": name, "input": input}


def tools(sidecar: Sidecar, session: str, turn: str | None = None) -> list[Json]:
    """The finished tool calls of a chat, in the order in which they began."""
    events = sidecar.events(session, "tool.started", "tool.ended")
    ended = {e["data"]["item"]["id"]: e["data"]["item"] for e in events if e["type"] == "tool.ended"}
    started = [e for e in events if e["type"] == "tool.started" and turn in (None, e["turnId"])]
    return [ended[event["data"]["item"]["id"]] for event in started]


def outputs(sidecar: Sidecar, session: str) -> list[str]:
    return [item["output"]["text"] for item in tools(sidecar, session)]


def statuses(sidecar: Sidecar, session: str) -> list[str]:
    return [item["status"] for item in tools(sidecar, session)]


def _step(step: Any) -> Json:
    if isinstance(step, str):
        return {"text": step}
    if isinstance(step, list):
        return {"toolCalls": step}
    return {"toolCall": step} if "name" in step else step


def wait_ready(sidecar: Sidecar) -> None:
    """Wait for an MCP server: a turn waits only a moment for one that starts."""
    wait_state(sidecar, "ready")


def wait_state(sidecar: Sidecar, state: str) -> None:
    """Wait until an MCP server is in this state."""
    sidecar.wait_frame(
        lambda f: (
            f.get("method") == "status"
            and f["params"]["type"] == "mcp"
            and f["params"]["data"].get("state") == state
        )
    )
