"""Asks a provider, as short as a test wants it."""

from __future__ import annotations

from typing import Any

from sidecar.model.content import Block
from sidecar.providers.base import Completion, ModelRequest, ReplyPart, TextDelta, UserMessage
from sidecar.providers.local.provider import LocalProvider


def request(text: str, model: str = "tiny", **more: Any) -> ModelRequest:
    return ModelRequest(model, [UserMessage([Block(type="text", text=text)])], **more)


async def ask(
    provider: LocalProvider, text: str, model: str = "tiny", **more: Any
) -> tuple[list[ReplyPart], Completion]:
    chunks: list[ReplyPart] = []

    async def emit(chunk: ReplyPart) -> None:
        chunks.append(chunk)

    done = await provider.stream(request(text, model, **more), emit)
    return chunks, done


def text_of(chunks: list[ReplyPart]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
