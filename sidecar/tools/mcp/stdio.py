"""A server that is a process of ours: its start, its lines, its last words, and its end with all that it has started.

The SDK has the same, but takes up to six seconds to end a process, where all of the sidecar has two, and neither
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
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from anyio.abc import Process

from ...system.redact import redacted
from .links import MAX_MESSAGE, Unusable
from .pace import Pace

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

    from .config import ServerConfig

MAX_LAST_WORDS = 4 * 1024
"""What is kept of stderr: the end of it says why a server ended."""

MAX_STRAY_LINES = 100
"""One after the other. Some servers greet or log on stdout; one that says nothing else speaks another language."""

MAX_UNANSWERED = 256
"""A server that asks and does not read our answers would fill the memory with them."""

MAX_WAITING = 64
"""Messages that wait for a server to read its input."""

MESSAGES_PER_S = 1000
STDERR_BYTES_PER_S = 4 * 1024 * 1024
"""A server that says more of its own accord is slowed down; answers to our calls are not."""

EXIT_S = 0.3
"""Between the end of a server's output and that of the process; also what a server gets to end in order."""

END_S = 0.5
"""A killed process is gone at once, unless the kernel is busy with it."""

MARK = "SIDECAR_MCP_SERVER"
"""Names the server in its environment, and so finds descendants that have left its process group."""

INHERITED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA"),
    *("PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT"),
    *("TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
)
"""All of our environment that a server gets. What else it needs stands in its configuration."""


@asynccontextmanager
async def started(config: ServerConfig, environ: Mapping[str, str]) -> AsyncIterator[ProcessLink]:
    """Start the process and carry messages until the context ends, and the process with it."""
    mark = secrets.token_hex(8)
    # A start that is cancelled halfway would leave a process that nobody knows; it takes a few milliseconds.
    with anyio.CancelScope(shield=True):
        process = await _open(config, {**_environment(config, environ), MARK: mark})
    link = ProcessLink(process, mark)
    try:
        async with anyio.create_task_group() as pumps:
            pumps.start_soon(link.pump_out)
            pumps.start_soon(link.pump_in)
            pumps.start_soon(link.keep_last_words)
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
        # What we have killed has not ended of its own accord; how it ended then says nothing.
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
            parts.append(f"it printed what is no MCP message: {_readable(self._first_stray)}")
        if self._last_words:
            parts.append(f"its last words: {_readable(self._last_words)}")
        return "; ".join(parts) or None

    def kill(self) -> None:
        if not self._is_over:
            # Only once: when all of the group are gone, its number may become another's.
            self._is_over = True
            self._killed = self._process.returncode is None
            kill_group(self._process)

    async def hang_up(self) -> None:
        assert self._process.stdin is not None
        with anyio.move_on_after(EXIT_S):
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                await self._process.stdin.aclose()
            await self._process.wait()

    async def close(self) -> None:
        """End the process, what it has started, and the streams."""
        with anyio.CancelScope(shield=True):
            self.kill()
            with anyio.move_on_after(END_S):
                await self._process.aclose()
            with anyio.move_on_after(END_S):
                await anyio.to_thread.run_sync(kill_marked, {self.mark}, abandon_on_cancel=True)
            for stream in (self.read, self.write, self._heard, self._said):
                stream.close()

    async def pump_out(self) -> None:
        """What the session says, into the server's stdin."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        assert self._process.stdin is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            async for item in self._said:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._process.stdin.send(line.encode(errors="replace") + b"\n")
                if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                    self._unanswered -= 1

    async def pump_in(self) -> None:
        """What the server says on stdout, to the session, up to its end or to what cannot be understood."""
        try:
            await self._listen()
        except Unusable as unusable:
            self._broken = str(unusable)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            # The exit code and the rest of stderr come a moment after the end of stdout, and say why.
            with anyio.move_on_after(EXIT_S):
                await self._process.wait()
                await self._silent.wait()
        self.ended.set()
        self._heard.close()

    async def keep_last_words(self) -> None:
        """Drain stderr, which would block the server when full, and keep the end of it."""
        assert self._process.stderr is not None
        pace = Pace(STDERR_BYTES_PER_S)
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            while True:
                chunk = await self._process.stderr.receive()
                self._last_words = (self._last_words + chunk)[-MAX_LAST_WORDS:]
                await pace.spend(len(chunk))
        self._silent.set()

    async def _listen(self) -> None:
        pace = Pace(MESSAGES_PER_S)
        async for line in self._lines():
            message = await self._understood(line)
            if message is None or not _is_answer(message):
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
                    raise Unusable(f"it sent a message of more than {MAX_MESSAGE >> 20} MiB")
                searched = len(buffer)
                buffer += await self._process.stdout.receive()
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            searched = 0
            if line.strip():
                yield line

    async def _understood(self, line: bytes) -> SessionMessage | None:
        """The message in a line. None for a stray line; too many of them are the end."""
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCRequest

        message = _decoded(line)
        if message is None:
            self._first_stray = self._first_stray or line[:200]
            self._stray_lines += 1
            if self._stray_lines > MAX_STRAY_LINES:
                raise Unusable("it does not speak MCP on its stdout")
            return None
        self._has_spoken = True
        self._stray_lines = 0
        if isinstance(message, JSONRPCRequest):
            self._unanswered += 1
            if self._unanswered > MAX_UNANSWERED:
                raise Unusable("it asks without end and does not read the answers")
        return SessionMessage(message)


def kill_group(process: Process) -> None:
    """Kill a process that leads a group, and the group; some of it may live on when the leader has ended."""
    if sys.platform == "win32":
        with suppress(OSError):
            process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def kill_marked(marks: Collection[str | None]) -> None:
    """Kill what servers with these marks have started, also where it has left their group. Only Linux shows that."""
    if sys.platform != "linux" or not marks:
        return
    needles = {f"{MARK}={mark}".encode() for mark in marks}
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


async def _open(config: ServerConfig, environ: dict[str, str]) -> Process:
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
            raise Unusable(f"the folder {config.cwd} (`cwd`) does not exist") from error
        raise Unusable(
            f"there is no program {config.command!r}; install it, or give its full path as `command`"
        ) from error
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise Unusable(f"{config.command!r} cannot be started: {said}") from error


def _environment(config: ServerConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """Little of ours, and no secret of ours whatever it is called; then what the configuration says."""
    ours = {name: environ[name] for name in INHERITED if name in environ}
    return {name: value for name, value in ours.items() if redacted(value) == value} | config.env


def _decoded(line: bytes) -> Any:
    """A JSON-RPC message, also one whose text is not well-formed; None for anything else."""
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        # Half an emoji is no reason to lose the answer to a call.
        value = json.loads(line.decode(errors="replace"))
        return jsonrpc_message_adapter.validate_python(_well_formed(value), by_name=False)
    except (ValueError, RecursionError):
        return None


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_well_formed(item) for item in value]
    if isinstance(value, dict):
        return {_well_formed(key): _well_formed(item) for key, item in value.items()}
    return value


def _is_answer(item: SessionMessage) -> bool:
    from mcp_types import JSONRPCError, JSONRPCResponse

    return isinstance(item.message, JSONRPCResponse | JSONRPCError)


def _readable(words: bytes | bytearray) -> str:
    return bytes(words).decode(errors="replace").strip()
