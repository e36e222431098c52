"""Tries a program as a user would: it chats, is killed and resumes, leaves no process and no file behind, and starts
where a binary is put: in a folder with spaces and other letters, read-only, without a home.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

Message = dict[str, Any]

END_S = 5.0
"""The contract allows two seconds for an exit; a file that unpacks itself also removes what it has unpacked."""

HELLO = {"protocol": "sidecar", "versions": [1], "client": {"name": "smoke"}}


class SmokeTestFailed(Exception):
    """The program did not do what a user would expect."""


class Program:
    """`command serve` with its data in `folder`, and nothing of the tester's environment."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str] | None = None) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        known = {"PATH": os.environ["PATH"], "HOME": str(folder)} if environ is None else environ
        self.process = subprocess.Popen(
            [*command, "serve", "--data-dir", str(folder / "data")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**known, "TMPDIR": str(self.temporary), "SIDECAR_MODEL": "echo:"},
            start_new_session=True,
        )
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """End what is left of it after a failure."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with suppress(OSError):
                    pipe.close()

    def send(self, method: str, **params: Any) -> int:
        assert self.process.stdin
        self._sent += 1
        message = {"jsonrpc": "2.0", "id": self._sent, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._sent

    def read_until(self, found: Callable[[Message], bool]) -> Message:
        assert self.process.stdout
        for line in self.process.stdout:
            message: Message = json.loads(line)
            if found(message):
                return message
        raise SmokeTestFailed(f"it ended with code {self.process.wait()}")

    def call(self, method: str, **params: Any) -> Any:
        sent = self.send(method, **params)
        answer = self.read_until(lambda message: message.get("id") == sent)
        if "error" in answer:
            raise SmokeTestFailed(f"{method}: {answer['error']}")
        return answer["result"]

    def prompt(self, text: str, number: int) -> None:
        self.call("prompt/send", chatId="c", promptId=f"p{number}", text=text)
        ended = self.read_until(lambda message: event_type(message) == "turn.ended")
        _require(ended["params"]["data"]["reason"] == "end_turn", "the turn ended", ended)

    def close(self) -> None:
        """End its input, and wait until it and all that it started are gone."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.read()
        _require(self.process.wait(END_S) == 0, "it exits with 0", self.process.returncode)
        self.wait_for_nobody()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.wait_for_nobody()

    def wait_for_nobody(self) -> None:
        end = time.monotonic() + END_S
        while left := _group(self.process.pid):
            _require(time.monotonic() < end, "no process is left", left)
            time.sleep(0.05)


def check(command: list[str]) -> None:
    """Raise `SmokeTestFailed` when something is not as it should be. On Linux alone: elsewhere processes that are left
    could not be found.
    """
    if sys.platform != "linux":
        raise SmokeTestFailed("a program can be tried on Linux only: processes are found in /proc")
    with tempfile.TemporaryDirectory(prefix="sidecar ünï ") as name:
        folder = Path(name)
        _chat_kill_resume(command, folder)
        _run_a_command(command, folder)
        _wait_for_an_empty_folder(folder / "tmp")
        _start_without_home(command, folder)


def _wait_for_an_empty_folder(folder: Path) -> None:
    end = time.monotonic() + END_S
    while left := sorted(path.name for path in folder.iterdir()):
        _require(time.monotonic() < end, "nothing is left in the temporary folder", left)
        time.sleep(0.05)


def _chat_kill_resume(command: list[str], folder: Path) -> None:
    with Program(command, folder) as first:
        _require(first.call("initialize", **HELLO)["version"] == 1, "it speaks version 1")
        _require(first.call("chat/open", chatId="c")["status"] == "created", "the chat is new")
        first.prompt("Hello", 1)
        first.send("prompt/send", chatId="c", promptId="p2", text="word " * 2000)
        first.read_until(lambda message: event_type(message) == "message.delta")
        first.kill()
    with Program(command, folder) as second:
        second.call("initialize", **HELLO)
        opened = second.call("chat/open", chatId="c")
        _require(opened["status"] == "resumed" and len(opened["turns"]) == 2, "both turns are there", opened)
        second.prompt("Hello again", 3)
        second.close()


def _run_a_command(command: list[str], folder: Path) -> None:
    """Commands, searches and hooks need helper processes of the program."""
    project = folder / "projekt å"
    project.mkdir()
    (project / "notes.txt").write_text("one needle\n", "utf-8")
    steps = [
        {"toolCall": {"name": "run_command", "input": {"command": "echo from the shell"}}},
        {"toolCall": {"name": "grep", "input": {"pattern": "need.e"}}},
        {"text": "Done"},
    ]
    script = folder / "script.json"
    script.write_text(json.dumps({"replies": [{"steps": steps}]}), "utf-8")
    with Program(command, folder) as program:
        program.call("initialize", **HELLO)
        config = {"model": f"scripted:{script}", "mode": "auto"}
        program.call("chat/open", chatId="t", projectPath=str(project), config=config)
        program.call("prompt/send", chatId="t", promptId="p", text="Go")
        program.read_until(lambda message: event_type(message) == "turn.ended")
        turn = program.call("chat/history", chatId="t")["turns"][-1]
        texts = "".join(item["output"]["text"] for item in turn["items"] if item["type"] == "tool")
        _require("from the shell" in texts and "notes.txt" in texts, "tools work", turn)
        program.close()


def _start_without_home(command: list[str], folder: Path) -> None:
    with Program(command, folder, {"PATH": os.environ["PATH"]}) as program:
        program.call("initialize", **HELLO)
        _require(program.call("chat/open", chatId="c")["status"] == "resumed", "it runs without HOME")
        program.close()


def event_type(message: Message) -> str | None:
    return message["params"]["type"] if message.get("method") == "event" else None


def _group(leader: int) -> list[int]:
    """The processes of the session that `leader` leads, or led."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def _require(fine: bool, what: str, seen: object = None) -> None:
    if not fine:
        raise SmokeTestFailed(f"expected that {what}; seen: {str(seen)[:2000]}")
