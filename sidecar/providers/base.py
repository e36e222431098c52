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
    problem: str | None = None
    """Why the call cannot be run as the model wrote it; the model is told."""


Chunk = TextDelta | ThoughtDelta | ToolCall


class UserMessage(msgspec.Struct, frozen=True):
    content: list[Block]

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if block.type == "text" and block.text)


class Verbatim(msgspec.Struct, frozen=True):
    """A reply as its provider spelled it, for signed thoughts and the like, which must go back unaltered."""

    provider: str
    model: str
    parts: list[dict[str, Any]]


class AssistantMessage(msgspec.Struct, frozen=True):
    """`verbatim` stands for the whole message with the provider and model that wrote it, and with no other."""

    text: str
    tool_calls: list[ToolCall] = []
    verbatim: Verbatim | None = None


class ToolResult(msgspec.Struct, frozen=True):
    """What a call brought. `source` is where the index has it; no provider is told but by the text."""

    call_id: str
    text: str
    failed: bool = False
    source: str | None = None


Message = UserMessage | AssistantMessage | ToolResult


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool that the model may call; `input_schema` is a JSON Schema of an object."""

    name: str
    description: str
    input_schema: dict[str, Any]


class ModelRequest(msgspec.Struct, frozen=True):
    """`media` holds the bytes of the blobs that the messages name.

    In tokens: `window` is what the whole may take, `room` what is left of it for the answer, `max_output` what
    the user allows for the answer, if anything. `cache_key` is the same for all requests of one chat.
    """

    model: str
    messages: list[Message]
    effort: str | None = None
    instructions: str | None = None
    tools: list[ToolSpec] = []
    media: dict[str, bytes] = {}
    window: int | None = None
    room: int | None = None
    max_output: int | None = None
    cache_key: str | None = None


class TokenUsage(msgspec.Struct, frozen=True):
    """`input` counts all that was sent, `cached` the part of it that the provider had kept."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None


class Completion(msgspec.Struct, frozen=True):
    """How one request to the model ended."""

    stop: StopReason
    usage: TokenUsage = TokenUsage()
    verbatim: Verbatim | None = None


class ModelEntry(msgspec.Struct, frozen=True):
    """A model as the app's picker shows it; what nobody knows of it is None."""

    id: str
    name: str
    provider: str
    window: int | None = None
    max_output: int | None = None
    modalities: tuple[str, ...] | None = ("text",)
    efforts: tuple[str, ...] | None = ()
    thinking: str | None = None
    """How Anthropic's models are told to think: "budget" or "adaptive"."""
    reasoning: bool = False
    """Whether OpenAI's Responses API gives this model's thoughts back, encrypted."""
    prices: dict[str, float] | None = None
    available: bool = True
    reason: str | None = None


Emit = Callable[[Chunk], Awaitable[None]]


class Provider(Protocol):
    """`stream` awaits `emit` for every piece, in order, and returns how it ended or raises ProviderFailed.

    A failure that is `retryable` may be tried again up to `retries` times, as long as nothing was emitted.
    `reads_history` is False for providers that look at the present turn only, so that nobody need load what
    they do not read. `models` may ask over the network, and raises ProviderFailed when that fails; `known` is
    what can be told of a model at once, without asking; `listed` what there would be, could it be asked.
    """

    reads_history: bool

    @property
    def retries(self) -> int: ...

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion: ...

    async def warm(self, model: str) -> None:
        """Make ready for a prompt that may come soon; what goes wrong is told to the prompt."""

    async def models(self) -> list[ModelEntry]: ...

    def known(self, model: str) -> ModelEntry: ...

    def listed(self, reason: str) -> list[ModelEntry]: ...
