"""`echo:` streams the prompt's text back word by word, unaltered. For trials, tests and benchmarks."""

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

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion:
        words = _WORDS.findall(_rest(request))
        for word in words:
            await emit(TextDelta(word))
            await anyio.lowlevel.checkpoint()
        return Completion("end_turn", TokenUsage(input=len(words), output=len(words), cached=0))

    def models(self) -> list[ModelEntry]:
        return [ModelEntry(id="echo:", name="Echo", provider="echo")]


def _rest(request: ModelRequest) -> str:
    """The last prompt's text, without what an interrupted turn has said of it already."""
    text = next((m.text for m in reversed(request.messages) if isinstance(m, UserMessage)), "")
    last = request.messages[-1]
    if isinstance(last, AssistantMessage) and text.startswith(last.text):
        return text[len(last.text) :]
    return text
