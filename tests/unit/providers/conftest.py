"""A scripted provider on a file of the test's own, and requests as the engine makes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.model.content import Block
from sidecar.providers.base import Completion, Message, ModelRequest, Provider, ReplyPart, UserMessage
from sidecar.providers.scripted import ScriptedProvider

Script = Callable[..., ScriptedProvider]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Call it with replies to get a provider that plays them."""

    def write(*replies: Any, **fields: Any) -> ScriptedProvider:
        path = tmp_path / "script.json"
        path.write_text(json.dumps({"replies": list(replies), **fields}))
        return ScriptedProvider(str(path))

    return write


def said(text: str) -> UserMessage:
    return UserMessage([Block(type="text", text=text)])


class Played:
    """What one request brought."""

    def __init__(self) -> None:
        self.chunks: list[ReplyPart] = []

    async def take(self, chunk: ReplyPart) -> None:
        self.chunks.append(chunk)


async def ask(provider: Provider, *messages: str | Message) -> tuple[list[ReplyPart], Completion]:
    """One request with these messages; a text is what the user says."""
    played = Played()
    request = ModelRequest("script", [said(m) if isinstance(m, str) else m for m in messages])
    completion = await provider.stream(request, played.take)
    return played.chunks, completion


async def text(provider: Provider, *messages: str | Message) -> str:
    """All text that one request brought."""
    chunks, _ = await ask(provider, *messages)
    return "".join(getattr(chunk, "text", "") for chunk in chunks)
