"""The format of a script for the `scripted` provider: replies made of steps, as in docs/scripted.md.

Knows nothing of files, requests and playback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from ..model import JsonObject
from ..model.failures import ProviderFailed

Chunking = Literal["word", "char"] | Annotated[int, msgspec.Meta(ge=1)]
Delay = Annotated[int, msgspec.Meta(ge=0, le=3_600_000)]
Tokens = Annotated[int, msgspec.Meta(ge=0)]

RETRYABLE = frozenset({"rate_limit", "overloaded", "offline", "timeout", "stream_cut"})
"""The faults that are retryable with a real provider."""


class ScriptPart(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A part of the file: camelCase there, and no unknown fields."""


class ScriptedCall(ScriptPart, frozen=True):
    name: str
    input: JsonObject = {}
    id: str | None = None


class ScriptedFault(ScriptPart, frozen=True):
    reason: Literal[
        "no_key",
        "bad_key",
        "quota",
        "rate_limit",
        "overloaded",
        "offline",
        "timeout",
        "model_unknown",
        "window",
        "refused",
        "stream_cut",
        "bad_reply",
    ]
    message: str | None = None
    retryable: bool | None = None
    retry_after_ms: Delay | None = None
    action: str | None = None

    def failure(self, *, is_final: bool = False) -> ProviderFailed:
        return ProviderFailed(
            self.reason,
            self.message or f"The script fails here with {self.reason}",
            retryable=self.reason in RETRYABLE if self.retryable is None else self.retryable,
            retry_after_ms=self.retry_after_ms,
            action=self.action,
            is_final=is_final,
        )


class ScriptedUsage(ScriptPart, frozen=True):
    input: Tokens | None = None
    output: Tokens | None = None
    cached: Tokens | None = None


class ScriptedStep(ScriptPart, frozen=True):
    """One step: exactly one of the kinds, with its options."""

    text: str | None = None
    thought: str | None = None
    tool_call: ScriptedCall | None = None
    tool_calls: Annotated[list[ScriptedCall], msgspec.Meta(min_length=1)] | None = None
    error: ScriptedFault | None = None
    hang: bool | None = None
    usage: ScriptedUsage | None = None
    stop: Literal["end_turn", "max_tokens", "refusal"] | None = None
    repeat: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    delay_ms: Delay | None = None
    chunk: Chunking | None = None
    steps: Annotated[list[ScriptedStep], msgspec.Meta(min_length=1)] | None = None

    @property
    def calls(self) -> list[ScriptedCall]:
        """Return the tool calls that are sent together."""
        return self.tool_calls or ([self.tool_call] if self.tool_call else [])

    def __post_init__(self) -> None:
        kinds = [name for name, field in _KINDS.items() if getattr(self, field) is not None]
        if len(kinds) > 1:
            raise ValueError(f"A step is one thing, not both `{kinds[0]}` and `{kinds[1]}`")
        if not kinds and self.delay_ms is None:
            raise ValueError(f"Expected one of {', '.join(_KINDS)}, delayMs")
        self._check_companions(kinds[0] if kinds else "delayMs")

    def _check_companions(self, kind: str) -> None:
        speaks = kind in ("text", "thought")
        if self.chunk is not None and not speaks:
            raise ValueError("`chunk` belongs to `text` or `thought`")
        if self.delay_ms is not None and not speaks and kind != "delayMs":
            raise ValueError("`delayMs` belongs to `text` or `thought`, or is a step of its own")
        if (self.steps is not None) != (kind == "repeat"):
            raise ValueError("`repeat` and `steps` belong together")
        if self.hang is False:
            raise ValueError("`hang` is true or left out")
        _check_ends(self.steps or [])


class ScriptedReply(ScriptPart, frozen=True):
    """A reply to a prompt: `match` and `regex` select by its text; replies without them are used in order."""

    steps: list[ScriptedStep]
    match: str | None = None
    regex: str | None = None
    times: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def __post_init__(self) -> None:
        if self.match is not None and self.regex is not None:
            raise ValueError("Expected `match` or `regex`, not both")
        try:
            re.compile(self.regex or "")
        except re.error as error:
            raise ValueError(f"`regex` is no regular expression: {error}") from error
        _check_ends(self.steps)

    @property
    def in_order(self) -> bool:
        return self.match is None and self.regex is None

    def answers(self, prompt: str) -> bool:
        if self.regex is not None:
            return re.search(self.regex, prompt) is not None
        return self.match is not None and self.match in prompt

    def used_up(self, uses: int) -> bool:
        """Replies in order are used once, selected ones always, unless `times` says otherwise."""
        limit = 1 if self.times is None and self.in_order else self.times
        return limit is not None and uses >= limit


class Script(ScriptPart, frozen=True):
    replies: list[ScriptedReply]
    on_exhausted: Literal["error", "repeat", "echo"] = "error"


_KINDS = {
    "text": "text",
    "thought": "thought",
    "toolCall": "tool_call",
    "toolCalls": "tool_calls",
    "error": "error",
    "hang": "hang",
    "usage": "usage",
    "stop": "stop",
    "repeat": "repeat",
}


def flat_steps(steps: list[ScriptedStep]) -> Iterator[ScriptedStep]:
    """Yield the steps with repetitions expanded; lazily, as a stream may be far longer than its script."""
    for step in steps:
        if step.repeat is None:
            yield step
        else:
            for _ in range(step.repeat):
                yield from flat_steps(step.steps or [])


def _check_ends(steps: list[ScriptedStep]) -> None:
    for index, step in enumerate(steps[:-1]):
        if step.stop is not None or step.hang:
            raise ValueError(f"`steps[{index}]` ends the reply, so `steps[{index + 1}]` would never play")
