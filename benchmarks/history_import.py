"""`python -m benchmarks.history_import`: what the chats of another program cost, and what others wait for meanwhile.

Writes sessions in the form of Claude Code, by default 10,000 chats with 500,000 messages, a tenth of them tool calls
with an edit, and imports them in one of two processes on one database, as `benchmarks.large_import` does a file. Then
the same again, when all are here. `--source DIR` measures another version of the program.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio

from .large_import import Client, report, spawn, watch

Json = dict[str, Any]

CONTROL_S = 60.0
"""How long prompts are measured without an import: on a busy machine some wait long in any case."""

FOLDERS = 50
"""Of the projects, over which the sessions are spread."""

WORDS = (
    "mill",
    "wheel",
    "number",
    "loom",
    "weaves",
    "lines",
    "pages",
    "engine",
    "the",
    "of",
    "while",
    "into",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history_import", description=__doc__)
    parser.add_argument("--chats", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sessions = Path(folder) / "sessions"
        size = write_sessions(sessions, options.chats, options.messages // options.chats)
        print(f"{options.chats:,} chats, {options.messages:,} messages, {size / 1e6:.0f} MB\n", flush=True)
        anyio.run(measure, options.source.resolve(), sessions)
    return 0


def write_sessions(folder: Path, chats: int, messages: int) -> int:
    """Write the sessions; return their bytes."""
    size = 0
    for number in range(chats):
        name = str(uuid.UUID(int=number))
        file = folder / f"-home-ada-project-{number % FOLDERS}" / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        data = "".join(json.dumps(record) + "\n" for record in _records(number, messages)).encode()
        file.write_bytes(data)
        size += len(data)
    return size


def _records(chat: int, messages: int) -> Iterator[Json]:
    parent: str | None = None
    for number in range(messages):
        own = f"{chat:08x}-{number:04x}"
        record: Json = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": f"/home/ada/project-{chat % FOLDERS}",
            "sessionId": str(uuid.UUID(int=chat)),
            "version": "2.1.326",
            "gitBranch": "main",
            "uuid": own,
            "timestamp": f"2026-{1 + chat % 12:02}-{1 + chat % 28:02}T{number // 60 % 24:02}:{number % 60:02}:00.000Z",
        }
        yield record | _message(chat, number, own, parent)
        parent = own


def _message(chat: int, number: int, own: str, parent: str | None) -> Json:
    text = " ".join(WORDS[(chat + number + at) % len(WORDS)] for at in range(40 + number % 60))
    if number % 10 == 5:
        given = {"file_path": f"src/part{number}.py", "old_string": "one", "new_string": "two"}
        content: Any = [{"type": "tool_use", "id": f"toolu_{own}", "name": "Edit", "input": given}]
        return {
            "type": "assistant",
            "message": {"role": "assistant", "model": "claude-opus-5-5", "content": content},
        }
    if number % 10 == 6:
        shown: Json = {"filePath": f"src/part{number}.py", "oldString": "one", "newString": "two"}
        shown |= {"originalFile": f"one {text}\n", "structuredPatch": []}
        content = [{"type": "tool_result", "tool_use_id": f"toolu_{parent}", "content": "Updated"}]
        return {"type": "user", "message": {"role": "user", "content": content}, "toolUseResult": shown}
    if number % 2:
        content = [{"type": "text", "text": f"{number}: {text}"}]
        return {
            "type": "assistant",
            "message": {"role": "assistant", "model": "claude-opus-5-5", "content": content},
        }
    return {
        "type": "user",
        "message": {"role": "user", "content": f"Question {number} of chat {chat}: {text}"},
    }


async def measure(source: Path, sessions: Path) -> None:
    importer, other = [await spawn(source, sessions.parent / "data") for _ in range(2)]
    async with anyio.create_task_group() as tasks:
        for client in (importer, other):
            tasks.start_soon(client.read)
            await client.call("initialize", protocol="sidecar", versions=[1], client={"name": "benchmark"})
            await client.call("prompt/send", chatId=f"warm-{id(client)}", promptId="w", text="warm")
        control = await watch(importer, other, anyio.sleep, CONTROL_S)
        for name in ("the first import", "the same again"):
            took, done = await _timed(importer, other, sessions, name, control)
            counts = {key: done[key] for key in ("new", "unchanged", "turns", "messages", "problemCount")}
            print(f"\n{name}: {took:.1f} s, {counts}\n", flush=True)
        size = (sessions.parent / "data/sidecar.db").stat().st_size
        print(f"the database has {size / 1e6:.0f} MB")
        for client in (importer, other):
            client.process.terminate()
            await client.process.wait()
        tasks.cancel_scope.cancel()


async def _timed(
    importer: Client, other: Client, sessions: Path, name: str, control: dict[str, list[float]]
) -> tuple[float, Json]:
    done: list[Json] = []
    began = time.perf_counter()

    async def bring_in() -> None:
        done.append(await importer.call("history/import", platform="claude-code", path=str(sessions)))

    during = await watch(importer, other, bring_in)
    took = time.perf_counter() - began
    report(took, importer.peak_bytes(), control, during)
    return took, done[0]


if __name__ == "__main__":
    sys.exit(main())
