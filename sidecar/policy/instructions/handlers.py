"""Runs what a rule names as its handler and takes what it says. Whether it is trusted is the caller's to know.

A handler runs beneath a keeper (`system/children`) in the project's folder, with a clean environment: nothing
of it outlives the call, or the sidecar. It reads `{"prompt", "paths", "project"}` as JSON and writes text.
`python:NAME` is an entry point of the group `sidecar.rules` among the packages that are installed beside the
sidecar; it runs in a process too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence

from ...system import children
from ...system.dialogue import SHELL, Said, ask
from ...system.redact import redacted
from . import entry_point
from .rule import Instruction

PYTHON = "python:"

MAX_ANSWER = 64 * 1024
"""Bytes of text: as much as a file with rules may have."""

_QUOTED = 300  # characters of a complaint


class Skipped(Exception):
    """The handler gave no text; the words say why."""


async def run_handler(
    instruction: Instruction,
    prompt: str,
    paths: Sequence[str],
    *,
    project: str,
    seconds: float,
    environ: Mapping[str, str],
) -> str:
    """What the rule's handler says to this prompt; `Skipped` when it fails, takes too long or says too much."""
    given = json.dumps({"prompt": prompt, "paths": list(paths), "project": project}).encode()
    try:
        ended = await ask(
            _command(instruction),
            given,
            folder=project,
            environ=children.clean_environment(environ),
            key=f"rule-{os.urandom(8).hex()}",
            seconds=seconds,
            most=MAX_ANSWER,
        )
    except OSError as error:
        raise Skipped(f"it could not be started: {error.strerror or error}") from error
    if ended.text is None:
        raise Skipped(f"it said more than {MAX_ANSWER} bytes")
    if ended.late:
        raise Skipped(f"it took longer than {seconds:g} s")
    if ended.code != 0:
        raise Skipped(_failed(ended))
    try:
        return redacted(ended.text.decode()).replace("\r\n", "\n").strip("\n")
    except UnicodeDecodeError as error:
        raise Skipped("what it said is not UTF-8") from error


def _command(instruction: Instruction) -> list[str]:
    handler = instruction.handler or ""
    if handler.startswith(PYTHON):
        # Without the script's own folder on its path, whose modules would hide the handler's of the same name.
        return [sys.executable, "-P", entry_point.__file__, handler.removeprefix(PYTHON).strip()]
    return [SHELL, "-c", handler]


def _failed(ended: Said) -> str:
    lines = redacted(ended.complaint.decode(errors="replace")).strip().splitlines()
    how = "it was killed" if ended.code is None else f"it ended with exit code {ended.code}"
    return f"{how}: {lines[-1].strip()[:_QUOTED]}" if lines else how
