"""A coding agent as the MCP server sees it: starts the server in a project, sends requests of either era."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.wire import Json

TIMEOUT = 30.0

LEGACY = "2025-11-25"
MODERN = "2026-07-28"

Answer = Callable[[Json], Json]


class Host:
    """`version` is the protocol that it speaks; `answer` fills in the forms of elicitation, if it shows any."""

    def __init__(
        self,
        environment: dict[str, str],
        project: Path,
        *,
        version: str = MODERN,
        client: str = "test-agent",
        answer: Answer | None = None,
    ) -> None:
        self.version = version
        self.client = client
        self._answer = answer
        self._ids = 0
        self.notifications: list[Json] = []
        self._arrived: queue.Queue[Json] = queue.Queue()
        self._kept: dict[int, Json] = {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sidecar", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=project,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def capabilities(self) -> Json:
        return {"elicitation": {}} if self._answer else {}

    def initialize(self) -> Json:
        """Initialize, as clients of the older era do."""
        result = self.request(
            "initialize",
            protocolVersion=self.version,
            clientInfo={"name": self.client, "version": "1"},
            capabilities=self.capabilities,
        )
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def request(self, method: str, **params: Any) -> Json:
        """Send a request and return its result; answers what the server asks meanwhile."""
        message = self.wait(self.send(method, **params))
        assert "result" in message, message
        result: Json = message["result"]
        return result

    def refused(self, method: str, **params: Any) -> Json:
        """Send a request that is refused; return the error."""
        message = self.wait(self.send(method, **params))
        assert "error" in message, message
        error: Json = message["error"]
        return error

    def send(self, method: str, **params: Any) -> int:
        self._ids += 1
        if self.version == MODERN:
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": self.client, "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            }
            params["_meta"] = {**meta, **params.get("_meta", {})}
        self.write({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return self._ids

    def call(self, tool: str, **arguments: Any) -> Json:
        """Call a tool and return its result; brings the answers that the newer era asks for."""
        result = self.request("tools/call", name=tool, arguments=arguments)
        while result.get("resultType") == "input_required":
            assert self._answer is not None
            answers = {name: self._answer(asked["params"]) for name, asked in result["inputRequests"].items()}
            result = self.request(
                "tools/call",
                name=tool,
                arguments=arguments,
                inputResponses=answers,
                requestState=result["requestState"],
            )
        return result

    def text(self, tool: str, **arguments: Any) -> str:
        """Call a tool that succeeds; return its text."""
        result = self.call(tool, **arguments)
        assert not result.get("isError"), result
        return str(result["content"][0]["text"])

    def error(self, tool: str, **arguments: Any) -> str:
        """Call a tool that fails; return its text."""
        result = self.call(tool, **arguments)
        assert result.get("isError"), result
        return str(result["content"][0]["text"])

    def wait(self, id: int) -> Json:
        """Wait for the answer to a request."""
        while id not in self._kept:
            message = self._arrived.get(timeout=TIMEOUT)
            if "method" not in message:
                self._kept[message["id"]] = message
            elif "id" in message:
                assert self._answer is not None, message
                self.write({"jsonrpc": "2.0", "id": message["id"], "result": self._answer(message["params"])})
            else:
                self.notifications.append(message)
        return self._kept.pop(id)

    def write(self, message: Json) -> None:
        self.write_line(json.dumps(message).encode())

    def write_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def close(self) -> int:
        """Close the server's stdin and wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(TIMEOUT)
        self._reader.join(TIMEOUT)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._arrived.put(json.loads(line))
