"""One worker process, from its parent's side: start, ask, stop, kill. Knows lines, not their meaning.

Nothing is read between two requests, because the worker only writes when asked. One caller at a time. A caller that
is cancelled sends a stop and returns: the worker then falls silent, and the next caller waits for that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress

import anyio
import msgspec
from anyio.abc import Process

from ...model import JsonObject
from ...model.failures import ProviderFailed
from ...system.distribution import install_command
from ...system.helper_programs import helper_command
from ...system.processes import resident_bytes
from . import worker
from .files import LocalModel, unloadable_failure

SILENT_S = worker.STOP_S + 0.5
"""By then the worker must be silent or have exited. Otherwise it is killed."""

END_S = 1.0
"""A killed process is gone at once, unless the kernel is busy with it."""

LOAD_S = 300.0
"""A large model from a slow disk takes a minute or two."""

TAKE_S = 5.0
"""An idle worker accepts a prompt at once, even on a busy machine."""

INHERITED_VARIABLES = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TEMP", "TMP"),
    *("SYSTEMROOT", "WINDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"),
)
"""All that the worker inherits of our environment: it needs no API keys."""


class FunctionPiece(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class CallPiece(msgspec.Struct, frozen=True):
    """A piece of a tool call; those with the same `index` belong together."""

    index: int | None = None
    id: str | None = None
    function: FunctionPiece | None = None


class PromptTokensDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class WorkerUsage(msgspec.Struct, frozen=True):
    """Tokens, as llama.cpp counts them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptTokensDetails | None = None


class WorkerEvent(msgspec.Struct, frozen=True):
    """A message of the worker; `event` decides which fields count. `rate`: tokens a second."""

    event: str
    id: int = 0
    text: str = ""
    thought: str = ""
    calls: list[CallPiece] = []
    finish: str | None = None
    usage: WorkerUsage = WorkerUsage()
    rate: float | None = None
    kind: str = ""
    message: str = ""
    tokens: int | None = None


class WorkerExited(Exception):
    """The worker exited after being idle; the next request starts another."""


class ModelWorker:
    """A worker that loads or has loaded `model`. `folder` is private to it, and is deleted with it."""

    def __init__(self, model: LocalModel, process: Process, folder: str, patience: float) -> None:
        self.model = model
        self._process = process
        self._patience = patience
        # The worker removes it once the model is loaded, but it may be killed before, and we may end without killing
        # it.
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._buffer = bytearray()
        self._ready = False
        self._load_by = anyio.current_time() + LOAD_S
        self._asked = 0
        self._stopping = False
        self._decode = msgspec.json.Decoder(WorkerEvent).decode

    @classmethod
    async def start(cls, model: LocalModel, idle_seconds: float, patience: float = 300) -> ModelWorker:
        """Start loading; return at once."""
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
        options = worker.LoadOptions(
            path=model.path,
            window=model.window,
            threads=threads(),
            idle_seconds=idle_seconds,
            parent=os.getpid(),
            folder=folder,
        )
        try:
            await child._send(worker.ParentLine(load=options))
        except BaseException:
            await child.kill()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Return whether the process is known to have ended."""
        return self._process.returncode is not None

    @property
    def is_ready(self) -> bool:
        return self._ready

    async def ready(self) -> None:
        """Return when the model is loaded. May be cancelled and called again."""
        if self._ready:
            return
        # From the start of the worker on: who reports the progress of loading calls this several times.
        with anyio.CancelScope(deadline=self._load_by):
            event = await self._receive()
            if event.event == "ready":
                self._ready = True
                return
            raise _failure_of(event, self.model)
        raise ProviderFailed("timeout", f"The model {self.model.path} was not loaded in {LOAD_S:.0f} s")

    def loaded_bytes(self) -> int:
        """Return about how many bytes of the model are in memory; 0 where the system does not tell."""
        return min(resident_bytes(self.pid), self.model.bytes)

    async def ask(self, body: Mapping[str, object], calls: JsonObject | None) -> None:
        """Request an answer, which `next` then returns in pieces; a caller that does not need the rest calls `stop`.

        Returns when the worker has accepted it. A hanging worker is detected here, before anybody waits for tokens.
        """
        self._asked += 1
        with anyio.move_on_after(TAKE_S):
            await self._send(worker.ParentLine(ask=worker.WorkerQuestion(self._asked, body, calls)))
            # Pieces of an answer that was stopped may still be in the pipe.
            while (await self._receive()).event != "taken":
                pass
            return
        raise self._hang_failure(TAKE_S)

    async def next(self) -> WorkerEvent:
        """Return the next piece of the answer, or a sign of progress."""
        with anyio.move_on_after(self._patience):
            return await self._receive()
        raise self._hang_failure(self._patience)

    async def stop(self) -> None:
        """Stop the current answer. Does not wait for its end: a cancelled caller must not be delayed."""
        # Set before the first await: whoever asks next must wait for the end of this answer, even if sending
        # was cancelled.
        self._stopping = True
        with anyio.CancelScope(shield=True), anyio.move_on_after(END_S):
            await self._send(worker.ParentLine(stop=self._asked))

    async def is_usable(self) -> bool:
        """Return whether it can be used, after the stopped answer has ended; if not, it must be killed."""
        if self.has_ended:
            return False
        if not self._stopping:
            return True
        try:
            with anyio.move_on_after(SILENT_S):
                # Its last pieces are still in the pipe, and would be read as the beginning of the next
                # answer.
                while (await self._receive()).event not in ("end", "error"):
                    pass
                self._stopping = False
        except (ProviderFailed, WorkerExited):
            return False
        return not self._stopping

    def end(self) -> None:
        """Kill the process; who waits for it gets a failure."""
        if not self.has_ended:
            # Not terminate: the library catches SIGTERM and keeps running.
            with suppress(ProcessLookupError):
                self._process.kill()

    async def kill(self) -> None:
        """Kill the process and wait until it has ended."""
        with anyio.CancelScope(shield=True):
            self.end()
            with anyio.move_on_after(END_S):
                await self._process.aclose()
            self._remove_folder()

    async def _send(self, line: worker.ParentLine) -> None:
        assert self._process.stdin is not None
        # When the pipe is broken, the last line of the worker, which is still unread, is more informative.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._process.stdin.send(msgspec.json.encode(line) + b"\n")

    async def _receive(self) -> WorkerEvent:
        """Receive a line. When it is cancelled, the partial line is kept for the next call."""
        assert self._process.stdout is not None
        searched = 0
        # Nothing is taken from the buffer before the line is whole: a cancelled caller loses no bytes.
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            try:
                self._buffer += await self._process.stdout.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise await self._exit_failure() from None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        event = self._decode(line)
        if event.event == "idle":
            raise WorkerExited
        return event

    def _hang_failure(self, seconds: float) -> ProviderFailed:
        return ProviderFailed(
            "timeout",
            f"The process that runs the model has given no sign of life for {seconds:.0f} s",
            hint="The next prompt starts it again",
            params={"path": self.model.path},
            retryable=True,
        )

    async def _exit_failure(self) -> ProviderFailed:
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
        helper_command("sidecar.providers.local.worker", isolated=False),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ},
        # Ctrl-C in a terminal is handled by us, not by the worker.
        start_new_session=True,
    )


def threads() -> int:
    """One core is reserved for the sidecar and the app."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, cores - 1)


def _not_started(error: OSError, model: LocalModel) -> ProviderFailed:
    return ProviderFailed(
        "stream_cut",
        f"The process that runs the model could not be started: {error.strerror or error}",
        params={"path": model.path},
        retryable=True,
    )


def _failure_of(event: WorkerEvent, model: LocalModel) -> ProviderFailed:
    if event.kind == "no_library":
        return ProviderFailed(
            "model_unknown",
            f"Models on this machine need the package xllamacpp, which is not installed ({event.message})",
            hint=f"Run `{install_command('local')}`",
            action="choose_model",
            params={"package": "xllamacpp"},
        )
    return unloadable_failure(model.path, event.message)
