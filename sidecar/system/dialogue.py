"""One question to a program: it reads a text, says what it has to say within a limit, and is gone with all it started.

It runs beneath a keeper (`children`), which gives a child nothing to read and one pipe for all it says. Here its input
is a file, and its errors have a pipe of their own. What is asked, and what an answer means, is not known here.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread
import msgspec

from . import children

MAX_COMPLAINT = 8 * 1024
"""Bytes kept of its error stream: the end tells what is wrong."""

SHELL = "/bin/sh"
_STREAMS = 'given=$1 errors=$2; shift 2; exec "$@" <"$given" 2>"$errors"'


class Said(msgspec.Struct, frozen=True):
    """How it ended: `text` is None when it said too much, `late` when the time limit ended it. `code` is None for one
    that was killed with its keeper."""

    code: int | None
    text: bytes | None
    complaint: bytes
    late: bool


async def ask(
    argv: Sequence[str],
    given: bytes,
    *,
    folder: str,
    environ: Mapping[str, str],
    key: str,
    seconds: float,
    most: int,
) -> Said:
    """Run `argv` in a folder with `given` to read, and take at most `most` bytes. OSError when it cannot be started.

    `key` is the mark that its processes carry.
    """
    async with _handed(given, folder) as hand:
        return await _said(argv, hand, dict(environ), key, seconds, most)


def shell(environ: Mapping[str, str]) -> str:
    """The shell that people write their commands for: bash, where it is."""
    import shutil

    found = shutil.which("bash", path=environ.get("PATH", os.defpath))
    return found if found and os.path.isabs(found) else SHELL


class _Hand(msgspec.Struct, frozen=True):
    """What it is given: its folder as a descriptor, its input, and the pipe for its errors, by path and open."""

    folder: int
    given: str
    errors: str
    pipe: int


@asynccontextmanager
async def _handed(given: bytes, folder: str) -> AsyncIterator[_Hand]:
    import shutil
    import tempfile

    home = await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="sidecar-ask-"))
    opened: list[int] = []
    try:
        yield await anyio.to_thread.run_sync(_laid_out, home, given, folder, opened)
    finally:
        for descriptor in opened:
            os.close(descriptor)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(home, ignore_errors=True))


def _laid_out(home: str, given: bytes, folder: str, opened: list[int]) -> _Hand:
    hand = _Hand(os.open(folder, os.O_RDONLY), os.path.join(home, "given"), os.path.join(home, "errors"), -1)
    opened.append(hand.folder)
    with open(hand.given, "xb") as file:
        file.write(given)
    os.mkfifo(hand.errors, 0o600)
    # Open for both: then neither we nor the program wait for the other to open its end.
    opened.append(os.open(hand.errors, os.O_RDWR | os.O_NONBLOCK))
    return msgspec.structs.replace(hand, pipe=opened[-1])


async def _said(
    argv: Sequence[str], hand: _Hand, environ: dict[str, str], key: str, seconds: float, most: int
) -> Said:
    whole = [SHELL, "-c", _STREAMS, "ask", hand.given, hand.errors, *argv]
    complaint = bytearray()
    text: bytes | None = b""
    async with children.running(whole, folder=hand.folder, environ=environ, key=key) as child:
        with anyio.move_on_after(seconds) as limit:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_listen, hand.pipe, complaint)
                text = await _answer(child, most)
                if text is not None:
                    await child.wait()
                tasks.cancel_scope.cancel()
    _take(hand.pipe, complaint)
    return Said(child.exit_code, text, bytes(complaint), limit.cancelled_caught)


async def _answer(child: children.Child, most: int) -> bytes | None:
    """All that it writes; None when that is too much."""
    said = bytearray()
    while piece := await child.read():
        said += piece
        if len(said) > most:
            return None
    return bytes(said)


async def _listen(pipe: int, complaint: bytearray) -> None:
    """Take the errors as they come: a program that waits for their reader would never end."""
    while True:
        await anyio.wait_readable(pipe)
        _take(pipe, complaint)


def _take(pipe: int, complaint: bytearray) -> None:
    with suppress(BlockingIOError):
        complaint += os.read(pipe, 64 * 1024)
    del complaint[:-MAX_COMPLAINT]
