"""Run a program as a filter: it reads a text, writes bounded output within a time limit, and ends with all its
descendants.

It runs under a supervisor (`process_tree`), which gives a child no stdin and one pipe for all output. Here stdin is a
file, and stderr has its own pipe. Does not know what the input and output mean.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec

from . import process_tree
from .lazy import lazy_module
from .programs import find_program

if TYPE_CHECKING:
    import shutil
    import tempfile
else:
    shutil = lazy_module("shutil")
    tempfile = lazy_module("tempfile")

MAX_STDERR = 8 * 1024
"""Bytes of stderr that are kept: the end says what is wrong."""

SHELL = "/bin/sh"
_STREAMS = 'given=$1 errors=$2; shift 2; exec "$@" <"$given" 2>"$errors"'


class FilterOutput(msgspec.Struct, frozen=True):
    """How it ended: `text` is None when it wrote too much, `late` when the time limit ended it. `code` is None when
    it was killed with its supervisor.
    """

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
) -> FilterOutput:
    """Run `argv` in a folder with `given` as stdin, and read at most `most` bytes. Raises OSError when it cannot be
    started.

    `key` is the mark that its processes carry.
    """
    async with _open_streams(given, folder) as hand:
        return await _run(argv, hand, dict(environ), key, seconds, most)


def shell(environ: Mapping[str, str]) -> str:
    """The shell that people write their commands for: bash, where it is."""
    return find_program("bash", environ.get("PATH", os.defpath)) or SHELL


class _Streams(msgspec.Struct, frozen=True):
    """Its files: its folder as a descriptor, its stdin, and the FIFO for stderr, by path and open."""

    folder: int
    given: str
    errors: str
    pipe: int


@asynccontextmanager
async def _open_streams(given: bytes, folder: str) -> AsyncIterator[_Streams]:
    home = await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="sidecar-ask-"))
    opened: list[int] = []
    try:
        yield await anyio.to_thread.run_sync(_create_streams, home, given, folder, opened)
    finally:
        for descriptor in opened:
            os.close(descriptor)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(home, ignore_errors=True))


def _create_streams(home: str, given: bytes, folder: str, opened: list[int]) -> _Streams:
    hand = _Streams(
        os.open(folder, os.O_RDONLY), os.path.join(home, "given"), os.path.join(home, "errors"), -1
    )
    opened.append(hand.folder)
    with open(hand.given, "xb") as file:
        file.write(given)
    os.mkfifo(hand.errors, 0o600)
    # Open for reading and writing: otherwise each side would block until the other opens its end.
    opened.append(os.open(hand.errors, os.O_RDWR | os.O_NONBLOCK))
    return msgspec.structs.replace(hand, pipe=opened[-1])


async def _run(
    argv: Sequence[str], hand: _Streams, environ: dict[str, str], key: str, seconds: float, most: int
) -> FilterOutput:
    whole = [SHELL, "-c", _STREAMS, "ask", hand.given, hand.errors, *argv]
    complaint = bytearray()
    text: bytes | None = b""
    async with process_tree.running(whole, folder=hand.folder, environ=environ, key=key) as child:
        with anyio.move_on_after(seconds) as limit:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read_errors, hand.pipe, complaint)
                text = await _read_output(child, most)
                if text is not None:
                    await child.wait()
                tasks.cancel_scope.cancel()
    # Once more: the last lines may have come after the reader was cancelled.
    _read_pipe(hand.pipe, complaint)
    return FilterOutput(child.exit_code, text, bytes(complaint), limit.cancelled_caught)


async def _read_output(child: process_tree.SupervisedProcess, most: int) -> bytes | None:
    """Return all output; None when it is too long."""
    said = bytearray()
    while piece := await child.read():
        said += piece
        if len(said) > most:
            return None
    return bytes(said)


async def _read_errors(pipe: int, complaint: bytearray) -> None:
    """Read stderr as it comes: a program that waits for its reader would never end."""
    while True:
        await anyio.wait_readable(pipe)
        _read_pipe(pipe, complaint)


def _read_pipe(pipe: int, complaint: bytearray) -> None:
    with suppress(BlockingIOError):
        complaint += os.read(pipe, 64 * 1024)
    del complaint[:-MAX_STDERR]
