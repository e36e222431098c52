"""`run_in_terminal`: run a command line in a terminal of the user's editor, outside the sandbox.

Offered only where the app has terminals. The user is asked about each command, whatever the rules and the mode say:
they were given for commands in the sandbox.
"""

from __future__ import annotations

import os
from functools import partial

import msgspec

from ...providers.base import ToolSpec
from ...system.redact import redact_text
from ..base import Confinement, Intent, PlannedCall, ToolContext, ToolInput, ToolKind, ToolOutcome
from .run_command import MAX_TITLE, command_line
from .runner import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS, time_limit

NAME = "run_in_terminal"

OUTSIDE = "it runs in a terminal of the editor, outside the sandbox"


class RunInTerminal:
    kind: ToolKind = "execute"
    runs_alone = True
    spec = ToolSpec(
        NAME,
        "Run a command line in a terminal of the user's editor, with the user's environment, network and files, and "
        "outside the sandbox. The user is asked about each command: prefer run_command, and use this only for what the "
        "sandbox prevents.",
        {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line."},
                "cwd": {"type": "string", "description": 'A folder of the project; "." by default.'},
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

    def title(self, input: ToolInput) -> str:
        command = " ".join(str(input.get("command", "")).split())
        return f"Run in the terminal: {command}"[:MAX_TITLE]

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        command = command_line(input, "command")
        seconds = time_limit(input)
        folder = context.workspace.resolve(input.text("cwd", "."))
        intent = Intent(
            "run",
            command,
            folder=folder.shown,
            sandbox=Confinement(False, OUTSIDE, "in_terminal"),
            always_asks=OUTSIDE,
        )
        cwd = os.path.join(folder.root, *folder.parts)
        return PlannedCall(intent, partial(_run, command, cwd, seconds, context))


async def _run(command: str, cwd: str, seconds: float, context: ToolContext) -> ToolOutcome:
    outcome = await context.call_app(NAME, {"command": command, "cwd": cwd}, seconds)
    return msgspec.structs.replace(outcome, text=redact_text(outcome.text))
