"""A second frontend in a running process: chosen by the first message or the command, it serves whole turns."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.spawner import COMMAND, Spawner
from tests.unit.frontends import second_dialect

PROGRAM = [sys.executable, second_dialect.__file__]

Json = dict[str, Any]


class LineClient:
    """Speaks lines of JSON to a process; knows no dialect. `frames` are all that came."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout.fileno()
        self._rest = b""
        self.frames: list[Json] = []

    def call(self, method: str, **params: Any) -> Json:
        """Send a request with the method as its id; return its answer."""
        return self.send({"jsonrpc": "2.0", "id": method, "method": method, "params": params})

    def send(self, message: Json) -> Json:
        return self.send_line(json.dumps(message).encode())

    def send_line(self, line: bytes) -> Json:
        """Send bytes; return the next frame that is neither a request nor a notification."""
        self._stdin.write(line + b"\n")
        self._stdin.flush()
        return self._answer()

    def end(self) -> int:
        """Close the pipe and wait for the exit."""
        self._stdin.close()
        return self._process.wait(PATIENCE_S)

    def _answer(self) -> Json:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            while b"\n" not in self._rest:
                ready = select.select([self._stdout], [], [], max(0.0, deadline - time.monotonic()))[0]
                data = os.read(self._stdout, 1 << 16) if ready else b""
                assert data, f"no answer; frames so far: {self.frames}"
                self._rest += data
            line, _, self._rest = self._rest.partition(b"\n")
            frame = json.loads(line)
            self.frames.append(frame)
            if "method" not in frame:
                return dict(frame)


@contextmanager
def running(folder: Path, command: list[str]) -> Iterator[LineClient]:
    process = subprocess.Popen(
        command,
        env=Spawner(folder).environment(),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            yield LineClient(process)
        finally:
            process.kill()


def test_a_first_message_of_the_second_dialect_is_served_by_it(tmp_path: Path) -> None:
    with running(tmp_path, PROGRAM) as client:
        hello = client.call("initialize", second=1)
        first = client.call("prompt", chat="c", text="hello there")
        second = client.call("prompt", chat="c", text="and again")
        unknown = client.call("chat/open", chatId="c")
        code = client.end()

    assert [answer["result"] for answer in (hello, first, second)] == [
        {"second": 1},
        {"text": "hello there"},
        {"text": "and again"},
    ]
    assert (unknown["error"]["code"], unknown["error"]["message"]) == (
        -32601,
        "The second dialect has no chat/open",
    )
    assert {frame["method"] for frame in client.frames if "method" in frame} <= {"second/status"}
    assert code == 0


def test_the_dialect_of_a_command_also_answers_what_the_bootstrap_would(tmp_path: Path) -> None:
    native = {"protocol": "sidecar", "versions": [1], "client": {"name": "tests"}, "second": 7}
    with running(tmp_path, [*PROGRAM, second_dialect.SECOND]) as client:
        answers = [
            client.call("ping"),
            client.call("initialize", **native),
            client.call("prompt", chat="c", text="hi"),
        ]
        code = client.end()

    assert [answer["result"] for answer in answers] == [
        {"dialect": "second"},
        {"second": 7},
        {"text": "hi"},
    ]
    assert code == 0


def test_a_native_client_of_the_same_program_sees_only_its_own_dialect(tmp_path: Path) -> None:
    """The spawner checks every frame by the contract."""
    spawn = Spawner(tmp_path, PROGRAM)
    try:
        sidecar = spawn()
        ended = sidecar.run("hello", chatId="c")
        (turn,) = sidecar.call("chat/history", chatId="c")["turns"]
    finally:
        spawn.settle()

    assert (turn["id"], turn["items"][-1]["text"]) == (ended["turnId"], "hello")


def test_a_turn_of_one_dialect_is_in_the_history_of_the_other(tmp_path: Path) -> None:
    with running(tmp_path, PROGRAM) as client:
        client.call("initialize", second=1)
        client.call("prompt", chat="c", text="from the second")
        client.end()
    spawn = Spawner(tmp_path, PROGRAM)
    try:
        (turn,) = spawn().call("chat/history", chatId="c")["turns"]
    finally:
        spawn.settle()

    assert [item["text"] for item in turn["items"]] == ["from the second", "from the second"]


UNKNOWN: dict[str, tuple[bytes, Json]] = {
    "MCP": (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}',
        {
            "code": -32602,
            "message": "`protocolVersion`: Object contains unknown field `protocolVersion`; did you mean `protocol`?",
            "data": {
                "name": "invalid_params",
                "retryable": False,
                "params": {
                    "field": "protocolVersion",
                    "expected": "one of `protocol`, `versions`, `client`, `processId`, `capabilities`, `tools`,"
                    " `deltaMs`",
                },
            },
        },
    ),
    "MCP without a handshake": (
        b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}',
        {
            "code": -32601,
            "message": "There is no method 'server/discover'; did you mean rpc.discover?",
            "data": {
                "name": "method_not_found",
                "retryable": False,
                "params": {"method": "server/discover"},
            },
        },
    ),
    "another protocol": (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":"other","versions":[1],'
        b'"client":{"name":"a"}}}',
        {
            "code": -32602,
            "message": "`protocol`: Invalid enum value 'other'; allowed: \"sidecar\"",
            "data": {
                "name": "invalid_params",
                "retryable": False,
                "params": {"field": "protocol", "expected": '"sidecar"'},
            },
        },
    ),
    "a method before initialize": (
        b'{"jsonrpc":"2.0","id":1,"method":"chat/open","params":{"chatId":"c"}}',
        {
            "code": -32005,
            "message": "Send `initialize` first",
            "data": {"name": "not_initialized", "retryable": False},
        },
    ),
    "no JSON": (
        b"hello",
        {
            "code": -32700,
            "message": "Not JSON: JSON is malformed: invalid character (byte 0)",
            "data": {"name": "parse_error", "retryable": False},
        },
    ),
    "a batch": (
        b"[]",
        {
            "code": -32600,
            "message": "Batches are not taken: send one message a frame",
            "data": {"name": "invalid_request", "retryable": False},
        },
    ),
}
"""First messages of dialects that are not spoken, with the error that they have always got."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("command", [COMMAND, PROGRAM], ids=["the program", "with a second dialect"])
@pytest.mark.parametrize("kind", UNKNOWN)
def test_a_first_message_of_an_unknown_dialect_gets_the_native_error(
    tmp_path: Path, kind: str, command: list[str]
) -> None:
    line, error = UNKNOWN[kind]
    with running(tmp_path, command) as client:
        answer = client.send_line(line)
        again = client.call(
            "initialize", protocol="sidecar", versions=[1], client={"name": "tests", "version": "1"}
        )

    assert (answer["jsonrpc"], answer["error"]) == ("2.0", error)
    assert again["result"]["server"]["name"] == "sidecar"
