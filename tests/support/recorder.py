"""The Python twin of clients/typescript/test/recorder.mjs: an app that appends each event to a file and may be killed.

Arguments: the command as JSON, the file, how many prompts to send.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
from sidecar_client import Event, Sidecar


def stored(path: Path) -> list[dict[str, Any]]:
    """What was written before; the last line may be cut off."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]] if path.exists() else []


def append(path: Path, event: Event) -> None:
    with path.open("ab") as target:
        target.write(msgspec.json.encode(event) + b"\n")


async def main(command: str, file: str, count: int) -> None:
    events = stored(Path(file))
    ended = {event["turnId"] for event in events if event["type"] == "turn.ended"}
    done = sum(event["type"] == "prompt.accepted" and event["turnId"] in ended for event in events)
    async with Sidecar.spawn(json.loads(command)) as app, anyio.create_task_group() as tasks:
        chat = await app.chat("tab-7")
        followed = chat.events(events[-1]["seq"] if events else 0)

        async def record() -> None:
            left = count - done
            while left:
                event = await anext(followed)
                append(Path(file), event)
                left -= event.type == "turn.ended"

        tasks.start_soon(record)
        for number in range(done + 1, count + 1):
            await chat.prompt(f"Say {number}: {'word ' * 40}", prompt_id=f"p-{number}").text()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
