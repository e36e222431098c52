"""Prompts, their queue, and the turns that answer them."""

from __future__ import annotations

from typing import Literal

import msgspec

from .base import ChatRef, Cursor, Key, Params, Wire
from .chats import Queue, TurnRef
from .content import ContentBlock
from .events import Event

__all__ = [
    "EventsReadParams",
    "EventsReadResult",
    "Gate",
    "PromptContext",
    "PromptEditParams",
    "PromptOverrides",
    "PromptRemoveParams",
    "PromptSendParams",
    "PromptSendResult",
    "QueueResult",
    "TurnCancelParams",
    "TurnCancelResult",
    "TurnRetryParams",
]

Gate = Literal["auto", "always", "never"]


class PromptOverrides(Params, kw_only=True):
    """Settings of this prompt alone."""

    model: str | None = None
    effort: str | None = None


class PromptContext(Params, kw_only=True):
    """Switches for the blocks of context of this prompt alone."""

    open_files: Gate = "auto"
    patches: Gate = "auto"
    git_diff: Gate = "auto"
    retrieval: Gate = "auto"
    exclude: list[str] = []
    include: list[str] = []


class PromptSendParams(Key, kw_only=True):
    """Exactly one of `text` and `content`."""

    prompt_id: str
    text: str | None = None
    content: list[ContentBlock] | None = None
    delivery: Literal["queue", "steer", "interrupt", "reject"] = "queue"
    expect_turn_id: str | None = None
    replace: TurnRef | None = None
    commands: Literal["auto", "off"] = "auto"
    context: PromptContext | None = None
    overrides: PromptOverrides | None = None


class PromptSendResult(ChatRef, kw_only=True):
    """`started` means that acceptance and start share one commit: such a prompt never returns to the queue."""

    disposition: Literal["started", "queued", "steered", "duplicate", "command"]
    epoch: str
    seq: int
    turn_id: str | None = None
    position: int | None = None


class PromptEditParams(Key, kw_only=True):
    prompt_id: str
    content: list[ContentBlock]
    revision: int | None = None


class PromptRemoveParams(Key, kw_only=True):
    prompt_id: str
    revision: int | None = None


class QueueResult(ChatRef, kw_only=True):
    queue: Queue


class TurnCancelParams(Key, kw_only=True):
    """`queue` says what happens to the waiting prompts: they pause, go on, or are removed."""

    turn_id: str | None = None
    queue: Literal["pause", "keep", "clear"] = "pause"


class TurnCancelResult(ChatRef, kw_only=True):
    outcome: Literal["cancelled", "already_ended", "nothing_running"]
    end_seq: int | None = None


class TurnRetryParams(Key, kw_only=True):
    """`start` regenerates (the old turn is kept, hidden, as a sibling); `here` goes on with an unfinished turn."""

    prompt_id: str
    turn_id: str | None = None
    from_: Literal["start", "here"] = msgspec.field(default="start", name="from")
    overrides: PromptOverrides | None = None


class EventsReadParams(Key, kw_only=True):
    after: Cursor
    limit: int = 1000
    max_bytes: int = 1024 * 1024


class EventsReadResult(ChatRef, kw_only=True):
    events: list[Event]
    next: Cursor
    has_more: bool
