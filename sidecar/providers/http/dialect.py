"""One API, without I/O: how a request is encoded, and how its replies are decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from ..base import (
    Completion,
    ModelEntry,
    ModelRequest,
    ReplyPart,
    StopReason,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    ToolCall,
    Verbatim,
)
from ..endpoint import Endpoint
from ..wording import (
    Media,
    ModelPart,
    ResultPieces,
    Text,
    UserPart,
    content_pieces,
    parts,
    result_pieces,
)
from .errors import ProviderError
from .sse import SseEvent

M = TypeVar("M")


class StreamError(Exception):
    """The provider reported an error within its reply."""

    def __init__(self, trouble: ProviderError) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


class MalformedReply(Exception):
    """The reply breaks the rules of the API."""


class ReplyReader:
    """A reply whose events are still coming in. `ended` is set by its last event; a truncated reply never has it."""

    def __init__(self) -> None:
        self.ended = False
        self.stop: StopReason = "end_turn"
        self.usage = TokenUsage()
        self.calls = 0
        self._said = False

    def take(self, event: SseEvent) -> list[ReplyPart]:
        """Return the chunks of one event."""
        raise NotImplementedError

    def close(self) -> list[ReplyPart]:
        """Return what was buffered at the end of the stream. Sets `ended` when the reply is complete."""
        return []

    def verbatim(self) -> Verbatim | None:
        """Return the whole reply in the format of the API, when it must be sent back like that."""
        return None

    def note(self, chunks: list[ReplyPart]) -> list[ReplyPart]:
        """Remember what was emitted, which decides what an ending means."""
        for chunk in chunks:
            self.calls += isinstance(chunk, ToolCall)
            self._said = True
        return chunks

    @property
    def is_empty(self) -> bool:
        return not self._said and self.stop in ("end_turn", "tool_calls")

    def completion(self) -> Completion:
        """Return how it ended. Tool calls decide: some servers send `stop` with them."""
        stop: StopReason = self.stop
        if self.calls and stop in ("end_turn", "tool_calls"):
            stop = "tool_calls"
        elif stop == "tool_calls":
            stop = "end_turn"
        return Completion(stop, self.usage, self.verbatim())


class RequestBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The JSON of a request. A dialect names its fields in the order in which they are sent; providers refuse null, so
    a field without a value is left out.
    """


class Dialect(Protocol):
    """`known` is what is known of the requested model."""

    lines: bool
    """Whether replies are lines of JSON instead of server-sent events."""

    def path(self, model: str) -> str: ...
    def headers(self, endpoint: Endpoint) -> dict[str, str]: ...
    def body(self, request: ModelRequest, known: ModelEntry, endpoint: Endpoint) -> RequestBody: ...
    def reply(self, request: ModelRequest, endpoint: Endpoint) -> ReplyReader: ...

    @property
    def models_path(self) -> str: ...

    def models(self, document: Any) -> list[ModelInfo]: ...


class ModelInfo(msgspec.Struct, frozen=True):
    """What a provider reports about one of its models."""

    id: str
    name: str | None = None
    window: int | None = None
    max_output: int | None = None
    modalities: tuple[str, ...] | None = None
    efforts: tuple[str, ...] | None = None
    prices: dict[str, float] | None = None
    tools: bool | None = None
    thinks: bool | None = None


def spoken(text: str | None) -> list[ReplyPart]:
    return [TextDelta(text)] if text else []


def thought(text: str | None) -> list[ReplyPart]:
    return [ThoughtDelta(text)] if text else []


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def effort_of(request: ModelRequest, known: ModelEntry) -> str | None:
    """Return the requested effort, or the nearest that the model supports; None when it supports none."""
    asked = request.effort
    if asked is None or known.efforts is None:
        return asked if asked != "none" else None
    return nearest_effort(asked, known.efforts)


def nearest_effort(asked: str, taken: Sequence[str]) -> str | None:
    """Return the closest one of `taken`; an unknown level is passed on for the provider to judge."""
    if asked in taken or not taken:
        return asked if taken else None
    if asked not in EFFORTS:
        return asked
    place = EFFORTS.index(asked)
    return min(
        (word for word in taken if word in EFFORTS), key=lambda w: abs(EFFORTS.index(w) - place), default=None
    )


def rendered_messages(
    request: ModelRequest,
    known: ModelEntry,
    render_prompt: Callable[[list[Text | Media]], M],
    render_reply: Callable[[ModelPart, list[ResultPieces]], list[M]],
) -> list[M]:
    """Return the messages of the request: the user's and the results of the model's calls by what this model accepts
    of them.
    """
    messages: list[M] = []
    for part in parts(request.messages):
        if isinstance(part, UserPart):
            messages.append(render_prompt(content_pieces(part.content, request, known)))
        else:
            messages += render_reply(part, result_pieces(part, request, known))
    return messages


def bearer_headers(endpoint: Endpoint) -> dict[str, str]:
    return {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
