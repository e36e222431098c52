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
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread
import msgspec

from ...system import children
from ...system.redact import redacted
from . import entry_point
from .rule import Instruction

PYTHON = "python:"

MAX_ANSWER = 64 * 1024
"""Bytes of text: as much as a file with rules may have."""

MAX_COMPLAINT = 8 * 1024
"""Bytes kept of its error stream: the end tells what is wrong."""

_SHELL = "/bin/sh"
_STREAMS = 'given=$1 errors=$2; shift 2; exec "$@" <"$given" 2>"$errors"'
"""A child has nothing to read and one pipe for all it says: here its input is a file, and its errors have their own."""

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
        async with _handed(given, project) as hand:
            ended = await _ended(_command(instruction), hand, seconds, children.clean_environment(environ))
    except OSError as error:
        raise Skipped(f"it could not be started: {error.strerror or error}") from error
    if ended.said is None:
        raise Skipped(f"it said more than {MAX_ANSWER} bytes")
    if ended.late:
        raise Skipped(f"it took longer than {seconds:g} s")
    if ended.code != 0:
        raise Skipped(_failed(ended))
    try:
        return redacted(ended.said.decode()).replace("\r\n", "\n").strip("\n")
    except UnicodeDecodeError as error:
        raise Skipped("what it said is not UTF-8") from error


class _Hand(msgspec.Struct, frozen=True):
    """What a handler is given: its folder as a descriptor, its input, and the pipe for its errors, by path and open."""

    folder: int
    given: str
    errors: str
    pipe: int


class _Ended(msgspec.Struct, frozen=True):
    """`said` is None when it was too much, `late` when the time limit ended it."""

    code: int | None
    said: bytes | None
    complaint: bytes
    late: bool


def _command(instruction: Instruction) -> list[str]:
    handler = instruction.handler or ""
    if handler.startswith(PYTHON):
        # Without the script's own folder on its path, whose modules would hide the handler's of the same name.
        return [sys.executable, "-P", entry_point.__file__, handler.removeprefix(PYTHON).strip()]
    return [_SHELL, "-c", handler]


@asynccontextmanager
async def _handed(given: bytes, project: str) -> AsyncIterator[_Hand]:
    import shutil
    import tempfile

    home = await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="sidecar-rule-"))
    opened: list[int] = []
    try:
        hand = await anyio.to_thread.run_sync(_laid_out, home, given, project, opened)
        yield hand
    finally:
        for descriptor in opened:
            os.close(descriptor)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(home, ignore_errors=True))


def _laid_out(home: str, given: bytes, project: str, opened: list[int]) -> _Hand:
    hand = _Hand(os.open(project, os.O_RDONLY), os.path.join(home, "given"), os.path.join(home, "errors"), -1)
    opened.append(hand.folder)
    with open(hand.given, "xb") as file:
        file.write(given)
    os.mkfifo(hand.errors, 0o600)
    # Open for both: then neither we nor the handler wait for the other to open its end.
    opened.append(os.open(hand.errors, os.O_RDWR | os.O_NONBLOCK))
    return msgspec.structs.replace(hand, pipe=opened[-1])


async def _ended(argv: list[str], hand: _Hand, seconds: float, environ: dict[str, str]) -> _Ended:
    whole = [_SHELL, "-c", _STREAMS, "handler", hand.given, hand.errors, *argv]
    key = f"rule-{os.urandom(8).hex()}"
    complaint = bytearray()
    said: bytes | None = b""
    async with children.running(whole, folder=hand.folder, environ=environ, key=key) as child:
        with anyio.move_on_after(seconds) as limit:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_listen, hand.pipe, complaint)
                said = await _answer(child)
                if said is not None:
                    await child.wait()
                tasks.cancel_scope.cancel()
    _take(hand.pipe, complaint)
    return _Ended(child.exit_code, said, bytes(complaint), limit.cancelled_caught)


async def _answer(child: children.Child) -> bytes | None:
    """All that it writes; None when that is too much."""
    said = bytearray()
    while piece := await child.read():
        said += piece
        if len(said) > MAX_ANSWER:
            return None
    return bytes(said)


async def _listen(pipe: int, complaint: bytearray) -> None:
    """Take the errors as they come: a handler that waits for their reader would never end."""
    while True:
        await anyio.wait_readable(pipe)
        _take(pipe, complaint)


def _take(pipe: int, complaint: bytearray) -> None:
    with suppress(BlockingIOError):
        complaint += os.read(pipe, 64 * 1024)
    del complaint[:-MAX_COMPLAINT]


def _failed(ended: _Ended) -> str:
    lines = redacted(ended.complaint.decode(errors="replace")).strip().splitlines()
    how = "it was killed" if ended.code is None else f"it ended with exit code {ended.code}"
    return f"{how}: {lines[-1].strip()[:_QUOTED]}" if lines else how
