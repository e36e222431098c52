"""`run_command`: a command line of the shell, in a folder of the project, for a limited time.

Runs by `runner`, which confines it and ends what it starts. Whether it may run is decided elsewhere.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from ..providers.base import ToolSpec
from ..system.redact import redacted
from ..system.sandbox import Sandbox
from .base import Hands, Kind, Need, Outcome, Ready, Wrong, text
from .runner import DEFAULT_MS, MAX_MS, Job, Runner, time_limit
from .transcript import MAX_TEXT, Transcript

MAX_COMMAND = 64 * 1024
"""Bytes: half of what Linux takes as one argument. A longer script belongs into a file."""

TITLE = 80
"""Characters of the command in a title."""


class RunCommand:
    kind: Kind = "execute"
    alone = True
    spec = ToolSpec(
        "run_command",
        "Run a command line in the project's folder by bash, or sh where there is no bash. It has no input and no "
        "terminal. Output and errors come together; of a long output you get a part. Processes that "
        "it leaves in the background are ended when it ends. The last line tells the exit code, and whether it ran in "
        "a sandbox, where there is no network and only the project can be changed.",
        {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line."},
                "cwd": {
                    "type": "string",
                    "description": 'A folder of the project to run it in; "." by default.',
                },
                "timeout_ms": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_MS,
                    "description": f"When to kill it, in milliseconds; {DEFAULT_MS} by default.",
                },
            },
            "required": ["command"],
        },
    )

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def title(self, input: dict[str, Any]) -> str:
        command = " ".join(str(input.get("command", "")).split())
        return f"Run {command[: TITLE - 1]}…" if len(command) > TITLE else f"Run {command}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        command = command_line(input, "command")
        seconds = time_limit(input)
        cwd = text(input, "cwd", ".")
        await hands.block(_check_folder, hands, cwd)
        box = await self._runner.box(hands)
        job = Job([self._runner.shell(), "-c", command], seconds, cwd)
        need = Need("run", command, folder=hands.workspace.resolve(cwd).shown)
        return Ready(need, partial(self._run, job, box, hands))

    async def _run(self, job: Job, box: Sandbox | None, hands: Hands) -> Outcome:
        transcript = Transcript()
        ended = await self._runner.run(job, box, transcript, hands, hands.show)
        whole = redacted(transcript.whole() + ended.line) if transcript.size > MAX_TEXT else None
        short = redacted(transcript.short() + ended.line)
        return Outcome(short, failed=ended.failed, exit_code=ended.exit_code, whole=whole)


def command_line(input: dict[str, Any], name: str) -> str:
    """A command line of a call, which a shell can take as one argument."""
    command = text(input, name)
    try:
        encoded = command.encode()
    except UnicodeEncodeError:
        raise Wrong(f"`{name}` has characters that are no text.") from None
    if b"\0" in encoded:
        raise Wrong(f"`{name}` must not contain a NUL character.")
    if len(encoded) > MAX_COMMAND:
        raise Wrong(f"`{name}` is longer than {MAX_COMMAND} bytes. Write a script to a file and run that.")
    return command


def _check_folder(hands: Hands, cwd: str) -> None:
    os.close(hands.workspace.open_dir(cwd))
