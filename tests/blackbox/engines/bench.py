"""A sidecar whose chats are answered by the small agent of `tests/support/acp_agent.py`, in a project of the test's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.support import processes
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

AGENT = str(Path(__file__).parents[2] / "support" / "acp_agent.py")


class EngineBench:
    """`agent_dir` has the sessions of the agent; `permission` is how the client answers every request."""

    def __init__(self, spawn: Spawner) -> None:
        self.spawn = spawn
        self.agent_dir = spawn.folder / "agent"
        self.project = spawn.folder / "my projéct"
        self.project.mkdir()
        self.permission = "allow_once"
        self.asked: list[Json] = []
        self.sidecar: Sidecar

    def configure(self, *traits: str, **settings: str | int) -> None:
        """Write the settings of the user: the agent `own` with these traits."""
        folder = self.spawn.folder / "home" / ".config" / "sidecar"
        folder.mkdir(parents=True, exist_ok=True)
        args = [AGENT, str(self.agent_dir), ",".join(traits)]
        table = {"command": sys.executable, "args": args, **settings}
        lines = ["[engines.own]", *(f"{name} = {json.dumps(value)}" for name, value in table.items())]
        (folder / "config.toml").write_text("\n".join(lines) + "\n")

    def start(self, *traits: str, **settings: str | int) -> Sidecar:
        """Start a sidecar, and open the chat `c` with the agent."""
        self.configure(*traits, **settings)
        self.sidecar = self.spawn(capabilities={"permissions": True})
        self.sidecar.answering["permission/request"] = self._answer
        self.open()
        return self.sidecar

    def _answer(self, params: Json) -> Json:
        self.asked.append(params)
        return {"decision": self.permission}

    def open(self, chat: str = "c", **config: Any) -> Json:
        chosen = {"engine": "acp:own", **config}
        return self.sidecar.call("chat/open", chatId=chat, projectPath=str(self.project), config=chosen)

    def run(self, *orders: str, chat: str = "c") -> Json:
        """Send a prompt of these orders and return the data of `turn.ended`."""
        ended: Json = self.sidecar.run("\n".join(orders), chatId=chat)["data"]
        return ended

    def said(self, *orders: str, chat: str = "c") -> str:
        """What the agent said to a prompt of these orders."""
        self.run(*orders, chat=chat)
        return self.text(self.turns(chat)[-1])

    def turns(self, chat: str = "c") -> list[Json]:
        found: list[Json] = self.sidecar.call("chat/history", chatId=chat)["turns"]
        return found

    def text(self, turn: Json) -> str:
        return "".join(item["text"] for item in turn["items"] if item["type"] == "message")

    def tools(self, chat: str = "c") -> list[Json]:
        return [item for turn in self.turns(chat) for item in turn["items"] if item["type"] == "tool"]

    def manifests(self, chat: str = "c") -> list[Json]:
        """The data of every `context.assembled`."""
        session = self.sidecar.call("chat/open", chatId=chat)["sessionId"]
        return [
            event["data"] for event in self.sidecar.journal(session) if event["type"] == "context.assembled"
        ]

    def agents(self) -> list[int]:
        """Every process of the agent that was ever started."""
        return [int(line) for line in (self.agent_dir / "pids").read_text().split()]

    def living(self) -> list[int]:
        return [pid for pid in self.agents() if processes.is_running(pid)]
