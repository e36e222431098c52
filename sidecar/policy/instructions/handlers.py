"""Run the handler of a rule and return its output. The caller checks whether it is trusted.

A handler runs under a supervisor (`system/process_tree`) in the folder of the project, with a clean environment: none
of its processes outlives the call or the program. It reads `{"prompt", "paths", "project"}` as JSON and writes text.
`python:NAME` is an entry point of the group `sidecar.rules` among the installed packages; it runs in a process too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from ...system import process_tree
from ...system.filter_process import SHELL, FilterOutput, ask
from ...system.helper_programs import helper_command
from ...system.redact import redact_text
from .rule import Instruction

PYTHON = "python:"

MAX_ANSWER = 64 * 1024
"""Bytes of text: the size limit of a rule file."""

_QUOTED = 300  # characters of an error


class HandlerSkipped(Exception):
    """The handler returned no text; the message says why."""


async def run_handler(
    instruction: Instruction,
    prompt: str,
    paths: Sequence[str],
    *,
    project: str,
    seconds: float,
    environ: Mapping[str, str],
) -> str:
    """Return the handler's text for this prompt; raise `HandlerSkipped` when it fails, times out or writes too much."""
    given = json.dumps({"prompt": prompt, "paths": list(paths), "project": project}).encode()
    try:
        ended = await ask(
            _command(instruction),
            given,
            folder=project,
            environ=process_tree.clean_environment(environ),
            key=f"rule-{os.urandom(8).hex()}",
            seconds=seconds,
            most=MAX_ANSWER,
        )
    except OSError as error:
        raise HandlerSkipped(f"it could not be started: {error.strerror or error}") from error
    if ended.text is None:
        raise HandlerSkipped(f"it said more than {MAX_ANSWER} bytes")
    if ended.late:
        raise HandlerSkipped(f"it took longer than {seconds:g} s")
    if ended.code != 0:
        raise HandlerSkipped(_failure_message(ended))
    try:
        return redact_text(ended.text.decode()).replace("\r\n", "\n").strip("\n")
    except UnicodeDecodeError as error:
        raise HandlerSkipped("what it said is not UTF-8") from error


def _command(instruction: Instruction) -> list[str]:
    handler = instruction.handler or ""
    if handler.startswith(PYTHON):
        # Without the script's own folder on sys.path: its modules would shadow the handler's of the same name.
        program = helper_command("sidecar.policy.instructions.entry_point", isolated=False)
        return [*program, handler.removeprefix(PYTHON).strip()]
    return [SHELL, "-c", handler]


def _failure_message(ended: FilterOutput) -> str:
    lines = redact_text(ended.complaint.decode(errors="replace")).strip().splitlines()
    how = "it was killed" if ended.code is None else f"it ended with exit code {ended.code}"
    return f"{how}: {lines[-1].strip()[:_QUOTED]}" if lines else how
