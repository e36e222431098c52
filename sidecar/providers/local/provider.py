"""`local:` answers with a model on this machine: `local:smollm2` that was fetched, or `local:/path/to/any.gguf`.

It owns at most one worker process, which has one model loaded: memory is what runs out first. Requests take turns in
the order in which they came; a request for another model ends the worker and starts one with that model.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ...model.failures import ProviderFailed
from ..base import Completion, Emit, ModelEntry, ModelRequest, StopReason, TokenUsage
from . import files
from .child import Child, Event, Left
from .files import LocalModel
from .prompt import Answer, Spelled, spell
from .shelf import Found, Shelf, Unusable
from .worker import MAX_LINE_BYTES

MAX_WAITING = 32
"""More chats than a person has open; each waits for the answers before it, and the last would wait for minutes."""

MAX_BODY_BYTES = MAX_LINE_BYTES - 1024
"""What the worker reads as one line, with room for the envelope."""


class LocalProvider:
    """`aclose` ends the worker; without it the worker ends with us, or when it had nothing to do for a while.

    `patience` is how long a worker may give no sign of life, in seconds: it gives one for every few tokens that it
    reads or writes, however slow the machine is.
    """

    reads_history = True
    retries = 1

    def __init__(self, models_dir: str, idle_seconds: float = 300, patience: float = 300) -> None:
        self._shelf = Shelf(models_dir)
        self._idle_seconds = idle_seconds
        self._patience = patience
        self._turns = anyio.Lock()
        self._waiting = 0
        self._child: Child | None = None
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
        """Load `model`, so that the first prompt need not wait. What goes wrong is told to the prompt."""
        try:
            # Not in turn: the window of a model is wanted while another answers.
            facts = await self._shelf.read(model)
            async with self._turns:
                await self._loaded(facts)
        except (ProviderFailed, Left):
            return

    async def models(self) -> list[ModelEntry]:
        found = await self._shelf.refresh()
        installed = await anyio.to_thread.run_sync(_library_is_there)
        return [_entry(name, each, installed) for name, each in found.items()]

    def known(self, model: str) -> ModelEntry:
        """What was read of the file before; `models`, `warm` and `stream` read it."""
        return _entry(model, self._shelf.told(model))

    def listed(self, reason: str) -> list[ModelEntry]:
        return [self.known(name) for name in self._shelf.listed]

    async def aclose(self) -> None:
        """End the worker now, and start none any more: whoever asks or waits is refused."""
        self._is_closed = True
        await self._end_child()

    async def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.kill()

    async def _answer(self, request: ModelRequest, emit: Emit) -> Completion:
        model = await self._shelf.read(request.model)
        spelled = spell(request, model)
        if len(msgspec.json.encode(spelled)) > MAX_BODY_BYTES:
            raise _too_long(None, model)
        for _ in range(2):
            # A worker goes for want of work, perhaps at the very moment that there is some; then nothing is emitted.
            with suppress(Left):
                return await self._asked(await self._loaded(model), spelled, request, emit)
        raise ProviderFailed("stream_cut", "The process that runs the model left too early", retryable=True)

    async def _loaded(self, model: LocalModel) -> Child:
        """The worker with this model; when cancelled, it goes on loading for whoever comes next."""
        child = self._child
        if child is not None and (child.model != model or not await child.is_usable()):
            await self._end_child()
            child = None
        if child is None and not self._is_closed:
            child = self._child = await Child.start(model, self._idle_seconds, self._patience)
        if child is None or self._is_closed:
            await self._end_child()
            raise ProviderFailed("stream_cut", "The models on this machine have been closed")
        try:
            await child.ready()
        except (ProviderFailed, Left):
            await self._end_child()
            raise
        return child

    async def _asked(self, child: Child, spelled: Spelled, request: ModelRequest, emit: Emit) -> Completion:
        """One question and its whole answer. However this ends, the worker falls silent or is gone."""
        answer = Answer(request, in_text=spelled.calls is not None)
        ended = False
        try:
            await child.ask(spelled.body, spelled.calls)
            while not ended:
                event = await child.next()
                ended = event.event in ("end", "error")
                for chunk in answer.close() if ended else answer.take(event):
                    await emit(chunk)
        except (ProviderFailed, Left):
            await self._end_child()
            raise
        finally:
            if not ended and self._child is child:
                await child.stop()
        return _completion(event, answer, child.model)


def _completion(event: Event, answer: Answer, model: LocalModel) -> Completion:
    if event.event == "error":
        if event.kind == "exceed_context_size_error":
            raise _too_long(event.tokens, model)
        raise ProviderFailed("bad_reply", f"The model on this machine failed: {event.message[:300]}")
    if event.finish is None:
        raise ProviderFailed("stream_cut", "The model on this machine broke off", retryable=True)
    stop: StopReason = "max_tokens" if event.finish == "length" else "end_turn"
    return Completion("tool_calls" if answer.called else stop, _usage(event.usage))


def _usage(told: dict[str, Any]) -> TokenUsage:
    details = told.get("prompt_tokens_details") or {}
    return TokenUsage(told.get("prompt_tokens"), told.get("completion_tokens"), details.get("cached_tokens"))


def _too_long(tokens: int | None, model: LocalModel) -> ProviderFailed:
    length = "" if tokens is None else f" ({tokens} tokens)"
    return ProviderFailed(
        "window",
        f"The chat{length} is longer than the {model.window} tokens that {model.title} can read",
        action="compact",
        params={"window": model.window} | ({} if tokens is None else {"tokens": tokens}),
    )


def _entry(model: str, found: Found | None, installed: bool = True) -> ModelEntry:
    title = files.TITLES.get(model) or model.rpartition("/")[2] or "Local model"
    entry = ModelEntry(id=f"local:{model}", name=title, provider="local")
    if isinstance(found, LocalModel):
        entry = replace(entry, name=found.title, window=found.window, max_output=found.max_output)
    reason = found.reason if isinstance(found, Unusable) else None if installed else "model_unknown"
    return replace(entry, available=reason is None, reason=reason)


def _library_is_there() -> bool:
    from importlib.util import find_spec

    return find_spec("xllamacpp") is not None
