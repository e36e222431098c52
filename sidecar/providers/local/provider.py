"""`local:` answers with a model on this machine: a downloaded `local:smollm2`, or `local:/path/to/any.gguf`.

It owns at most one worker process with one loaded model, because memory is the scarcest resource. Requests run in the
order of arrival; a request for another model ends the worker and starts one with that model.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ...model.failures import ProviderFailed
from ..base import Completion, Emit, ModelEntry, ModelRequest, StopReason, TokenUsage
from . import files, speed
from .child import ModelWorker, WorkerEvent, WorkerExited, WorkerUsage
from .downloads import ModelFile, ModelFiles, UnusableFile
from .files import LocalModel
from .prompt import ParsedAnswer, WorkerRequest, manner_of, worker_request
from .worker import MAX_LINE_BYTES

MAX_WAITING = 32
"""More chats than a person has open; each waits for the answers before it, and the last would wait for minutes."""

MAX_BODY_BYTES = MAX_LINE_BYTES - 1024
"""What the worker reads as one line, with space for the envelope."""


REPORT_S = 0.5
"""Between two reports of how far a model is loaded. Most are loaded sooner, and need no progress bar."""

ReportLoading = Callable[[str, int, int], None]
"""Receives the name of a model that is being loaded, how many of its bytes are in memory, and how many it has."""


class LocalProvider:
    """`aclose` ends the worker; without it the worker ends with us, or after being idle for a while.

    `patience` is how long a worker may be without progress, in seconds: it reports progress every few tokens that it
    reads or writes, however slow the machine is.
    """

    reads_history = True
    retries = 1

    def __init__(
        self,
        models_dir: str,
        idle_seconds: float = 300,
        patience: float = 300,
        report_loading: ReportLoading = lambda model, done, total: None,
    ) -> None:
        self._models_dir = models_dir
        self._report_loading = report_loading
        self._files = ModelFiles(models_dir)
        self._idle_seconds = idle_seconds
        self._patience = patience
        self._turns = anyio.Lock()
        self._waiting = 0
        self._child: ModelWorker | None = None
        self._cancelled: ModelWorker | None = None
        self._is_closed = False

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion:
        if self._waiting >= MAX_WAITING:
            raise ProviderFailed(
                "overloaded",
                f"{MAX_WAITING} prompts wait for the model on this machine already",
                retryable=True,
                retry_after_ms=5000,
            )
        self._waiting += 1
        try:
            async with self._turns:
                return await self._answer(request, emit)
        finally:
            self._waiting -= 1

    async def warm(self, model: str) -> None:
        """Load `model`, so that the first prompt need not wait. Errors are reported to the prompt."""
        try:
            # Without the lock: the window of a model is needed while another answers.
            facts = await self._files.read(model)
            async with self._turns:
                await self._load(facts)
        except (ProviderFailed, WorkerExited):
            return

    async def models(self) -> list[ModelEntry]:
        found = await self._files.refresh()
        installed = await anyio.to_thread.run_sync(_is_library_installed)
        return [_entry(name, each, installed) for name, each in found.items()]

    def model_entry(self, model: str) -> ModelEntry:
        """Return what was read of the file before; `models`, `warm` and `stream` read it."""
        return _entry(model, self._files.cached_file(model))

    def offline_entries(self, reason: str) -> list[ModelEntry]:
        return [self.model_entry(name) for name in self._files.listed]

    def cancel_loading(self, model: str) -> None:
        """Stop loading a model, if it is being loaded; a prompt that waits for it fails."""
        child = self._child
        if child is not None and child.model.name == model and not child.is_ready:
            self._cancelled = child
            child.end()

    async def aclose(self) -> None:
        """End the worker now, and start none any more: running and waiting requests are refused."""
        self._is_closed = True
        await self._end_child()

    async def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.kill()

    async def _answer(self, request: ModelRequest, emit: Emit) -> Completion:
        model = await self._files.read(request.model)
        spelled = worker_request(request, model)
        if len(msgspec.json.encode(spelled)) > MAX_BODY_BYTES:
            raise _too_long(None, model)
        for _ in range(2):
            # An idle worker may exit at the very moment of a new request; then nothing was emitted, and a retry is
            # safe.
            with suppress(WorkerExited):
                return await self._run_request(await self._load(model), spelled, request, emit)
        raise ProviderFailed("stream_cut", "The process that runs the model left too early", retryable=True)

    async def _load(self, model: LocalModel) -> ModelWorker:
        """Return the worker with this model; when cancelled, loading continues for the next request."""
        child = self._child
        if child is not None and (child.model != model or not await child.is_usable()):
            await self._end_child()
            child = None
        if child is None and not self._is_closed:
            child = self._child = await ModelWorker.start(model, self._idle_seconds, self._patience)
        if child is None or self._is_closed:
            await self._end_child()
            raise ProviderFailed("stream_cut", "The models on this machine have been closed")
        try:
            await self._wait_until_ready(child)
        except (ProviderFailed, WorkerExited) as error:
            await self._end_child()
            raise _loading_cancelled(child.model) if self._cancelled is child else error from error
        return child

    async def _wait_until_ready(self, child: ModelWorker) -> None:
        was_reported = False
        while not child.is_ready:
            with anyio.move_on_after(REPORT_S):
                await child.ready()
            if was_reported or not child.is_ready:
                was_reported, total = True, child.model.bytes
                self._report_loading(
                    child.model.name, total if child.is_ready else child.loaded_bytes(), total
                )

    async def _run_request(
        self, child: ModelWorker, spelled: WorkerRequest, request: ModelRequest, emit: Emit
    ) -> Completion:
        """Run one request to its end. However this ends, the worker is silent or killed."""
        answer = ParsedAnswer(request, in_text=spelled.calls is not None)
        ended = False
        try:
            await child.ask(spelled.body, spelled.calls)
            while not ended:
                event = await child.next()
                ended = event.event in ("end", "error")
                for chunk in answer.close() if ended else answer.take(event):
                    await emit(chunk)
        except (ProviderFailed, WorkerExited):
            await self._end_child()
            raise
        finally:
            if not ended and self._child is child:
                await child.stop()
        self._note_speed(event, child.model)
        return _completion(event, answer, child.model)

    def _note_speed(self, event: WorkerEvent, model: LocalModel) -> None:
        written = event.usage.completion_tokens
        if event.rate and written and os.path.dirname(model.path) == os.path.abspath(self._models_dir):
            speed.note(model.path, written, event.rate)


def _completion(event: WorkerEvent, answer: ParsedAnswer, model: LocalModel) -> Completion:
    if event.event == "error":
        if event.kind == "exceed_context_size_error":
            raise _too_long(event.tokens, model)
        raise ProviderFailed("bad_reply", f"The model on this machine failed: {event.message[:300]}")
    if event.finish is None:
        raise ProviderFailed("stream_cut", "The model on this machine broke off", retryable=True)
    stop: StopReason = "max_tokens" if event.finish == "length" else "end_turn"
    return Completion("tool_calls" if answer.called else stop, _usage(event.usage))


def _usage(counted: WorkerUsage) -> TokenUsage:
    details = counted.prompt_tokens_details
    return TokenUsage(
        counted.prompt_tokens, counted.completion_tokens, details.cached_tokens if details else None
    )


def _loading_cancelled(model: LocalModel) -> ProviderFailed:
    return ProviderFailed(
        "stream_cut",
        f"Loading the model {model.title} was cancelled",
        hint="The next prompt loads it again",
        params={"path": model.path},
    )


def _too_long(tokens: int | None, model: LocalModel) -> ProviderFailed:
    length = "" if tokens is None else f" ({tokens} tokens)"
    return ProviderFailed(
        "window",
        f"The chat{length} is longer than the {model.window} tokens that {model.title} can read",
        action="compact",
        params={"window": model.window} | ({} if tokens is None else {"tokens": tokens}),
    )


def _entry(model: str, found: ModelFile | None, installed: bool = True) -> ModelEntry:
    title = files.TITLES.get(model) or model.rpartition("/")[2] or "Local model"
    entry = ModelEntry(id=f"local:{model}", name=title, provider="local")
    if isinstance(found, LocalModel):
        entry = replace(entry, name=found.title, window=found.window, max_output=found.max_output)
        entry = replace(entry, takes_tools=manner_of(found).has_tools)
    reason = found.reason if isinstance(found, UnusableFile) else None if installed else "model_unknown"
    return replace(entry, available=reason is None, reason=reason)


def _is_library_installed() -> bool:
    return find_spec("xllamacpp") is not None
