"""`echo:` streams the text of the prompt back word by word, unaltered. For trials, tests and benchmarks."""

from __future__ import annotations

import re

import anyio.lowlevel

from .base import (
    AssistantMessage,
    Completion,
    Emit,
    ModelEntry,
    ModelRequest,
    TextDelta,
    TokenUsage,
    UserMessage,
)

_WORDS = re.compile(r"\s*\S+|\s+$")


class EchoProvider:
    reads_history = False
    retries = 0

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion:
        words = 0
        for word in _WORDS.finditer(_remaining_text(request)):
            words += 1
            await emit(TextDelta(word.group()))
            await anyio.lowlevel.checkpoint()
        return Completion("end_turn", TokenUsage(input=words, output=words, cached=0))

    async def warm(self, model: str) -> None:
        return

    async def models(self) -> list[ModelEntry]:
        return [self.model_entry("")]

    def model_entry(self, model: str) -> ModelEntry:
        return ModelEntry(id="echo:", name="Echo", provider="echo", takes_tools=False, thinks=False)

    def offline_entries(self, reason: str) -> list[ModelEntry]:
        return [self.model_entry("")]


def _remaining_text(request: ModelRequest) -> str:
    """Return the text of the last prompt, without what an interrupted turn has already echoed."""
    text = next((m.text for m in reversed(request.messages) if isinstance(m, UserMessage)), "")
    last = request.messages[-1]
    if isinstance(last, AssistantMessage) and text.startswith(last.text):
        return text[len(last.text) :]
    return text
