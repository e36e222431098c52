"""The sidecar's process and its three pipes. Owns starting it and making sure it is gone; knows no JSON-RPC.

The process gets a group of its own, so that a Ctrl-C in the terminal reaches the app alone, and its stderr is
always drained, so that a chatty log cannot fill the pipe.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import anyio
from anyio.abc import Process

from .errors import SidecarDied

TAIL_BYTES = 8 * 1024
"""How much of stderr an error message quotes: a traceback, not a log."""

STEP_SECONDS = 2.0
"""How long the process may take for each step of leaving: by itself, after SIGTERM, after SIGKILL."""

DRAIN_SECONDS = 0.5
"""A grandchild may hold a pipe open for ever; what the process itself wrote is there at once."""

_GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


class Transport(Protocol):
    """Bytes to a sidecar and back. Tests put one in memory in the place of a process."""

    @property
    def pid(self) -> int | None:
        """None where there is no process."""

    async def send(self, data: bytes) -> None:
        """Raises OSError or an anyio resource error once the other end is gone."""

    async def end_input(self) -> None:
        """Nothing more will be sent."""

    async def receive(self) -> bytes:
        """Some bytes; nothing at the end."""

    async def watch(self) -> None:
        """Runs beside the connection; `receive` ends soon after the process has."""

    async def finish(self, grace: float) -> SidecarDied:
        """Make sure that it is gone, giving it `grace` seconds to leave by itself, and say how it went."""


class ServerProcess:
    """A sidecar as a child process."""

    def __init__(self, process: Process, log: Callable[[str], None] | None) -> None:
        self._process = process
        self._log = log
        self._tail = bytearray()
        self._eof = anyio.Event()
        self._drained = anyio.Event()

    @classmethod
    async def start(
        cls, command: Sequence[str], env: Mapping[str, str], log: Callable[[str], None] | None = None
    ) -> ServerProcess:
        """Start `command`; each line of its stderr goes to `log` as well as to the tail."""
        try:
            process = await anyio.open_process(
                list(command),
                env=dict(env),
                start_new_session=os.name == "posix",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as error:
            raise SidecarDied(f"Could not start {command[0]}: {error.strerror or error}") from error
        return cls(process, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send(data)

    async def receive(self) -> bytes:
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.receive()
        except _GONE:
            self._eof.set()
            return b""

    async def watch(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain)
            await self._process.wait()
            with anyio.move_on_after(DRAIN_SECONDS):
                await self._eof.wait()
            assert self._process.stdout is not None
            await self._process.stdout.aclose()

    async def finish(self, grace: float) -> SidecarDied:
        await self.end_input()
        for seconds, step in ((grace, None), (STEP_SECONDS, "SIGTERM"), (STEP_SECONDS, "SIGKILL")):
            if step is not None:
                self._signal(getattr(signal, step, signal.SIGTERM))
            with anyio.move_on_after(seconds):
                await self._process.wait()
                break
        with anyio.move_on_after(DRAIN_SECONDS):
            await self._drained.wait()
        await self._process.aclose()
        code = self._process.returncode
        return SidecarDied(f"The sidecar {_ending(code)}", code, self._tail.decode(errors="replace"))

    async def end_input(self) -> None:
        assert self._process.stdin is not None
        with suppress(*_GONE):
            await self._process.stdin.aclose()

    async def _drain(self) -> None:
        assert self._process.stderr is not None
        line = b""
        try:
            while True:
                chunk = await self._process.stderr.receive()
                self._tail = (self._tail + chunk)[-TAIL_BYTES:]
                *lines, line = (line + chunk).split(b"\n")
                line = line[-TAIL_BYTES:]
                self._pass_on(lines)
        except _GONE:
            pass
        finally:
            self._drained.set()

    def _pass_on(self, lines: list[bytes]) -> None:
        if self._log is not None:
            for line in lines:
                self._log(line[-TAIL_BYTES:].decode(errors="replace"))

    def _signal(self, number: signal.Signals) -> None:
        """To the whole group: the command may be a wrapper that does not pass signals on."""
        try:
            if os.name == "posix":
                os.killpg(self._process.pid, number)
            else:
                self._process.send_signal(number)
        except (ProcessLookupError, PermissionError):
            pass


def _ending(code: int | None) -> str:
    if code is None:
        return "does not end"
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
