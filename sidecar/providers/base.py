"""The interface between an engine and a model provider. A provider knows no chat, no journal and no wire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

import msgspec

from ..media import AUDIO_TYPES, IMAGE_TYPES
from ..model import JsonObject
from ..model.content import Block

StopReason = Literal["end_turn", "max_tokens", "refusal", "tool_calls"]


class TextDelta(msgspec.Struct, frozen=True):
    text: str


class ThoughtDelta(msgspec.Struct, frozen=True):
    text: str


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call of the model; its result goes into the next request under the same id."""

    id: str
    name: str
    input: JsonObject
    problem: str | None = None
    """Why the call cannot run as the model wrote it; sent to the model."""


ReplyPart = TextDelta | ThoughtDelta | ToolCall


class UserMessage(msgspec.Struct, frozen=True):
    content: list[Block]

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if block.type == "text" and block.text)


class Verbatim(msgspec.Struct, frozen=True):
    """A reply in its provider's own format, for signed thoughts and the like, which must be sent back unaltered."""

    provider: str
    model: str
    parts: list[JsonObject]


class AssistantMessage(msgspec.Struct, frozen=True):
    """`verbatim` replaces the whole message for the provider and model that wrote it, and for no other."""

    text: str
    tool_calls: list[ToolCall] = []
    verbatim: Verbatim | None = None


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a call. `source` is its id in the index, which providers see only in the text. `said` is the text
    without its fence, if it has one. `content` holds the images and audio that the tool returned.
    """

    call_id: str
    text: str
    failed: bool = False
    source: str | None = None
    said: str | None = None
    content: list[Block] = []


Message = UserMessage | AssistantMessage | ToolResult


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool that the model may call; `input_schema` is a JSON Schema of an object."""

    name: str
    description: str
    input_schema: JsonObject


class ModelRequest(msgspec.Struct, frozen=True):
    """`media` holds the bytes of the blobs that the messages name.

    In tokens: `window` is the context window, `answer_space` what is left of it for the answer, `max_output` the
    user's limit for the answer, if any. `cache_key` is the same for all requests of one chat.
    """

    model: str
    messages: list[Message]
    effort: str | None = None
    instructions: str | None = None
    tools: list[ToolSpec] = []
    media: dict[str, bytes] = {}
    window: int | None = None
    answer_space: int | None = None
    max_output: int | None = None
    cache_key: str | None = None


class TokenUsage(msgspec.Struct, frozen=True):
    """`input` counts all that was sent, `cached` the part of it that the provider had cached."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None


class Completion(msgspec.Struct, frozen=True):
    """How one request to the model ended."""

    stop: StopReason
    usage: TokenUsage = TokenUsage()
    verbatim: Verbatim | None = None


class ModelEntry(msgspec.Struct, frozen=True):
    """A model as the app's picker shows it; unknown properties are None."""

    id: str
    name: str
    provider: str
    window: int | None = None
    named_window: int | None = None
    """The window that the provider named when it refused a request as too large: no setting exceeds it."""
    max_output: int | None = None
    modalities: tuple[str, ...] | None = ("text",)
    media_types: tuple[str, ...] = (*IMAGE_TYPES, *AUDIO_TYPES)
    """The formats of images and audio that its API accepts."""
    efforts: tuple[str, ...] | None = ()
    thinking: str | None = None
    """How thinking is requested from Anthropic's models: "budget" or "adaptive"."""
    reasoning: bool = False
    """Whether OpenAI's Responses API returns the thoughts of this model, encrypted."""
    prices: dict[str, float] | None = None
    takes_tools: bool | None = None
    thinks: bool | None = None
    available: bool = True
    reason: str | None = None


Emit = Callable[[ReplyPart], Awaitable[None]]


class Provider(Protocol):
    """`stream` awaits `emit` for every piece, in order, and returns how it ended or raises ProviderFailed.

    A failure that is `retryable` may be retried up to `retries` times, as long as nothing was emitted.
    `reads_history` is False for providers that read the current turn only, so that the history need not be loaded.
    `models` may use the network, and raises ProviderFailed on failure; `model_entry` returns what is known of a model
    without I/O; `offline_entries` the models to show when the provider cannot be reached.
    """

    reads_history: bool

    @property
    def retries(self) -> int: ...

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion: ...

    async def warm(self, model: str) -> None:
        """Prepare for a prompt that may come soon; errors are reported to the prompt."""

    async def models(self) -> list[ModelEntry]: ...

    def model_entry(self, model: str) -> ModelEntry: ...

    def offline_entries(self, reason: str) -> list[ModelEntry]: ...
