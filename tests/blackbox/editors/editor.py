"""An editor as the sidecar sees it: one process, its frames read by a thread, each checked by the official schema.

It also checks what the protocol asks of their order: no update of a session before the answer that names it, and
no seq twice but for the pieces of one event.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S
from tests.support.wire import Json

from . import schema

Answer = Callable[[Json], Json]

COMMAND = shlex.split(os.environ.get("SIDECAR_TEST_ACP_COMMAND", "")) or [
    sys.executable,
    "-m",
    "sidecar",
    "acp",
]
"""The program under test: any agent that an editor can start."""

ALL = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "session": {"notices": {}, "compaction": {}},
    "elicitation": {"form": {}},
}
"""What a client of version 1 can offer."""


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error))
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Json = error.get("data", {})


class Editor:
    """`answers` are the results of what the sidecar asks, by method; a function gets the parameters."""

    def __init__(
        self,
        environment: dict[str, str],
        folder: Path,
        *,
        command: list[str] = COMMAND,
        version: Any = 1,
        capabilities: Json | None = None,
        answers: dict[str, Json | Answer] | None = None,
        initialize: bool = True,
    ) -> None:
        self.folder = folder
        self.answers = answers or {}
        self.asked: list[tuple[str, Json]] = []
        self.updates: list[Json] = []
        self.problems: list[str] = []
        self.refusals: list[int] = []
        self.initialized: Json = {}
        self._version = 2 if str(version) == "2" else 1
        self._methods: dict[int, tuple[str, Json]] = {}
        self._named: set[str] = set()
        self._ids = 0
        self._arrived: queue.Queue[Json | None] = queue.Queue()
        self._may_read = threading.Event()
        self._may_read.set()
        self._results: dict[int, Json] = {}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if initialize:
            self.initialize(version, capabilities or {})

    def initialize(self, version: Any, capabilities: Json) -> None:
        about = {"name": "test-editor", "version": "1"}
        shown = {"clientCapabilities": capabilities, "clientInfo": about}
        if self._version == 2:
            shown = {"capabilities": capabilities, "info": about}
        self.initialized = self.request("initialize", protocolVersion=version, **shown)

    def new(self, chat: str | None = None, **more: Any) -> str:
        """Open a session; return its id."""
        own = {"_meta": {"sidecar": {"chatId": chat}}} if chat else {}
        answer = self.request("session/new", **({"cwd": str(self.folder), "mcpServers": []} | own | more))
        return str(answer["sessionId"])

    def load(self, session: str, **more: Any) -> list[Json]:
        """Load a session; return the stored updates that came before the answer."""
        before = len(self.updates)
        self.request("session/load", sessionId=session, cwd=str(self.folder), mcpServers=[], **more)
        return [each["update"] for each in self.stored(before)]

    def prompt(self, session: str, text: str, **more: Any) -> Json:
        """Send a prompt and wait for its answer."""
        return self.wait(self.send_prompt(session, text, **more))

    def send_prompt(self, session: str, text: str, **more: Any) -> int:
        return self.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}], **more)

    def request(self, method: str, **params: Any) -> Json:
        return self.wait(self.send(method, **params))

    def send(self, method: str, **params: Any) -> int:
        self._ids += 1
        self._methods[self._ids] = (method, params)
        self.write({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return self._ids

    def notify(self, method: str, **params: Any) -> None:
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def wait(self, id: int) -> Json:
        """Wait for the answer to a request; answer what is asked meanwhile."""
        while id not in self._results:
            self._take_next()
        message = self._results.pop(id)
        if "error" in message:
            raise Refused(message["error"])
        result: Json = message["result"]
        return result

    def wait_update(self, kind: str, after: int = 0, **members: Any) -> Json:
        """Wait for an update of a kind with these members, from a position in `updates` on."""
        at = after
        while True:
            while at < len(self.updates):
                update = self.updates[at]["update"]
                at += 1
                if update["sessionUpdate"] == kind and members.items() <= update.items():
                    return dict(update)
            self._take_next()

    def wait_refusal(self) -> int:
        """Wait for an error that answers no request of ours; return its code."""
        while not self.refusals:
            self._take_next()
        return self.refusals.pop(0)

    def wait_updates(self, count: int, *, unless_answered: bool = False) -> None:
        """Wait for as many updates in all, or for any answer if that is enough."""
        while len(self.updates) < count and not (unless_answered and self._results):
            self._take_next()

    def wait_asked(self, method: str) -> Json:
        """Wait until the sidecar asks this; return the parameters."""
        while True:
            for name, params in self.asked:
                if name == method:
                    return params
            self._take_next()

    def stored(self, since: int = 0) -> list[Json]:
        """The updates that are events of the chat."""
        return [each for each in self.updates[since:] if "live" not in each["_meta"]["sidecar"]]

    def kinds(self, since: int = 0) -> list[str]:
        return [each["update"]["sessionUpdate"] for each in self.updates[since:]]

    def said(self, since: int = 0, kind: str = "agent_message_chunk") -> str:
        """The text of all chunks of this kind."""
        chunks = [each["update"] for each in self.updates[since:] if each["update"]["sessionUpdate"] == kind]
        return "".join(chunk["content"].get("text", "") for chunk in chunks)

    def write(self, message: Json) -> None:
        self.write_line(json.dumps(message).encode())

    def write_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def pause_reading(self) -> None:
        """Read no more of what the sidecar sends, after the line that is being read."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.close()

    def close(self) -> int:
        """Close stdin, wait for the end, and read what was still sent."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # of what a killed process has not read
            self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        self.drain()
        return code

    def drain(self) -> None:
        self._reader.join(PATIENCE_S)
        while (message := self._arrived.get(timeout=PATIENCE_S)) is not None:
            self._take(message)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _take_next(self) -> None:
        message = self._arrived.get(timeout=PATIENCE_S)
        assert message is not None, f"the sidecar has exited: {self.process.poll()}"
        self._take(message)

    def _take(self, message: Json) -> None:
        method, id = message.get("method"), message.get("id")
        if method == "session/update":
            self._check(method, "notification", message["params"])
            if message["params"]["sessionId"] not in self._named:
                self.problems.append(f"an update before its session: {message}"[:500])
            self.updates.append(message["params"])
        elif method is None and id not in self._methods:
            self._check("", "error", message["error"])
            self.refusals.append(message["error"]["code"])
        elif method is None and id is not None:
            asked = self._methods.get(id, ("?", {}))[0]
            kind = "error" if "error" in message else "result"
            self._check(asked, kind, message[kind])
            self._named |= {(message.get("result") or {}).get("sessionId") or ""}
            self._results[id] = message
        elif method is not None and id is not None:
            self._check(method, "request", message["params"])
            self.asked.append((method, message["params"]))
            self._answer(id, method, message["params"])
        elif method != "$/cancel_request":
            self.problems.append(f"no frame of the protocol: {message}"[:500])

    def _check(self, method: str, kind: str, value: Any) -> None:
        if found := schema.problem(self._version, method, kind, value):
            self.problems.append(f"{method}: {found}")

    def _answer(self, id: int, method: str, params: Json) -> None:
        answer = self.answers.get(method)
        if answer is None:
            return
        try:
            result = answer(params) if callable(answer) else answer
        except Refused as refused:
            error = {"code": refused.code, "message": refused.message}
            self.write({"jsonrpc": "2.0", "id": id, "error": error})
        else:
            self.write({"jsonrpc": "2.0", "id": id, "result": result})

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith(b"\n"):
                break  # the sidecar ended while nobody read
            self._note_loads(message := json.loads(line))
            self._arrived.put(message)
            self._may_read.wait()
        self._arrived.put(None)

    def _note_loads(self, message: Json) -> None:
        """A session that is loaded is named by the request: its updates precede the answer."""
        for method, params in list(self._methods.values()):
            if method in ("session/load", "session/resume"):
                self._named.add(str(params.get("sessionId")))
