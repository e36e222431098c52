"""`python -m benchmarks.engines`: what it costs to reach an agent through Sidecar instead of talking to it directly.

Both sides use the same small agent of the Agent Client Protocol (tests/support/acp_agent.py), in samples that
alternate in one run. Through Sidecar each update is journalled before it is sent on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

AGENT = Path(__file__).parents[1] / "tests" / "support" / "acp_agent.py"

UPDATES = 5000
PACED = 400
PACE_MS = 5
"""A fast model: 200 updates a second."""


class Pipe:
    """A process that is spoken to in lines; `take` returns its messages one by one."""

    def __init__(self, argv: list[str], env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )
        self._id = 0

    def send(self, method: str, params: Json) -> int:
        self._id += 1
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._id

    def take(self) -> Json:
        assert self.process.stdout is not None
        message: Json = json.loads(self.process.stdout.readline())
        return message

    def call(self, method: str, params: Json) -> Json:
        id = self.send(method, params)
        while True:
            message = self.take()
            if message.get("id") == id and "method" not in message:
                found: Json = message["result"]
                return found

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


class Direct:
    """A client of the agent itself."""

    def __init__(self, folder: Path) -> None:
        self._pipe = Pipe([sys.executable, str(AGENT), str(folder / "direct")])
        self._pipe.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        made = self._pipe.call("session/new", {"cwd": str(folder), "mcpServers": []})
        self._session = made["sessionId"]

    def prompt(self, text: str) -> float:
        began = time.perf_counter()
        prompt = [{"type": "text", "text": text}]
        self._pipe.call("session/prompt", {"sessionId": self._session, "prompt": prompt})
        return time.perf_counter() - began

    def close(self) -> None:
        self._pipe.close()


class Through:
    """A client of Sidecar, with the agent as the engine of a chat."""

    def __init__(self, folder: Path, *, project: bool) -> None:
        home = folder / "home"
        settings = home / ".config" / "sidecar"
        settings.mkdir(parents=True)
        args = [str(AGENT), str(folder / "through")]
        (settings / "config.toml").write_text(
            f"[engines.own]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n"
        )
        env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "SIDECAR_DATA_DIR": str(folder / "data")}
        self._pipe = Pipe([sys.executable, "-m", "sidecar", "serve"], env)
        client = {"name": "bench", "version": "1"}
        self._pipe.call("initialize", {"protocol": "sidecar", "versions": [1], "client": client})
        where = {"projectPath": str(folder / "project")} if project else {}
        self._pipe.call("chat/open", {"chatId": "c", **where, "config": {"engine": "acp:own"}})
        self._number = 0

    def prompt(self, text: str) -> float:
        self._number += 1
        began = time.perf_counter()
        self._pipe.send("prompt/send", {"chatId": "c", "promptId": f"p{self._number}", "text": text})
        while True:
            message = self._pipe.take()
            if message.get("method") == "event" and message["params"]["type"] == "turn.ended":
                assert message["params"]["data"]["reason"] == "end_turn", message
                return time.perf_counter() - began

    def close(self) -> None:
        self._pipe.close()


def main() -> None:
    options = _parse_arguments()
    with tempfile.TemporaryDirectory(prefix="sidecar-bench-") as name:
        folder = Path(name)
        (folder / "project").mkdir()
        for number in range(options.files):
            (folder / "project" / f"file{number}.txt").write_text(f"line {number}\n" * 40)
        sides: dict[str, Direct | Through] = {
            "direct": Direct(folder),
            "through": Through(folder, project=options.files > 0),
        }
        for side in sides.values():
            side.prompt("say warm")
        rows = {"prompt": "say Hello", "stream": f"stream {UPDATES}", "paced": f"pace {PACED} {PACE_MS}"}
        found: dict[tuple[str, str], list[float]] = {}
        for row, text in rows.items():
            for _ in range(options.runs if row == "prompt" else max(3, options.runs // 5)):
                for side_name, side in sides.items():
                    found.setdefault((row, side_name), []).append(side.prompt(text))
        for side in sides.values():
            side.close()
    medians = {key: statistics.median(values) for key, values in found.items()}
    more = 1000 * (medians["prompt", "through"] - medians["prompt", "direct"])
    print("| | directly | through Sidecar | more |\n|---|---|---|---|")
    print(
        f"| a prompt, ms | {1000 * medians['prompt', 'direct']:.2f} |"
        f" {1000 * medians['prompt', 'through']:.2f} | {more:.2f} ms |"
    )
    titles = {"stream": f"{UPDATES} updates at once", "paced": f"{PACED} updates, one each {PACE_MS} ms"}
    for row, title in titles.items():
        alone, ours = medians[row, "direct"], medians[row, "through"]
        print(f"| {title}, ms | {1000 * alone:.0f} | {1000 * ours:.0f} | {100 * (ours / alone - 1):.1f} % |")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument("--runs", type=int, default=50, help="prompts of each side")
    parser.add_argument("--files", type=int, default=0, help="files of the chat's project; 0: no project")
    return parser.parse_args()


if __name__ == "__main__":
    main()
