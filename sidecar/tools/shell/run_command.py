"""`run_command`: run a command line in the shell, in a folder of the project, for a limited time.

`runner` confines it and ends its descendants. Whether it may run is decided elsewhere.
"""

from __future__ import annotations

import os
from functools import partial

from ...providers.base import ToolSpec
from ...system.redact import redact_text
from ...system.sandbox import Sandbox
from ..base import Intent, PlannedCall, ToolContext, ToolError, ToolInput, ToolKind, ToolOutcome
from .runner import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS, ProgramRun, Runner, time_limit
from .transcript import MAX_SHORT_BYTES, Transcript

MAX_COMMAND = 64 * 1024
"""Bytes: half of what Linux accepts as one argument. A longer script belongs in a file."""

MAX_TITLE = 80
"""Characters of the command in a title."""


class RunCommand:
    kind: ToolKind = "execute"
    runs_alone = True
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
                    "maximum": MAX_TIMEOUT_MS,
                    "description": f"When to kill it, in milliseconds; {DEFAULT_TIMEOUT_MS} by default.",
                },
            },
            "required": ["command"],
        },
    )

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def title(self, input: ToolInput) -> str:
        command = " ".join(str(input.get("command", "")).split())
        return f"Run {command[: MAX_TITLE - 1]}…" if len(command) > MAX_TITLE else f"Run {command}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        command = command_line(input, "command")
        seconds = time_limit(input)
        cwd = input.text("cwd", ".")
        await context.block(_check_folder, context, cwd)
        box = await self._runner.box(context)
        job = ProgramRun([self._runner.shell(), "-c", command], seconds, cwd)
        confinement = await self._runner.confinement(box, context)
        intent = Intent("run", command, folder=context.workspace.resolve(cwd).shown, sandbox=confinement)
        return PlannedCall(intent, partial(self._run, job, box, context))

    async def _run(self, job: ProgramRun, box: Sandbox | None, context: ToolContext) -> ToolOutcome:
        transcript = Transcript()
        ended = await self._runner.run(job, box, transcript, context, context.show)
        whole = redact_text(transcript.whole() + ended.line) if transcript.size > MAX_SHORT_BYTES else None
        short = redact_text(transcript.short() + ended.line)
        return ToolOutcome(short, failed=ended.failed, exit_code=ended.exit_code, whole=whole)


def command_line(input: ToolInput, name: str) -> str:
    """Return the command line of a call, which a shell can take as one argument."""
    command = input.text(name)
    try:
        encoded = command.encode()
    except UnicodeEncodeError:
        raise ToolError(f"`{name}` has characters that are no text.") from None
    if b"\0" in encoded:
        raise ToolError(f"`{name}` must not contain a NUL character.")
    if len(encoded) > MAX_COMMAND:
        raise ToolError(
            f"`{name}` is longer than {MAX_COMMAND} bytes. Write a script to a file and run that."
        )
    return command


def _check_folder(context: ToolContext, cwd: str) -> None:
    os.close(context.workspace.open_dir(cwd))
