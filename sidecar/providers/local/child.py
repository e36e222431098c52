"""One worker process as its parent sees it: started, asked, stopped, ended. Knows lines, not what they are for.

Nobody reads between two asks, for the worker only speaks when asked. One caller at a time. A caller that is cancelled
in the middle says stop and leaves: the worker sees to it that it falls silent, and the next caller waits for that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from anyio.abc import Process

from ...model.failures import ProviderFailed
from . import worker
from .files import LocalModel, unloadable

SILENT_S = worker.STOP_S + 0.5
"""When the worker must have fallen silent or ended by itself. Then it is killed."""

END_S = 1.0
"""A killed process is gone at once, unless the kernel is busy with it."""

LOAD_S = 300.0
"""A large model from a slow disk takes a minute or two."""

TAKE_S = 5.0
"""A worker that has nothing to do takes a prompt at once, even on a busy machine."""

INHERITED = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TEMP", "TMP"),
    *("SYSTEMROOT", "WINDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"),
)
"""All of our environment that the worker gets: API keys are none of its business."""


class Event(msgspec.Struct, frozen=True):
    """What the worker says; which members count depends on `event`."""

    event: str
    id: int = 0
    text: str = ""
    thought: str = ""
    calls: list[dict[str, Any]] = []
    finish: str | None = None
    usage: dict[str, Any] = {}
    kind: str = ""
    message: str = ""
    tokens: int | None = None


class Left(Exception):
    """The worker had nothing to do and went; whoever needs it starts another."""


class Child:
    """A worker that has or will have loaded `model`. `folder` is its own, and goes when it does."""

    def __init__(self, model: LocalModel, process: Process, folder: str, patience: float) -> None:
        self.model = model
        self._process = process
        self._patience = patience
        # The worker removes it once the model is loaded, but may be killed before, and we may end without killing it.
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._buffer = bytearray()
        self._ready = False
        self._asked = 0
        self._stopping = False
        self._decode = msgspec.json.Decoder(Event).decode

    @classmethod
    async def start(cls, model: LocalModel, idle_seconds: float, patience: float = 300) -> Child:
        """Start loading; returns at once."""
        folder = None
        try:
            folder = tempfile.mkdtemp(prefix="sidecar-model-")
            process = await _open_worker()
        except BaseException as error:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise _not_started(error, model) from error
            raise
        child = cls(model, process, folder, patience)
        options = {
            "path": model.path,
            "window": model.window,
            "threads": _threads(),
            "idle_seconds": idle_seconds,
            "parent": os.getpid(),
            "folder": folder,
        }
        try:
            await child._send({"load": options})
        except BaseException:
            await child.kill()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is known to be gone, of its own accord or not."""
        return self._process.returncode is not None

    async def ready(self) -> None:
        """Return when the model is loaded. May be cancelled and called again."""
        if self._ready:
            return
        with anyio.move_on_after(LOAD_S):
            event = await self._receive()
            if event.event == "ready":
                self._ready = True
                return
            raise _failed(event, self.model)
        raise ProviderFailed("timeout", f"The model {self.model.path} was not loaded in {LOAD_S:.0f} s")

    async def ask(self, body: dict[str, Any], calls: dict[str, Any] | None) -> None:
        """Ask for an answer, which `next` then gives to its end; who does not want the rest calls `stop`.

        Returns when the worker has taken it. One that hangs is found out here, before anybody waits for words.
        """
        self._asked += 1
        with anyio.move_on_after(TAKE_S):
            await self._send({"ask": {"id": self._asked, "body": body, "calls": calls}})
            while (await self._receive()).event != "taken":
                pass
            return
        raise self._hangs(TAKE_S)

    async def next(self) -> Event:
        """The next piece of the answer, or a sign that the worker is at it."""
        with anyio.move_on_after(self._patience):
            return await self._receive()
        raise self._hangs(self._patience)

    async def stop(self) -> None:
        """End the answer under way. Does not wait for it: whoever cancels must not be held up."""
        self._stopping = True
        with anyio.CancelScope(shield=True), anyio.move_on_after(END_S):
            await self._send({"stop": self._asked})

    async def is_usable(self) -> bool:
        """Whether it can be asked, after what was stopped has ended; if not, it must be killed."""
        if self.has_ended:
            return False
        if not self._stopping:
            return True
        try:
            with anyio.move_on_after(SILENT_S):
                while (await self._receive()).event not in ("end", "error"):
                    pass
                self._stopping = False
        except (ProviderFailed, Left):
            return False
        return not self._stopping

    async def kill(self) -> None:
        """End the process and wait until it is gone."""
        with anyio.CancelScope(shield=True):
            if not self.has_ended:
                # Not terminate: the library catches SIGTERM and lives on.
                with suppress(ProcessLookupError):
                    self._process.kill()
            with anyio.move_on_after(END_S):
                await self._process.aclose()
            self._remove_folder()

    async def _send(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        # When the pipe is broken, the worker's last line, which is still to be read, says more than that.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._process.stdin.send(msgspec.json.encode(line) + b"\n")

    async def _receive(self) -> Event:
        """Cancelled in the middle of a line, it keeps what it has for the next call."""
        assert self._process.stdout is not None
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            try:
                self._buffer += await self._process.stdout.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise await self._death() from None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        event = self._decode(line)
        if event.event == "idle":
            raise Left
        return event

    def _hangs(self, seconds: float) -> ProviderFailed:
        return ProviderFailed(
            "timeout",
            f"The process that runs the model has given no sign of life for {seconds:.0f} s",
            hint="The next prompt starts it again",
            params={"path": self.model.path},
            retryable=True,
        )

    async def _death(self) -> ProviderFailed:
        code: int | None = None
        with anyio.move_on_after(END_S):
            code = await self._process.wait()
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
        return ProviderFailed(
            "stream_cut",
            f"The process that runs the model {how}"
            + ("; the machine may be out of memory" if code == -9 else ""),
            hint="The next prompt starts it again; a smaller model needs less memory",
            params={"path": self.model.path, "code": code},
            retryable=True,
        )


async def _open_worker() -> Process:
    return await anyio.open_process(
        [sys.executable, "-P", worker.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in INHERITED if name in os.environ},
        # Ctrl-C in a terminal is for us to act on, not for the worker.
        start_new_session=True,
    )


def _threads() -> int:
    """One core is left for the sidecar and the app."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, cores - 1)


def _not_started(error: OSError, model: LocalModel) -> ProviderFailed:
    return ProviderFailed(
        "stream_cut",
        f"The process that runs the model could not be started: {error.strerror or error}",
        params={"path": model.path},
        retryable=True,
    )


def _failed(event: Event, model: LocalModel) -> ProviderFailed:
    if event.kind == "no_library":
        return ProviderFailed(
            "model_unknown",
            f"Models on this machine need the package xllamacpp, which is not installed ({event.message})",
            hint="Run `pip install 'sidecar[local]'`",
            action="choose_model",
            params={"package": "xllamacpp"},
        )
    return unloadable(model.path, event.message)
