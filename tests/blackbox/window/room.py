"""A chat in a project whose model is a strict fake with a small window, and what a test asks of the two."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sidecar.fake_provider import FakeProvider, Recorded
from tests.blackbox.work.workbench import ALL, Workbench
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

Json = dict[str, Any]

SMALL = 8192
"""The window of the fake's `fake-small`, which refuses every request that is larger."""

SUMMARISING = b"Summarise the chat below"
"""How a request for a summary begins."""

TRIED = "[providers.openai]\ntimeout = 20\nretries = 0\n"
"""A refusal is final: what is sent once too large must not pass at the second try."""


TOOLS = [
    *(
        "list_dir",
        "read_file",
        "glob",
        "grep",
        "git_diff",
        "write_file",
        "edit_file",
        "insert_line",
        "patch_file",
    ),
    *("run_command", "update_plan", "ask_user"),
]
"""A small window holds so many definitions and some talk; further tools would only make the tests longer."""


class Room:
    """`bench.project` is a git repository. Chats are in it; `c` is there when nothing else is named."""

    def __init__(
        self,
        bench: Workbench,
        fake: FakeProvider,
        model: str = "openai:fake-small",
        window: int | None = SMALL,
        env: dict[str, str] | None = None,
        **config: Any,
    ) -> None:
        self.bench = bench
        self.spawn: Spawner = bench.spawn
        self.project: Path = bench.project
        self.fake = fake
        self.model = model
        sized = {"window": window, "tools": {"allow": TOOLS}} if window else {}
        self.config: Json = {"mode": "auto", **sized, **config}
        self.table = self.spawn.folder / "models.toml"
        self.table.write_text(TRIED)
        self.env = {**fake.env, **(env or {})}
        self.sidecar = self._start()
        self.session = self.open()

    def _start(self) -> Sidecar:
        return self.spawn("--config", str(self.table), model=self.model, env=self.env, capabilities=ALL)

    def restart(self) -> None:
        """Kill the sidecar without a warning, and go on with the chat in a new one."""
        self.sidecar.kill()
        self.start()

    def start(self) -> None:
        """Go on with the chat in a new sidecar."""
        self.sidecar = self._start()
        self.sidecar.call("chat/open", chatId="c", projectPath=str(self.project))

    def open(self, chat: str = "c", **config: Any) -> str:
        found = self.sidecar.call(
            "chat/open", chatId=chat, projectPath=str(self.project), config={**self.config, **config}
        )
        return str(found["sessionId"])

    def ask(self, text: str, chat: str = "c", **params: Any) -> Json:
        """Send a prompt and wait for the end of its turn, which must be an answer; the turn's identity."""
        sent = self.sidecar.say(text, chatId=chat, **params)
        ended = self.sidecar.wait_turn(sent["sessionId"], sent["turnId"], 60)
        assert ended["data"]["reason"] == "end_turn", ended["data"]
        return sent

    def preview(self, text: str, chat: str = "c", **params: Any) -> Json:
        return self.sidecar.call("chat/context", chatId=chat, text=text, **params)

    def assembled(self, sent: Json) -> Json:
        """What was told of the first request of a turn."""
        told = self.sidecar.events(sent["sessionId"], "context.assembled")
        found: Json = next(event["data"] for event in told if event["turnId"] == sent["turnId"])
        return found

    def write(self, name: str, text: str) -> str:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def show(self, name: str, text: str | None = None, *, pin: bool = False) -> None:
        """Open a file in the chat, with a new text when there is one."""
        if text is not None:
            self.write(name, text)
        self.sidecar.call("files/open", chatId="c", path=str(self.project / name), pinned=pin)

    def edit(self, name: str, text: str) -> Json:
        """Let the model write a file by its tool."""
        return self.ask(say_tool("write_file", path=name, content=text))

    @property
    def asked(self) -> list[Recorded]:
        """The requests for an answer, oldest first; not those for lists or summaries."""
        return [request for request in self.posted if SUMMARISING not in request.body]

    @property
    def summarised(self) -> list[Recorded]:
        return [request for request in self.posted if SUMMARISING in request.body]

    @property
    def posted(self) -> list[Recorded]:
        return [request for request in self.fake.requests if request.method == "POST"]

    @property
    def refused(self) -> list[str]:
        """The rules that requests broke, in the fake's words."""
        return [request.rule for request in self.posted if request.rule]

    def compactions(self, kind: str = "ended") -> list[Json]:
        return [event["data"] for event in self.sidecar.events(self.session, f"compaction.{kind}")]


def say_tool(name: str, **input: Any) -> str:
    """A prompt at which the fake calls a tool and then says that it is done."""
    return f"[[tool={name}:{json.dumps(input)}]][[next]][[say=Done]]"


def messages(request: Recorded) -> list[Json]:
    found: list[Json] = request.json["messages"]
    return found


def text_of(message: Json) -> str:
    """All text of a message, whichever shape it has."""
    content = message.get("content")
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(part.get("text", "") for part in content)


def sent_text(request: Recorded) -> str:
    return "\n".join(map(text_of, messages(request)))


def block(manifest: Json, id: str) -> Json:
    return next(found for found in manifest["blocks"] if found["id"] == id)


def included(manifest: Json) -> list[Json]:
    return [found for found in manifest["blocks"] if found["included"] != "dropped"]


def tell(line: str) -> None:
    """A figure for who runs the suite; shown with `-rP`, or when the test fails."""
    sys.stdout.write(f"{line}\n")


def plain(manifest: Json) -> list[Json]:
    """The blocks without their texts."""
    return [{key: value for key, value in found.items() if key != "text"} for found in manifest["blocks"]]
