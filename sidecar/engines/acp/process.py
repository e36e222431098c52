"""The process of an agent: its pipes, the end of its stderr, and the end of its whole process tree.

A supervisor (`system/supervisor`) is its parent, so that all it has started ends with it, also when the sidecar is
killed: some agents do not exit when their input ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress

import anyio
from anyio.abc import Process

from ...model.failures import Failure
from ...system.helper_programs import helper_command
from ...system.programs import outside_path
from ...system.redact import redact_text
from .presets import AgentCommand

MAX_STDERR_TAIL = 4 * 1024
"""Bytes of stderr: its end says why an agent has ended."""

EXIT_S = 0.15
"""How long an agent may take to exit after the end of its input; then it is ended with all that it started."""

GONE_S = 0.3
"""How long to wait for the supervisor: it sends SIGKILL 0.2 s after SIGTERM, and needs nobody to wait for that."""

_NOT_INHERITED = ("CLAUDECODE", "PWD", "OLDPWD")
"""Claude Code refuses to start in itself: our app may have been started from its terminal."""


class AgentProcess:
    """A started agent. `end` ends it with its descendants."""

    def __init__(self, process: Process, lifeline: int | None) -> None:
        self._process = process
        self._lifeline = lifeline
        self._last_words = bytearray()
        self.silent = anyio.Event()
        """Set when its stderr has ended, and the last words are all there."""

    async def receive(self) -> bytes:
        """The next bytes of its output; empty at the end."""
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            return b""

    async def send(self, data: bytes) -> bool:
        """Write to its input; False when it has closed that."""
        assert self._process.stdin is not None
        try:
            await self._process.stdin.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            return False
        return True

    async def drain_stderr(self) -> None:
        """Read stderr, which would block the agent when full, and keep its end."""
        assert self._process.stderr is not None
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            while True:
                chunk = await self._process.stderr.receive()
                self._last_words = (self._last_words + chunk)[-MAX_STDERR_TAIL:]
        self.silent.set()

    def last_words(self) -> str:
        """The end of what it wrote to stderr, without secrets."""
        return redact_text(bytes(self._last_words).decode(errors="replace")).strip()

    async def end(self) -> None:
        """Close its input, then end its process tree. Takes less than half a second."""
        with anyio.CancelScope(shield=True):
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                assert self._process.stdin is not None
                await self._process.stdin.aclose()
            with anyio.move_on_after(EXIT_S):
                await self._process.wait()
            self._let_go()
            with anyio.move_on_after(GONE_S):
                await self._process.wait()
            with suppress(ProcessLookupError):
                if self._process.returncode is None and self._lifeline is None and sys.platform == "win32":
                    self._process.kill()
            for stream in (self._process.stdout, self._process.stderr):
                if stream is not None:
                    await stream.aclose()

    def _let_go(self) -> None:
        """Close the lifeline: the supervisor ends every descendant of the agent, and then itself."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


async def start_agent(
    agent: AgentCommand, program: str, folder: str, environ: Mapping[str, str]
) -> AgentProcess:
    """Start it in the folder. Raises a Failure that says why it cannot be started."""
    # Shielded: a start that is cancelled halfway would lose track of a process. It takes a few milliseconds.
    try:
        with anyio.CancelScope(shield=True):
            process = await _start([program, *agent.args], folder, agent_environment(agent, environ))
    except OSError as error:
        raise Failure(
            "precondition_failed",
            f"{agent.title} cannot be started: {error.strerror or error}",
            reason="agent_start",
        ) from error
    return process


async def _start(command: list[str], folder: str, environ: dict[str, str]) -> AgentProcess:
    if sys.platform == "win32":
        return AgentProcess(await _open(command, folder, environ, ()), None)
    hold, lifeline = os.pipe()
    status = os.open(os.devnull, os.O_WRONLY)
    orders = [str(hold), str(status), "0", "", ""]
    # Isolated and without site: nothing in the environment or the folder can influence its start.
    argv = [*helper_command("sidecar.system.supervisor"), *orders, *command]
    try:
        return AgentProcess(await _open(argv, folder, environ, (hold, status)), lifeline)
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(hold)
        os.close(status)


async def _open(
    argv: list[str], folder: str, environ: dict[str, str], descriptors: tuple[int, ...]
) -> Process:
    return await anyio.open_process(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=folder,
        start_new_session=True,
        pass_fds=descriptors,
    )


def agent_environment(agent: AgentCommand, environ: Mapping[str, str]) -> dict[str, str]:
    """The user's environment, which has the agent's own keys, without our settings."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("SIDECAR_") and name not in _NOT_INHERITED
    }
    if "PATH" in kept:
        kept["PATH"] = outside_path(kept["PATH"])
    return kept | dict(agent.variables)
