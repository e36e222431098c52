"""Runs the sidecar and writes down which modules are loaded when it sends certain frames.

    module_recorder.py FOLDER serve [FLAG …]

FOLDER gets a file for each moment: the first answer, the second answer, the first `message.delta`. A file is complete
before its frame is sent. Nothing depends on time: the program waits for the first request before it loads anything
else, and what it does after a pause, such as loading modules ahead of a prompt, is not done at all.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

ANSWERS = ["initialize", "chat_open"]
FIRST_TOKEN = "first_token"

PACKAGES = {
    "aiosqlite",
    "anyio",
    "h11",
    "httptools",
    "idna",
    "jsonrpcserver",
    "keyring",
    "mcp",
    "msgspec",
    "platformdirs",
    "rich",
    "tiktoken",
    "tomlkit",
    "xllamacpp",
    "yaml",
}
"""The program's dependencies, listed beside its own modules. Those of a single platform are left out."""

PAUSE_S = 0.2
"""The shortest wait for idle time is 0.25 s (sidecar/chat/sessions/preload.py)."""

REQUEST_WAIT_S = 60.0
"""How long the program waits for the first request before it loads more than it needs for the answer."""


class ModuleRecorder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._moments = list(ANSWERS)

    def before_send(self, message: bytes) -> None:
        moment = self._moment(json.loads(message))
        if moment is None:
            return
        names = sorted(name for name in list(sys.modules) if name.startswith("sidecar") or name in PACKAGES)
        with suppress(FileExistsError), (self._folder / f"{moment}.txt").open("x", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in names)
        if moment == ANSWERS[0]:
            # The main thread waits for this answer before it imports anything, anyio included.
            never_wait_for_idle_time()

    def _moment(self, message: dict[str, Any]) -> str | None:
        if "result" in message:
            return self._moments.pop(0) if self._moments else None
        return FIRST_TOKEN if message.get("params", {}).get("type") == "message.delta" else None


def record_modules(folder: Path) -> None:
    """Record the modules of this process from now on."""
    from sidecar.rpc.stdio import StdoutWriter
    from sidecar.server import bootstrap

    recorder = ModuleRecorder(folder)
    send = StdoutWriter.send

    def record_and_send(self: StdoutWriter, message: bytes) -> None:
        recorder.before_send(message)
        send(self, message)

    StdoutWriter.send = record_and_send  # type: ignore[method-assign]
    bootstrap.GREETING_WAIT_S = REQUEST_WAIT_S


def never_wait_for_idle_time() -> None:
    """Let a pause of the program last for ever, so that nothing is loaded by the clock."""
    import anyio

    sleep = anyio.sleep

    async def sleep_unless_idle(delay: float) -> None:
        await (sleep(delay) if delay < PAUSE_S else anyio.sleep_forever())

    anyio.sleep = sleep_unless_idle


if __name__ == "__main__":
    del sys.path[0]  # this folder, which is not on the path of the program
    record_modules(Path(sys.argv.pop(1)))
    from sidecar.__main__ import main

    main()
