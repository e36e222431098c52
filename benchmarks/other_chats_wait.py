"""`python -m benchmarks.other_chats_wait`: how long prompts of other chats wait while one client works on a huge chat.

Two sidecars share a database. The first runs one operation after the other on imported chats of 20,000 turns (100,000
lines); both are sent prompts in other chats all the while, one after the other, answered by the fake provider. For
each operation: its duration, and the median and the longest time from `prompt/send` to the answer and to the first
delta, in this process, in the other process, and in the same run before the operation (the control). Other load on the
machine changes all of them. `--source DIR` measures another version, `--only NAME` some of the operations.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from subprocess import DEVNULL, PIPE

import anyio
import msgspec

from .large_import import Client, Json, spawn

CONTROL_S = 3.0
"""How long prompts are measured before each operation."""

BETWEEN_S = 0.02
CHATS = ("one", "two", "three", "four")

Operation = Callable[[], Awaitable[object]]


class Waits(msgspec.Struct):
    """The waits of one prober, in seconds."""

    answers: list[float] = []
    deltas: list[float] = []
    count: int = 0


class Prober:
    """Sends prompts in a chat of its own, one after the other."""

    def __init__(self, client: Client, chat: str) -> None:
        self._client = client
        self._chat = chat
        self._first_delta = self._ended = anyio.Event()
        client.on_event = self._on_event

    async def open(self) -> None:
        await self._client.call("chat/open", chatId=self._chat)
        await self.prompt(Waits())

    async def prompt(self, waits: Waits) -> None:
        self._first_delta, self._ended = anyio.Event(), anyio.Event()
        began = time.perf_counter()

        async def wait_for_delta() -> None:
            await self._first_delta.wait()
            waits.deltas.append(time.perf_counter() - began)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_for_delta)
            await self._client.call("prompt/send", chatId=self._chat, promptId=os.urandom(8).hex(), text="hi")
            waits.answers.append(time.perf_counter() - began)
        await self._ended.wait()
        waits.count += 1

    def _on_event(self, event: Json) -> None:
        if event.get("chatId") != self._chat:
            return
        if event["type"] == "message.delta":
            self._first_delta.set()
        elif event["type"] == "turn.ended":
            self._first_delta.set()
            self._ended.set()


class Measurement:
    def __init__(self, here: Prober, there: Prober) -> None:
        self._probers = (here, there)

    async def row(self, name: str, operation: Operation) -> str:
        control = await self._watch(lambda: anyio.sleep(CONTROL_S))
        began = time.perf_counter()
        during = await self._watch(operation)
        took = time.perf_counter() - began
        cells = [_ms(waits) for waits in (*during, *control)]
        return f"| {name} | {took:.1f} s | {' | '.join(cells)} |"

    async def _watch(self, operation: Operation) -> tuple[Waits, Waits]:
        here, there = Waits(), Waits()
        over = anyio.Event()

        async def probe(prober: Prober, waits: Waits) -> None:
            while not over.is_set() or not waits.count:
                await prober.prompt(waits)
                await anyio.sleep(BETWEEN_S)

        async with anyio.create_task_group() as tasks:
            for prober, waits in zip(self._probers, (here, there), strict=True):
                tasks.start_soon(probe, prober, waits)
            await anyio.sleep(BETWEEN_S)
            await operation()
            over.set()
        return here, there


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.other_chats_wait", description=__doc__)
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(measure, options.source.resolve(), Path(folder), options.turns, options.only)
    return 0


async def measure(source: Path, folder: Path, turns: int, only: list[str]) -> None:
    project = folder / "project"
    project.mkdir()
    write_history(folder / "history.jsonl", turns)
    (project / "large.txt").write_text("".join(f"line {n} about topic{n % 977}\n" for n in range(40_000)))
    fake = await anyio.open_process(
        [sys.executable, "-m", "sidecar", "fake-provider", "--quiet"], stdout=PIPE, stderr=DEVNULL
    )
    assert fake.stdout
    url = (await fake.stdout.receive()).decode().split()[0]
    env = {"SIDECAR_MODEL": "openai:fake", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none"}
    clients = [await spawn(source, folder / "data", **env) for _ in range(2)]
    async with anyio.create_task_group() as tasks:
        probers = [Prober(client, f"other-{at}") for at, client in enumerate(clients)]
        for client, prober in zip(clients, probers, strict=True):
            tasks.start_soon(client.read)
            await client.call("initialize", protocol="sidecar", versions=[1], client={"name": "benchmark"})
            await prober.open()
        await report(Measurement(*probers), Operations(clients[0], source, folder), only)
        for client in clients:
            client.process.terminate()
            await client.process.wait()
        tasks.cancel_scope.cancel()
    fake.terminate()
    await fake.wait()


async def report(measurement: Measurement, operations: Operations, only: list[str]) -> None:
    print(
        "Waits of prompts in another chat, in ms: median / longest until the answer, and until the first delta.\n\n"
        "| operation | duration | same process | another process | control: same | control: another |\n"
        "|---|---:|---:|---:|---:|---:|"
    )
    for name, operation in operations.all().items():
        if only and not any(name.startswith(one) for one in only):
            await operation()
        else:
            print(await measurement.row(name, operation), flush=True)


class Operations:
    """What one client does, in an order in which each finds what it needs."""

    def __init__(self, client: Client, source: Path, folder: Path) -> None:
        self._client = client
        self._source = source
        self._folder = folder
        self._project = str(folder / "project")
        self._turns: list[str] = []
        self._added = ""

    def all(self) -> dict[str, Operation]:
        return {
            "chat/import": self._import,
            "chat/open": self._call("chat/open", chatId="one"),
            "chat/history, 500 turns": self._call("chat/history", chatId="one", limit=500),
            "events/read": self._read_events,
            "chat/search": self._call("chat/search", query="topic13"),
            "chat/context, first": self._call("chat/context", chatId="one", text="What about topic12?"),
            "chat/context": self._call("chat/context", chatId="one", text="What about topic13?"),
            "stats/read": self._call("stats/read", scope="all"),
            "chat/export jsonl": self._export("jsonl"),
            "chat/export markdown": self._export("markdown"),
            "chat/rewind to the start": self._rewind_to_start,
            "chat/rewind to the end": self._rewind_to_end,
            "chat/fork": self._call("chat/fork", chatId="one", newChatId="forked"),
            "chat/compact": self._call("chat/compact", chatId="one"),
            "index/add content": self._add_content,
            "index/add path": self._call("index/add", projectPath=self._project, path="large.txt"),
            "index/remove": self._remove,
            "backup": self._command("backup", str(self._folder / "copy.db")),
            "data/purge, dry run": self._call("data/purge", scope="all", dryRun=True),
            "chat/delete": self._call("chat/delete", chatId="forked"),
            "data/purge chat": self._call("data/purge", chatId="two", confirm=True),
            "data/purge project": self._call(
                "data/purge", scope="project", projectPath=self._project, confirm=True
            ),
        }

    def _call(self, method: str, **params: object) -> Operation:
        return lambda: self._client.call(method, **params)

    async def _import(self) -> None:
        path = str(self._folder / "history.jsonl")
        for chat in CHATS:
            more = {"projectPath": self._project} if chat in ("three", "four") else {}
            await self._client.call("chat/import", chatId=chat, path=path, **more)

    async def _read_events(self) -> None:
        opened = await self._client.call("chat/history", chatId="one", limit=1)
        after = {"epoch": opened["asOf"]["epoch"], "seq": 0}
        await self._client.call("events/read", chatId="one", after=after, limit=10_000, maxBytes=8 << 20)

    def _export(self, format: str) -> Operation:
        path = str(self._folder / f"export.{format}")
        return self._call("chat/export", chatId="one", format=format, path=path)

    async def _rewind_to_start(self) -> None:
        page = await self._client.call("chat/history", chatId="one", limit=1)
        newest = page["turns"][0]["id"]
        oldest = await self._client.call("chat/history", chatId="one", after="turn.0", limit=1)
        self._turns = [oldest["turns"][0]["id"], newest]
        await self._client.call("chat/rewind", chatId="one", before={"turnId": self._turns[0]})

    async def _rewind_to_end(self) -> None:
        await self._client.call("chat/rewind", chatId="one", to={"turnId": self._turns[1]})

    async def _add_content(self) -> None:
        text = "".join(f"line {n} about topic{n % 977}\n" for n in range(200_000))[: 4 << 20]
        added = await self._client.call("index/add", chatId="one", content=text, source="large")
        self._added = added["sources"][0]["id"]

    async def _remove(self) -> None:
        await self._client.call("index/remove", chatId="one", id=self._added)

    def _command(self, *words: str) -> Operation:
        async def run() -> None:
            command = [sys.executable, "-m", "sidecar", "--data-dir", str(self._folder / "data"), *words]
            await anyio.run_process(command, cwd=self._source, stdout=DEVNULL)

        return run


def write_history(path: Path, turns: int) -> None:
    """Write turns of five lines each: a question and four messages that answer it."""
    with path.open("w") as file:
        for number in range(turns):
            lines = [
                {"role": "user", "text": f"question {number} about topic{number % 977} and what follows"}
            ]
            lines += [
                {"role": "assistant", "text": f"part {part} of answer {number}: yes, {7 * number} is fine"}
                for part in range(4)
            ]
            file.writelines(f"{json.dumps(line)}\n" for line in lines)


def _ms(waits: Waits) -> str:
    """The median and the longest wait for the answer, and for the first delta."""
    cells = [
        f"{median(values) * 1e3:.0f} / {max(values) * 1e3:.0f}" for values in (waits.answers, waits.deltas)
    ]
    return ", ".join(cells)


if __name__ == "__main__":
    sys.exit(main())
