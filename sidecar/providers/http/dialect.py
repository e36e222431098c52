"""One API, without IO: how a request is spelled in it, and how its replies are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from ..base import (
    Chunk,
    Completion,
    ModelEntry,
    ModelRequest,
    StopReason,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    ToolCall,
    ToolSpec,
    Verbatim,
)
from ..connection import Connection
from .faults import Trouble
from .sse import SseEvent


class Troubled(Exception):
    """The provider said, within its reply, that something went wrong."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


class Malformed(Exception):
    """The reply breaks the API's own rules."""


class Reply:
    """A reply as its events come in. `ended` is set by its last event; a cut one never has it."""

    def __init__(self) -> None:
        self.ended = False
        self.stop: StopReason = "end_turn"
        self.usage = TokenUsage()
        self.calls = 0
        self._said = False

    def take(self, event: SseEvent) -> list[Chunk]:
        """The chunks that one event brings."""
        raise NotImplementedError

    def close(self) -> list[Chunk]:
        """The stream has ended: what was held back. Sets `ended` when no more was to be expected."""
        return []

    def verbatim(self) -> Verbatim | None:
        """The whole reply in the API's own words, when it must go back like that."""
        return None

    def note(self, chunks: list[Chunk]) -> list[Chunk]:
        """Remember what was said, which decides what an ending means."""
        for chunk in chunks:
            self.calls += isinstance(chunk, ToolCall)
            self._said = True
        return chunks

    @property
    def is_empty(self) -> bool:
        return not self._said and self.stop in ("end_turn", "tool_calls")

    def completion(self) -> Completion:
        """How it ended. Calls decide: some servers say `stop` beside them."""
        stop: StopReason = self.stop
        if self.calls and stop in ("end_turn", "tool_calls"):
            stop = "tool_calls"
        elif stop == "tool_calls":
            stop = "end_turn"
        return Completion(stop, self.usage, self.verbatim())


class Dialect(Protocol):
    """`known` is what is known of the model that is asked."""

    lines: bool
    """Whether replies are lines of JSON instead of server-sent events."""

    def path(self, model: str) -> str: ...
    def headers(self, connection: Connection) -> dict[str, str]: ...
    def body(self, request: ModelRequest, known: ModelEntry, connection: Connection) -> dict[str, Any]: ...
    def reply(self, request: ModelRequest, connection: Connection) -> Reply: ...

    @property
    def models_path(self) -> str: ...

    def models(self, document: Any) -> list[Told]: ...


class Told(msgspec.Struct, frozen=True):
    """What a provider tells of one of its models."""

    id: str
    name: str | None = None
    window: int | None = None
    max_output: int | None = None
    modalities: tuple[str, ...] | None = None
    efforts: tuple[str, ...] | None = None
    prices: dict[str, float] | None = None


def present(body: dict[str, Any]) -> dict[str, Any]:
    """A request without what is not said in it: providers refuse null."""
    return {key: value for key, value in body.items() if value is not None}


def function(tool: ToolSpec) -> dict[str, Any]:
    """A tool as Chat Completions want it, and who imitates them."""
    spelled = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": spelled}


def spoken(text: str | None) -> list[Chunk]:
    return [TextDelta(text)] if text else []


def thought(text: str | None) -> list[Chunk]:
    return [ThoughtDelta(text)] if text else []


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def effort_of(request: ModelRequest, known: ModelEntry) -> str | None:
    """The effort that is asked for, or the nearest that the model takes; None when it takes none."""
    asked = request.effort
    if asked is None or known.efforts is None:
        return asked if asked != "none" else None
    return nearest(asked, known.efforts)


def nearest(asked: str, taken: Sequence[str]) -> str | None:
    """The one of `taken` that is closest; a word that is no effort is left to the provider to judge."""
    if asked in taken or not taken:
        return asked if taken else None
    if asked not in EFFORTS:
        return asked
    place = EFFORTS.index(asked)
    return min(
        (word for word in taken if word in EFFORTS), key=lambda w: abs(EFFORTS.index(w) - place), default=None
    )


def bearer(connection: Connection) -> dict[str, str]:
    return {"authorization": f"Bearer {connection.key}"} if connection.key else {}
