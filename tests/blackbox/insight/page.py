"""A running `sidecar insight` as a browser meets it, and a database with something to show."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.blackbox.work.workbench import Workbench, call
from tests.support.patience import PATIENCE_S

INJECTIONS = (
    "<script>window.broken = 1</script>",
    "<img src=x onerror='window.broken = 1'>",
    '"><svg onload=window.broken=1>',
    "javascript:window.broken=1",
    "</pre></main><iframe srcdoc='<script>parent.broken=1</script>'>",
    "{{constructor.constructor('window.broken=1')()}}",
)
"""Texts that do something where they are taken for markup or script."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Page:
    """The process and its address. Each request has a connection of its own."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        self.origin, self.token = address.split("/enter/")
        self.host = self.origin.removeprefix("http://")
        self.port = int(self.host.split(":")[1])

    def request(
        self, method: str, target: str, headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": self.host, **(headers or {})}.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def enter(self) -> dict[str, str]:
        """The header with the cookie that the token is exchanged for."""
        answer = self.request("GET", f"/enter/{self.token}")
        assert answer.status == 200
        return {"Cookie": answer.headers["set-cookie"].split(";")[0]}

    def post(self, headers: dict[str, str], method: str, **params: Any) -> Answer:
        body = json.dumps({"method": method, "params": params}).encode()
        ours = {"Origin": self.origin, "Content-Type": "application/json", **headers}
        return self.request("POST", "/call", ours, body)


@contextmanager
def opened(env: dict[str, str]) -> Iterator[Page]:
    """The page over the database that the environment names."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sidecar", "insight", "--no-browser"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Page(process, process.stdout.readline().strip())
    finally:
        process.stdin.close()
        process.wait(PATIENCE_S)
        process.stdout.close()


def fill(bench: Workbench) -> str:
    """Chats with calls, a change, rules, hooks and sources, in which every stored text has an injection."""
    hostile = "\n\n".join(f"# {each}\n\n{each} is a heading. " + "thread " * 40 for each in INJECTIONS)
    (bench.project / "AGENTS.md").write_text(f"Be brief. {INJECTIONS[0]}\n")
    rules = bench.project / ".sidecar" / "rules"
    rules.mkdir(parents=True)
    (rules / "<img src=x onerror=window.broken=1>.md").write_text(f"{INJECTIONS[1]}\n")
    (rules / "broken.md").write_text("---\nglobs: [\n---\nText\n")
    hook = {"matcher": "run_command", "hooks": [{"type": "command", "command": f"echo '{INJECTIONS[0]}'"}]}
    (bench.project / ".sidecar" / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
    sidecar = bench.start(
        [
            call("read_file", path="src/add.py"),
            "Read.",
            {"usage": {"input": 1200, "output": 80, "cached": 1000}},
        ],
        [
            call("edit_file", path="src/add.py", old_string="a - b", new_string="a + b"),
            "Mended.",
            {"usage": {"input": 1500, "output": 90}},
        ],
        [call("write_file", path="<b>bold<b>.txt", content=hostile), f"Wrote {INJECTIONS[1]}"],
        [
            call("run_command", command="seq 1 3000"),
            call("read_file", path="../outside.txt"),
            "It is outside.",
        ],
    )
    session: str = sidecar.call("chat/open", chatId="c", projectPath=str(bench.project))["sessionId"]
    for prompt in ("Read it", "Mend src/add.py", f"Write {INJECTIONS[2]}", "Look outside"):
        sidecar.run(prompt, chatId="c", projectPath=str(bench.project))
    sidecar.call("chat/rename", sessionId=session, title=INJECTIONS[0])
    for each in INJECTIONS:
        sidecar.call("index/add", sessionId=session, content=hostile, source=each)
    sidecar.call("index/add", projectPath=str(bench.project), path="notes.txt")
    return session
