"""How fast and how large each way to ship the program is: medians of several starts that take turns."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median

from .smoke import HELLO, Program, event_type


def table(commands: dict[str, list[str]], dist: Path, runs: int) -> str:
    """A Markdown table with a row for each command."""
    samples: dict[str, list[tuple[float, float]]] = {title: [] for title in commands}
    with tempfile.TemporaryDirectory(prefix="sidecar-measure-") as folder:
        for number in range(runs + 1):
            for title, command in commands.items():
                sample = _start(command, Path(folder), number)
                if number:  # the first start of each fills the caches
                    samples[title].append(sample)
    lines = ["| | spawn to `initialize` | spawn to first token | size |", "|---|---:|---:|---:|"]
    for title, command in commands.items():
        hello, token = (1000 * median(times) for times in zip(*samples[title], strict=True))
        lines.append(f"| {title} | {hello:.0f} ms | {token:.0f} ms | {_size(Path(command[0])):.0f} MB |")
    return "\n".join(lines)


def _start(command: list[str], folder: Path, number: int) -> tuple[float, float]:
    began = time.monotonic()
    project = folder / "project"
    project.mkdir(exist_ok=True)
    with Program(command, folder) as program:
        program.call("initialize", **HELLO)
        hello = time.monotonic() - began
        chat = f"{command[0]} {number}"
        program.call("chat/open", chatId=chat, projectPath=str(project))
        program.send("prompt/send", chatId=chat, promptId="p", text="Hello")
        program.read_until(lambda message: event_type(message) == "message.delta")
        token = time.monotonic() - began
        program.close()
    return hello, token


def _size(program: Path) -> float:
    """Megabytes of the file, of the folder of the program, or of the virtual environment."""
    beside = program.parent.parent if program.parent.name in ("bin", "Scripts") else program.parent
    alone = program.name.startswith("sidecar-")
    paths = [program] if alone else [path for path in beside.rglob("*") if path.is_file()]
    return sum(os.lstat(path).st_size for path in paths) / 1e6
