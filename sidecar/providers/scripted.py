"""`scripted:PATH` plays a file of replies, delays, tool calls and faults, without key and network.

For app developers who test their apps, and for our own tests. docs/scripted.md describes the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

import anyio
import anyio.lowlevel

from ..model.failures import ProviderFailed
from . import script_file
from .base import (
    Completion,
    Emit,
    ModelEntry,
    ModelRequest,
    ReplyPart,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    ToolCall,
)
from .echo import EchoProvider
from .endpoint import DEFAULT_RETRIES
from .script_format import Chunking, ScriptedCall, ScriptedFault, ScriptedStep, ScriptedUsage
from .script_progress import ScriptPosition, ScriptProgress, prompt_of

_WORDS = re.compile(r"\s*\S+|\s+")


class ScriptedProvider:
    """The script is read at the first request; an invalid one again at the next, so that it can be fixed."""

    reads_history = False
    retries = DEFAULT_RETRIES

    def __init__(self, path: str) -> None:
        self._name = path
        self._path = os.path.abspath(os.path.expanduser(path))
        self._progress: ScriptProgress | None = None
        self._calls = 0
        self._given: set[str] = set()

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion:
        self._progress = self._progress or ScriptProgress(script_file.load(self._path))
        place = self._progress.take(request)
        if place is not None:
            return await self._play(self._progress, place, request, emit)
        if self._progress.script.on_exhausted == "echo":
            return await EchoProvider().stream(request, emit)
        raise self._no_reply_left(prompt_of(request))

    async def warm(self, model: str) -> None:
        return

    async def models(self) -> list[ModelEntry]:
        return [self.model_entry(self._name)]

    def model_entry(self, model: str) -> ModelEntry:
        found = os.path.isfile(self._path)
        return ModelEntry(
            id=f"scripted:{self._name}",
            name=f"Script {os.path.basename(self._path)}",
            provider="scripted",
            takes_tools=True,
            thinks=True,
            available=found,
            reason=None if found else "model_unknown",
        )

    def offline_entries(self, reason: str) -> list[ModelEntry]:
        return [self.model_entry(self._name)]

    async def _play(
        self, progress: ScriptProgress, place: ScriptPosition, request: ModelRequest, emit: Emit
    ) -> Completion:
        usage = TokenUsage()
        for step in place.steps:
            await anyio.lowlevel.checkpoint()
            match step:
                case ScriptedStep(text=str(text)):
                    await _say(step, text, TextDelta, emit)
                case ScriptedStep(thought=str(thought)):
                    await _say(step, thought, ThoughtDelta, emit)
                case ScriptedStep(tool_call=ScriptedCall()) | ScriptedStep(tool_calls=list()):
                    progress.stop_at_calls(place, await self._call(step, emit))
                    return Completion("tool_calls", usage)
                case ScriptedStep(error=ScriptedFault() as fault):
                    goes_on = progress.stop_at_error(place, request)
                    raise fault.failure(is_final=not goes_on)
                case ScriptedStep(hang=True):
                    await anyio.sleep_forever()
                case ScriptedStep(usage=ScriptedUsage() as spent):
                    usage = TokenUsage(spent.input, spent.output, spent.cached)
                case ScriptedStep(stop=str(stop)):
                    return Completion(stop, usage)
                case ScriptedStep(delay_ms=int(delay)):
                    await anyio.sleep(delay / 1000)
        return Completion("end_turn", usage)

    async def _call(self, step: ScriptedStep, emit: Emit) -> list[str]:
        """Emit the calls of the step, each under an id that this provider has not used before."""
        calls = [ToolCall(self._id(call), call.name, call.input) for call in step.calls]
        for call in calls:
            await emit(call)
        return [call.id for call in calls]

    def _id(self, call: ScriptedCall) -> str:
        self._calls += 1
        if call.id is None:
            return f"scripted-{self._calls}"
        id = f"{call.id}-{self._calls}" if call.id in self._given else call.id
        self._given.add(call.id)
        return id

    def _no_reply_left(self, prompt: str) -> ProviderFailed:
        return ProviderFailed(
            "bad_reply",
            f"{self._path}: the script has no reply left for the prompt {prompt[:60]!r}",
            hint='Add a reply, raise its `times`, or set "onExhausted" to "repeat" or "echo"',
            params={"path": self._path},
        )


async def _say(step: ScriptedStep, text: str, delta: Callable[[str], ReplyPart], emit: Emit) -> None:
    """Emit the text in pieces; each yields to other tasks, also without a delay between them."""
    for index, piece in enumerate(_pieces(text, step.chunk or "word")):
        if index:
            await anyio.sleep((step.delay_ms or 0) / 1000)
        await emit(delta(piece))


def _pieces(text: str, chunk: Chunking) -> Iterable[str]:
    if chunk == "word":
        return _WORDS.findall(text)
    size = 1 if chunk == "char" else chunk
    return [text[start : start + size] for start in range(0, len(text), size)]
