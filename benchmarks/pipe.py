"""A sidecar to measure through its pipe: requests in, answers out, nothing else looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

Json = dict[str, Any]


class Pipe:
    """Spawns `sidecar serve` with a data folder and a model; ends it on leaving."""

    def __init__(self, data_dir: str, model: str, **env: str) -> None:
        self._next = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sidecar", "serve"],
            env={
                **os.environ,
                "SIDECAR_DATA_DIR": data_dir,
                "SIDECAR_MODEL": model,
                "OPENAI_API_KEY": "none",
                **env,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.pid = self._process.pid
        self.call("initialize", protocol="sidecar", versions=[1], client={"name": "benchmark"})

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(10)

    def run(self, text: str, **params: Any) -> Json:
        """Send a prompt and wait for the end of its turn."""
        sent = self.call("prompt/send", text=text, **params)
        assert self._process.stdout
        for line in self._process.stdout:
            message = json.loads(line)
            event = message.get("params", {}) if message.get("method") == "event" else {}
            if event.get("type") == "turn.ended" and event.get("turnId") == sent["turnId"]:
                data: Json = event["data"]
                return data
        raise RuntimeError("the sidecar has left")

    def call(self, method: str, **params: Any) -> Json:
        assert self._process.stdin
        assert self._process.stdout
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._next and "method" not in answer:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: Json = answer["result"]
                return result
        raise RuntimeError(f"{method}: the sidecar has left")
