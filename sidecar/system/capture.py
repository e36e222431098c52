"""Run a program to its end and capture its output: bounded, within a time limit, in a folder held open.

The program has its own process group, which does not outlive the call: not when it is done, not when a limit ends it,
not when the call is cancelled. Does not know what is run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterable, Mapping, Sequence
from typing import Literal

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, ByteSendStream

if sys.platform == "darwin":
    import fcntl

MAX_ERROR = 8 * 1024
"""Bytes of stderr: its first lines say what is wrong."""

_KILL_WAIT_S = 2.0
"""For a killed program to be reaped; only one that hangs in the kernel takes longer, and it is abandoned."""


class Captured(msgspec.Struct, frozen=True):
    """`code` is negative for a signal. `stopped` says which limit ended the program; `out` is what came before."""

    code: int | None
    out: bytes
    err: bytes
    stopped: Literal["time", "size"] | None = None


async def capture(
    command: Sequence[str],
    *,
    folder: int,
    env: Mapping[str, str],
    seconds: float,
    max_bytes: int,
    feed: AsyncIterable[bytes] | int | None = None,
) -> Captured:
    """Run `command` in the folder of that descriptor. `feed` is its input: pieces, or a descriptor. Raises OSError
    when it cannot be started.
    """
    pieces = feed if feed is not None and not isinstance(feed, int) else None
    given = subprocess.DEVNULL if feed is None else feed if isinstance(feed, int) else subprocess.PIPE
    with anyio.CancelScope(shield=True):  # a start that is cancelled halfway would lose track of the process
        process = await anyio.open_process(
            list(command), stdin=given, env=env, cwd=folder_path(folder), start_new_session=True
        )
    out, err = bytearray(), bytearray()
    over = False
    try:
        with anyio.move_on_after(seconds) as limit:
            async with anyio.create_task_group() as tasks:
                if process.stderr is not None:
                    tasks.start_soon(_take_start, process.stderr, err)
                if pieces is not None and process.stdin is not None:
                    tasks.start_soon(_feed, process.stdin, pieces)
                if process.stdout is not None:
                    over = await _take(process.stdout, out, max_bytes)
                if over:
                    tasks.cancel_scope.cancel()
            if not over:
                await process.wait()
    finally:
        # Shielded: a cancelled call must still reap the program, or it stays a zombie.
        with anyio.CancelScope(shield=True):
            _end_group(process.pid)
            with anyio.move_on_after(_KILL_WAIT_S):
                await process.wait()
            if process.returncode is not None:
                await process.aclose()  # a pipe that was not read to its end would stay open
    stopped: Literal["time", "size"] | None = "size" if over else "time" if limit.cancelled_caught else None
    return Captured(process.returncode, bytes(out), bytes(err), stopped)


def folder_path(fd: int) -> str:
    """Return a path that leads a child to the folder of an open descriptor, even after a rename."""
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return f"/proc/self/fd/{fd}"


async def _take(stream: ByteReceiveStream, into: bytearray, max_bytes: int) -> bool:
    """Read to the end; return True when there is more than the limit."""
    async for piece in stream:
        into += piece
        if len(into) > max_bytes:
            del into[max_bytes:]
            return True
    return False


async def _take_start(stream: ByteReceiveStream, into: bytearray) -> None:
    """Read to the end and keep the beginning: a program that waits for its reader would never end."""
    async for piece in stream:
        into += piece[: MAX_ERROR - len(into)]


async def _feed(stream: ByteSendStream, pieces: AsyncIterable[bytes]) -> None:
    try:
        async for piece in pieces:
            await stream.send(piece)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # it has ended, and its exit code says how
    finally:
        with anyio.CancelScope(shield=True):
            await stream.aclose()


def _end_group(pid: int) -> None:
    """Kill the process group of the program; it exists until its last process ends."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
