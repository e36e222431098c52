"""The plain values of the fake provider: models, requests, replies, events, refusals. No I/O, no API formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

Json = dict[str, Any]
EventKind = Literal["open", "delta", "close", "end"]
"""The position of an event: before the first delta, a delta, after the last one, or the final one."""

Framing = Literal["sse", "lines", "array", "json"]
"""Server-sent events, one JSON object per line (Ollama), a JSON array in pieces (Gemini), or one JSON object."""

Stop = Literal["end", "length", "tools", "refusal"]


@dataclass(frozen=True)
class Model:
    """A model that the fake lists."""

    id: str
    window: int = 200_000
    output: int = 64_000
    images: bool = True
    tools: bool = True
    thinking: bool = True
    modern: bool = False
    """Like Anthropic's newest: no thinking budget, no prefill, but system messages between the others."""


@dataclass(frozen=True)
class SentCall:
    """A tool call of the reply. `arguments` is text: it may be invalid on purpose."""

    name: str
    arguments: str
    input: Json
    id: str | None = ""
    """Empty: the API generates one. None: it is omitted, which is a fault."""


@dataclass(frozen=True)
class PlannedReply:
    """The answer of the fake, before an API formats it. Each tuple holds the deltas in order."""

    thoughts: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    calls: tuple[SentCall, ...] = ()
    stop: Stop = "end"
    delay: float = 0.0
    usage: tuple[int, int, int] | None = None
    faults: tuple[tuple[str, int | None], ...] = ()

    @property
    def thought_tokens(self) -> int:
        return len(self.thoughts)

    @property
    def output_tokens(self) -> int:
        """A delta counts as a token, so that output limits cut at whole deltas."""
        return len(self.thoughts) + len(self.text) + sum(8 + len(call.arguments) // 4 for call in self.calls)


@dataclass(frozen=True)
class Usage:
    """Tokens of one request. `input` is everything that was sent; `cached` and `written` are parts of it."""

    input: int
    output: int
    cached: int = 0
    written: int = 0
    thoughts: int = 0


@dataclass
class ModelCall:
    """A valid request to a model, as far as the reply depends on it."""

    model: str
    body: Json
    prompt: str
    results: list[str] = field(default_factory=list)
    rounds: int = 0
    stream: bool = False
    framing: Framing = "json"
    thinking: bool = False
    parallel: bool = True
    tools: list[str] = field(default_factory=list)
    max_output: int | None = None
    input_tokens: int = 0
    cached: int = 0
    written: int = 0
    details: Json = field(default_factory=dict)
    """What only the module of the API needs again when it writes the reply."""


@dataclass(frozen=True)
class SentEvent:
    """One event of a stream; `data` is sent as JSON unless it is text already."""

    data: Any
    kind: EventKind = "delta"
    name: str | None = None


@dataclass(eq=False)
class Recorded:
    """A request as it came in, and its outcome. `ended` is set when the response is over, however it ended."""

    api: str
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    connection: int
    json: Any = None
    status: int | None = None
    fault: str | None = None
    rule: str | None = None
    """The message of the refusal when the request broke a rule."""
    closed_early: bool = False
    """The client closed the connection before the answer was complete."""
    sent: int = 0
    """How many events of the stream were sent."""
    ended: anyio.Event = field(default_factory=anyio.Event, repr=False)


class Rejected(Exception):
    """The request is refused. `reason` is one word for all APIs; each maps it to its own type, code and format."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        reason: str = "invalid",
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason
        self.param = param
        self.headers = dict(headers or {})


DEFAULT_MODELS: Sequence[Model] = (
    Model("fake-1"),
    Model("fake-modern", window=1_000_000, output=128_000, modern=True),
    Model("fake-small", window=8_192, output=2_048),
    Model("fake-blind", images=False),
    Model("fake-plain", thinking=False, tools=False, images=False),
)
