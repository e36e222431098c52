"""`python -m benchmarks.large_import`: what an import of a million lines costs, and what others wait for meanwhile.

Two sidecars share a database. One imports a file; both are sent prompts in other chats, one after the other, and the
first is pinged, before the import (the control) and during it. Printed are the import's time and peak memory, and the
longest and the median wait beside the control's, as a ratio: a busy machine changes both. `--source DIR` measures
another version of the program, such as a checkout of an earlier commit.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

CONTROL_S = 5.0
"""How long prompts are measured without an import."""

BETWEEN_S = 0.1
LINE_BYTES = 64 << 20

Json = dict[str, Any]
Waits = dict[str, list[float]]


class Client:
    """A sidecar and what waits for its answers."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._ids = itertools.count(1)
        self._answers: dict[int, Json] = {}
        self._events: dict[int, anyio.Event] = {}
        self.on_event: Callable[[Json], None] = lambda event: None

    async def read(self) -> None:
        assert self.process.stdout
        stream = BufferedByteReceiveStream(self.process.stdout)
        while True:
            try:
                message = json.loads(await stream.receive_until(b"\n", LINE_BYTES))
            except (anyio.IncompleteRead, anyio.EndOfStream):
                return
            if message.get("id") in self._events:
                self._answers[message["id"]] = message
                self._events[message["id"]].set()
            elif message.get("method") == "event":
                self.on_event(message["params"])

    async def call(self, method: str, **params: Any) -> Json:
        id = next(self._ids)
        self._events[id] = anyio.Event()
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        assert self.process.stdin
        await self.process.stdin.send(json.dumps(message).encode() + b"\n")
        await self._events[id].wait()
        del self._events[id]
        answer = self._answers.pop(id)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: Json = answer["result"]
        return result

    def peak_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_import", description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.jsonl"
        write_lines(path, options.lines)
        anyio.run(measure, options.source.resolve(), path)
    return 0


def write_lines(path: Path, lines: int) -> None:
    with path.open("w") as file:
        for number in range(lines // 2):
            question = {
                "role": "user",
                "text": f"question {number} about topic {number % 977} and what follows",
            }
            answer = {"role": "assistant", "text": f"answer {number}: yes, {7 * number} is fine, go on"}
            file.write(f"{json.dumps(question)}\n{json.dumps(answer)}\n")


async def measure(source: Path, path: Path) -> None:
    importer, other = [await spawn(source, path.parent / "data") for _ in range(2)]
    async with anyio.create_task_group() as tasks:
        for client in (importer, other):
            tasks.start_soon(client.read)
            await client.call("initialize", protocol="sidecar", versions=[1], client={"name": "benchmark"})
            await client.call("prompt/send", chatId=f"warm-{id(client)}", promptId="w", text="warm")
        control = await watch(importer, other, anyio.sleep, CONTROL_S)
        began = time.perf_counter()
        took: list[float] = []

        async def bring_in() -> None:
            await importer.call("chat/import", chatId="big", path=str(path))
            took.append(time.perf_counter() - began)

        during = await watch(importer, other, bring_in)
        report(took[0], importer.peak_bytes(), control, during)
        for client in (importer, other):
            client.process.terminate()
            await client.process.wait()
        tasks.cancel_scope.cancel()


async def spawn(source: Path, data: Path, **more: str) -> Client:
    parts = [source, source / "protocol", source / "clients" / "python"]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, parts)),
        "SIDECAR_DATA_DIR": str(data),
        "SIDECAR_MODEL": "echo:",
        **more,
    }
    command = [sys.executable, "-m", "sidecar", "serve"]
    return Client(await anyio.open_process(command, env=env, cwd=source, stderr=subprocess.DEVNULL))


async def watch(
    importer: Client, other: Client, work: Callable[..., Awaitable[object]], *args: object
) -> Waits:
    """How long prompts and pings wait while `work` is done."""
    waits: Waits = {"a prompt in the same process": [], "a prompt in another process": [], "ping": []}
    over = anyio.Event()

    async def ask(client: Client, name: str, method: str) -> None:
        while not over.is_set():
            params = (
                {}
                if method == "ping"
                else {"chatId": f"warm-{id(client)}", "promptId": os.urandom(8).hex(), "text": "hi"}
            )
            began = time.perf_counter()
            await client.call(method, **params)
            waits[name].append(time.perf_counter() - began)
            await anyio.sleep(BETWEEN_S)

    async with anyio.create_task_group() as tasks:
        for client, name in zip((importer, other, importer), waits, strict=True):
            tasks.start_soon(ask, client, name, "ping" if name == "ping" else "prompt/send")
        await work(*args)
        over.set()
    return waits


def report(took: float, peak: int, control: Waits, during: Waits) -> None:
    print(f"imported in {took:.1f} s with at most {peak / 1e6:.0f} MB of memory\n")
    print("| waits for | longest | longest without | ratio | p99 | median | median without | number |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, waits in during.items():
        most, usual = max(waits), max(control[name])
        p99 = sorted(waits)[len(waits) * 99 // 100]
        print(
            f"| {name} | {most * 1e3:.0f} ms | {usual * 1e3:.0f} ms | {most / usual:.1f} | {p99 * 1e3:.0f} ms"
            f" | {median(waits) * 1e3:.0f} ms | {median(control[name]) * 1e3:.0f} ms | {len(waits)} |"
        )


if __name__ == "__main__":
    sys.exit(main())
