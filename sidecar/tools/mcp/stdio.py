"""A server that is our child process: its start, its messages, its stderr, and the end of its process tree.

The SDK has the same, but takes up to six seconds to end a process, where the whole program has two, and neither
bounds a line nor keeps what the server wrote to stderr.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import Process
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from ...system.programs import outside_path
from ...system.redact import redact_text
from ...text.surrogates import well_formed
from .config import ServerConfig
from .links import MAX_MESSAGE, ServerUnusable
from .pace import RateLimiter

MAX_STDERR_TAIL = 4 * 1024
"""Bytes of stderr: the end of it says why a server ended."""

MAX_STRAY_LINES = 100
"""Stray lines in a row. Some servers greet or log on stdout; one that writes nothing else does not speak MCP."""

MAX_UNANSWERED = 256
"""A server that sends requests and does not read our answers would fill the memory with them."""

MAX_WAITING = 64
"""Messages that wait for a server to read its input."""

MESSAGES_PER_S = 1000
STDERR_BYTES_PER_S = 4 * 1024 * 1024
"""A server that sends more unasked is slowed down; answers to our calls are not."""

EXIT_S = 0.3
"""Seconds between the end of a server's output and that of the process; also its time for an orderly end."""

KILL_WAIT_S = 0.5
"""Seconds: a killed process is gone at once, unless the kernel is busy with it."""

MARK_VARIABLE = "SIDECAR_MCP_SERVER"
"""Marks the server in its environment, which also finds descendants that have left its process group."""

INHERITED_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA"),
    *("PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT"),
    *("TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
)
"""All that a server inherits of our environment. Everything else must be in its configuration."""


@asynccontextmanager
async def open_process_link(config: ServerConfig, environ: Mapping[str, str]) -> AsyncIterator[ProcessLink]:
    """Start the process and transport messages until the context ends, and the process with it."""
    mark = secrets.token_hex(8)
    # A start that is cancelled halfway would lose track of a process; it takes a few milliseconds.
    with anyio.CancelScope(shield=True):
        process = await _start_process(config, {**_environment(config, environ), MARK_VARIABLE: mark})
    link = ProcessLink(process, mark)
    try:
        async with anyio.create_task_group() as pumps:
            pumps.start_soon(link.send_messages)
            pumps.start_soon(link.receive_messages)
            pumps.start_soon(link.drain_stderr)
            try:
                yield link
            finally:
                pumps.cancel_scope.cancel()
    finally:
        await link.close()


class ProcessLink:
    def __init__(self, process: Process, mark: str) -> None:
        self.mark: str | None = mark
        self.ended = anyio.Event()
        self._process = process
        # No buffer towards the session: a server that talks without end is slowed down by its own pipe.
        self._heard, self.read = anyio.create_memory_object_stream[Any](0)
        self.write, self._said = anyio.create_memory_object_stream[Any](MAX_WAITING)
        self._last_words = bytearray()
        self._silent = anyio.Event()
        self._has_spoken = False
        self._stray_lines = 0
        self._first_stray: bytes | None = None
        self._unanswered = 0
        self._broken: str | None = None
        self._is_over = False
        self._killed = False

    def trouble(self) -> str | None:
        # After we killed it, the exit code says nothing about why it failed.
        code = None if self._killed else self._process.returncode
        parts: list[str] = []
        if self._broken:
            parts.append(self._broken)
        elif code is not None:
            killed = f"its process was killed by signal {-code}"
            parts.append(killed if code < 0 else f"its process ended with code {code}")
        elif self.ended.is_set():
            parts.append("its process has closed its output")
        if self._first_stray and (self._broken or not self._has_spoken):
            parts.append(f"it printed what is no MCP message: {_stderr_text(self._first_stray)}")
        if self._last_words:
            parts.append(f"its last words: {_stderr_text(self._last_words)}")
        return "; ".join(parts) or None

    def kill(self) -> None:
        if not self._is_over:
            # Only once: after the whole group is gone, its number may be reused.
            self._is_over = True
            self._killed = self._process.returncode is None
            kill_group(self._process)

    async def disconnect(self) -> None:
        assert self._process.stdin is not None
        with anyio.move_on_after(EXIT_S):
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                await self._process.stdin.aclose()
            await self._process.wait()

    async def close(self) -> None:
        """End the process, its descendants and the streams."""
        with anyio.CancelScope(shield=True):
            self.kill()
            with anyio.move_on_after(KILL_WAIT_S):
                await self._process.aclose()
            with anyio.move_on_after(KILL_WAIT_S):
                await anyio.to_thread.run_sync(kill_marked, {self.mark}, abandon_on_cancel=True)
            for stream in (self.read, self.write, self._heard, self._said):
                stream.close()

    async def send_messages(self) -> None:
        """Write the messages of the session to the server's stdin."""
        assert self._process.stdin is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            async for item in self._said:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._process.stdin.send(line.encode(errors="replace") + b"\n")
                if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                    self._unanswered -= 1

    async def receive_messages(self) -> None:
        """Pass the server's stdout to the session, up to its end or to what cannot be parsed."""
        try:
            await self._receive_lines()
        except ServerUnusable as unusable:
            self._broken = str(unusable)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            # The exit code and the rest of stderr come shortly after the end of stdout, and give the reason.
            with anyio.move_on_after(EXIT_S):
                await self._process.wait()
                await self._silent.wait()
        self.ended.set()
        self._heard.close()

    async def drain_stderr(self) -> None:
        """Drain stderr, which would block the server when full, and keep its end."""
        assert self._process.stderr is not None
        pace = RateLimiter(STDERR_BYTES_PER_S)
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            while True:
                chunk = await self._process.stderr.receive()
                self._last_words = (self._last_words + chunk)[-MAX_STDERR_TAIL:]
                await pace.spend(len(chunk))
        self._silent.set()

    async def _receive_lines(self) -> None:
        pace = RateLimiter(MESSAGES_PER_S)
        async for line in self._lines():
            message = await self._parse_line(line)
            if message is None or not _is_response(message):
                await pace.spend()
            if message is not None:
                await self._heard.send(message)

    async def _lines(self) -> AsyncIterator[bytes]:
        assert self._process.stdout is not None
        buffer = bytearray()
        searched = 0
        while True:
            while (end := buffer.find(b"\n", searched)) < 0:
                if len(buffer) > MAX_MESSAGE:
                    raise ServerUnusable(f"it sent a message of more than {MAX_MESSAGE >> 20} MiB")
                searched = len(buffer)
                buffer += await self._process.stdout.receive()
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            searched = 0
            if line.strip():
                yield line

    async def _parse_line(self, line: bytes) -> SessionMessage | None:
        """Return the message in a line; None for a stray line. Too many of them end the connection."""
        message = _decode_message(line)
        if message is None:
            self._first_stray = self._first_stray or line[:200]
            self._stray_lines += 1
            if self._stray_lines > MAX_STRAY_LINES:
                raise ServerUnusable("it does not speak MCP on its stdout")
            return None
        self._has_spoken = True
        self._stray_lines = 0
        if isinstance(message, JSONRPCRequest):
            self._unanswered += 1
            if self._unanswered > MAX_UNANSWERED:
                raise ServerUnusable("it asks without end and does not read the answers")
        return SessionMessage(message)


def kill_group(process: Process) -> None:
    """Kill a process that leads a group, and the group; members may survive their leader."""
    if sys.platform == "win32":
        with suppress(OSError):
            process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def kill_marked(marks: Collection[str | None]) -> None:
    """Kill the descendants of servers with these marks, also outside of their group. Only possible on Linux."""
    if sys.platform != "linux" or not marks:
        return
    needles = {f"{MARK_VARIABLE}={mark}".encode() for mark in marks}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and not needles.isdisjoint(_environ_of(entry)):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(entry), signal.SIGKILL)


def _environ_of(pid: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


async def _start_process(config: ServerConfig, environ: dict[str, str]) -> Process:
    assert config.command is not None
    try:
        return await anyio.open_process(
            [config.command, *config.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            cwd=config.cwd,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        if config.cwd is not None and error.filename == config.cwd:
            raise ServerUnusable(f"the folder {config.cwd} (`cwd`) does not exist") from error
        raise ServerUnusable(
            f"there is no program {config.command!r}; install it, or give its full path as `command`"
        ) from error
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise ServerUnusable(f"{config.command!r} cannot be started: {said}") from error


def _environment(config: ServerConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """Return a small part of our environment without our secrets, then what the configuration sets."""
    ours = {name: environ[name] for name in INHERITED_VARIABLES if name in environ}
    if "PATH" in ours:
        ours["PATH"] = outside_path(ours["PATH"])
    return {name: value for name, value in ours.items() if redact_text(value) == value} | config.env


def _decode_message(line: bytes) -> Any:
    """Return a JSON-RPC message, also one whose text is not well-formed; None for anything else."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        # A lone surrogate must not lose the answer to a call.
        value = json.loads(line.decode(errors="replace"))
        return jsonrpc_message_adapter.validate_python(_well_formed_json(value), by_name=False)
    except (ValueError, RecursionError):
        return None


def _well_formed_json(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [_well_formed_json(item) for item in value]
    if isinstance(value, dict):
        return {_well_formed_json(key): _well_formed_json(item) for key, item in value.items()}
    return value


def _is_response(item: SessionMessage) -> bool:
    return isinstance(item.message, JSONRPCResponse | JSONRPCError)


def _stderr_text(words: bytes | bytearray) -> str:
    return bytes(words).decode(errors="replace").strip()
