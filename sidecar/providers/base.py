"""The interface between an engine and whoever answers. A provider knows no chat, no journal and no wire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

import msgspec

from ..model.content import Block

StopReason = Literal["end_turn", "max_tokens", "refusal", "tool_calls"]


class TextDelta(msgspec.Struct, frozen=True):
    text: str


class ThoughtDelta(msgspec.Struct, frozen=True):
    text: str


class ToolCall(msgspec.Struct, frozen=True):
    """The model wants a tool run; its result goes into the next request under the same id."""

    id: str
    name: str
    input: dict[str, Any]


Chunk = TextDelta | ThoughtDelta | ToolCall


class UserMessage(msgspec.Struct, frozen=True):
    content: list[Block]

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if block.type == "text" and block.text)


class AssistantMessage(msgspec.Struct, frozen=True):
    text: str
    tool_calls: list[ToolCall] = []


class ToolResult(msgspec.Struct, frozen=True):
    call_id: str
    text: str
    failed: bool = False


Message = UserMessage | AssistantMessage | ToolResult


class ModelRequest(msgspec.Struct, frozen=True):
    model: str
    messages: list[Message]
    effort: str | None = None


class TokenUsage(msgspec.Struct, frozen=True):
    input: int | None = None
    output: int | None = None
    cached: int | None = None


class Completion(msgspec.Struct, frozen=True):
    """How one request to the model ended."""

    stop: StopReason
    usage: TokenUsage = TokenUsage()


class ModelEntry(msgspec.Struct, frozen=True):
    """A model as the app's picker shows it; `window` and `max_output` are None where nobody knows."""

    id: str
    name: str
    provider: str
    window: int | None = None
    max_output: int | None = None
    modalities: tuple[str, ...] = ("text",)
    efforts: tuple[str, ...] = ()
    available: bool = True
    reason: str | None = None


Emit = Callable[[Chunk], Awaitable[None]]


class Provider(Protocol):
    """`stream` awaits `emit` for every piece, in order, and returns how it ended or raises ProviderFailed.

    `reads_history` is False for providers that look at the present turn only, so that the engine need not
    load what nobody reads.
    """

    reads_history: bool

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion: ...

    def models(self) -> list[ModelEntry]: ...
