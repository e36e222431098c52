"""Our own drivers: spawn `sidecar`, which asks the peers' fake model (or echoes), and read it as they are read.

One thread reads, stamps each read with the time, and parses every line with `json`: the same work for
each frame as the harness does for the peers, so that none is measured with a faster client.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .contestant import Contestant

COMMAND = shlex.split(os.environ.get("SIDECAR_COMMAND", "")) or [
    str(Path(sys.executable).with_name("sidecar")),
    "serve",
]
"""`python -m benchmarks` names an installed wheel here, unless another command is named already."""

ACP_COMMAND = [*COMMAND[:-1], "acp"]

STOP_WITHIN = 5.0
"""Longer than the contract allows; then it is killed."""

_SENTENCE = "Please tell me a little more about that, with an example from everyday work. "

Answer = Callable[[Any, float], None]
Notify = Callable[[str, Any, float], None]


class Failed(Exception):
    """The sidecar answered with an error, left, or said nothing for too long."""


class OurTurn:
    """Counts deltas by their seq: one frame may stand for a run of them."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.t_sent = self.t_first = self.t_end = 0.0
        self.deltas = self.chars = 0
        self._error: Any = None
        self._done = threading.Event()

    def delta(self, text: str, place: dict[str, Any], when: float) -> None:
        if not self.deltas:
            self.t_first = when
        self.deltas += place["seq"] - place.get("from", place["seq"]) + 1
        self.chars += len(text)

    def end(self, when: float, error: Any = None) -> None:
        self.t_end, self._error = when, error
        self._done.set()

    def wait(self, timeout: float = 120) -> OurTurn:
        if not self._done.wait(timeout):
            raise Failed(f"{self.tag}: no end after {timeout} s and {self.deltas} deltas")
        if self._error:
            raise Failed(f"{self.tag}: {self._error}")
        return self


class Lines:
    """A child that speaks JSON-RPC, a message a line, on pipes."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path, notify: Notify) -> None:
        self._notify = notify
        self._waiting: dict[int, Answer] = {}
        self._next = 0
        self.t_spawn = time.monotonic()
        self.child = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            process_group=0,
        )
        assert self.child.stdin
        assert self.child.stdout
        self._stdin, self._stdout = self.child.stdin, self.child.stdout
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, method: str, params: dict[str, Any], answer: Answer) -> float:
        """Send a request and return when; `answer` gets the reply on the reader's thread."""
        self._next += 1
        self._waiting[self._next] = answer
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        line = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        sent = time.monotonic()
        while line:
            line = line[os.write(self._stdin.fileno(), line) :]
        return sent

    def call(self, method: str, params: dict[str, Any], timeout: float = 120) -> tuple[Any, float]:
        """The result of a request, and when it was read."""
        box: list[tuple[Any, float]] = []
        done = threading.Event()

        def answer(reply: Any, when: float) -> None:
            box.append((reply, when))
            done.set()

        self.send(method, params, answer)
        if not done.wait(timeout):
            raise Failed(f"{method}: no answer after {timeout} s")
        reply, when = box[0]
        if "result" not in reply:
            raise Failed(f"{method}: {reply}")
        return reply["result"], when

    def stop(self) -> None:
        self._stdin.close()
        try:
            self.child.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()
        self._reader.join(STOP_WITHIN)
        self._stdout.close()

    def _read(self) -> None:
        rest = b""
        while data := os.read(self._stdout.fileno(), 1 << 20):
            when = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(json.loads(line), when)
        for answer in self._waiting.values():
            answer({"error": "it left"}, time.monotonic())

    def _take(self, message: Any, when: float) -> None:
        if "method" in message:
            self._notify(message["method"], message["params"], when)
        elif message.get("id") in self._waiting:
            self._waiting.pop(message["id"])(message, when)


class _Process:
    """One process of ours. Its data live in `home`; the model is at `url`, or is an echo."""

    io: Lines

    def __init__(self, home: Path, url: str | None, tools: list[object] | None = None) -> None:
        self._home = home
        self._url = url
        self._tools = tools
        self._turns: dict[str, OurTurn] = {}

    def stop(self) -> None:
        self.io.stop()

    def pids(self) -> list[int]:
        return [self.io.child.pid]

    def _spawn(self, command: list[str], notify: Notify) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        self.io = Lines(command, _environment(self._home, self._url), self._home, notify)


class SidecarDriver(_Process):
    """`sidecar serve`, by its own protocol. Chats have a project, and so the model gets tools."""

    def start(self) -> float:
        self._spawn(COMMAND, self._take)
        hello: dict[str, Any] = {
            "protocol": "sidecar",
            "versions": [1],
            "client": {"name": "bench"},
            "processId": os.getpid(),
        }
        if self._tools is not None:
            hello["tools"] = self._tools
        _, when = self.io.call("initialize", hello)
        return when - self.io.t_spawn

    def new_session(self) -> str:
        chat = f"chat {uuid.uuid4()}"
        self.io.call("chat/open", {"chatId": chat, "projectPath": str(_project(self._home))})
        return chat

    def resume(self, sid: str) -> int:
        opened, _ = self.io.call(
            "chat/open", {"chatId": sid, "ifMissing": "fail", "projectPath": str(_project(self._home))}
        )
        return len(opened["turns"])

    def prompt(self, sid: str, text: str, tag: str) -> OurTurn:
        turn = self._turns[sid] = OurTurn(tag)

        def answer(reply: Any, when: float) -> None:
            if "result" not in reply:
                turn.end(when, reply)

        turn.t_sent = self.io.send("prompt/send", {"chatId": sid, "promptId": tag, "text": text}, answer)
        return turn

    def _take(self, method: str, event: Any, when: float) -> None:
        turn = self._turns.get(event["chatId"]) if method == "event" else None
        if turn and event["type"] == "message.delta":
            turn.delta(event["data"]["text"], event, when)
        elif turn and event["type"] == "turn.ended":
            reason = event["data"]["reason"]
            turn.end(when, None if reason == "end_turn" else reason)


class AcpDriver(_Process):
    """`sidecar acp`, by the Agent Client Protocol."""

    def start(self) -> float:
        self._spawn(ACP_COMMAND, self._take)
        about = {"name": "bench", "version": "0"}
        can: dict[str, Any] = {
            "session": {"notices": {}}
        }  # else a notice is a message, and counts as a delta
        hello = {"protocolVersion": 1, "clientInfo": about, "clientCapabilities": can}
        _, when = self.io.call("initialize", hello)
        return when - self.io.t_spawn

    def new_session(self) -> str:
        made, _ = self.io.call("session/new", self._folder())
        return str(made["sessionId"])

    def resume(self, sid: str) -> None:
        self.io.call("session/resume", {"sessionId": sid, **self._folder()})

    def prompt(self, sid: str, text: str, tag: str) -> OurTurn:
        turn = self._turns[sid] = OurTurn(tag)

        def answer(reply: Any, when: float) -> None:
            ended = reply.get("result", {}).get("stopReason") == "end_turn"
            turn.end(when, None if ended else reply)

        prompt = [{"type": "text", "text": text}]
        turn.t_sent = self.io.send("session/prompt", {"sessionId": sid, "prompt": prompt}, answer)
        return turn

    def _take(self, method: str, params: Any, when: float) -> None:
        update = params["update"] if method == "session/update" else {}
        turn = self._turns.get(params.get("sessionId", ""))
        if turn and update.get("sessionUpdate") == "agent_message_chunk":
            turn.delta(update["content"]["text"], params["_meta"]["sidecar"], when)

    def _folder(self) -> dict[str, Any]:
        return {"cwd": str(self._home), "mcpServers": []}


TOOL = {
    "name": "show_picture",
    "description": "Shows a picture in the app.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


def contestants(url: str | None) -> list[Contestant]:
    """Ours, without and with a tool of the app, and the fake model that listens at `url`; without one, echoing."""
    return [
        _contestant("ours", url, None, _import),
        _contestant("ours with a tool", url, [TOOL], None),
    ]


def _contestant(
    name: str, url: str | None, tools: list[object] | None, seed: Callable[[Path, int], str] | None
) -> Contestant:
    def make(home: Path) -> SidecarDriver:
        return SidecarDriver(home, url, tools)

    return Contestant(name, make, marked if url else _words, seed, 20_000, _version())


def _project(home: Path) -> Path:
    """The folder that every chat is in, as the peers' are."""
    project = home / "project"
    project.mkdir(exist_ok=True)
    return project


def editor_contestants(url: str | None) -> list[Contestant]:
    """Ours as editors start it, and by its own protocol in a folder as editors open one."""
    made: dict[str, Callable[[Path], AcpDriver | SidecarDriver]] = {
        "acp": lambda home: AcpDriver(home, url),
        "native": lambda home: SidecarDriver(home, url),
    }
    prompt, version = marked if url else _words, _version()
    return [Contestant(name, make, prompt, None, 0, version) for name, make in made.items()]


def marked(deltas: int, tag: str) -> str:
    """What the fake model reads: how many deltas it should answer, and a tag for its log."""
    return f"[[n={deltas}]] [[id={tag}]]"


def _words(deltas: int, _: str = "") -> str:
    return " ".join(f"t{number % 10_000:04d}" for number in range(deltas))


def _import(home: Path, turns: int) -> str:
    """Make a chat of `turns` turns; each about as long as those that the peers are seeded with."""
    reply = _words(50)
    lines = [
        json.dumps({"role": role, "text": text})
        for number in range(turns)
        for role, text in (("user", f"{number}: {_SENTENCE * 3}"), ("assistant", reply))
    ]
    home.mkdir(parents=True, exist_ok=True)
    path = home / "seed.jsonl"
    path.write_text("\n".join(lines) + "\n")
    driver = SidecarDriver(home, None)
    driver.start()
    try:
        driver.io.call("chat/import", {"chatId": "seeded", "path": str(path)}, timeout=600)
    finally:
        driver.stop()
    return "seeded"


def _version() -> str:
    command = [*COMMAND[:-1], "--version"]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()


def _environment(home: Path, url: str | None) -> dict[str, str]:
    """Nothing of the tester's own. Bytecode may be written, as on a user's machine."""
    model = {"SIDECAR_MODEL": "openai:fake", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "benchmark"}
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return (
        kept
        | (model if url else {"SIDECAR_MODEL": "echo:"})
        | {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "SIDECAR_DATA_DIR": str(home / "data"),
        }
    )
