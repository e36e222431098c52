"""Prompts, their queue, and the turns that answer them."""

from __future__ import annotations

from typing import Literal

import msgspec

from .base import ChatRef, Cursor, Key, Params
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


class PromptOverrides(Params, kw_only=True, frozen=True):
    """Settings of this prompt alone."""

    model: str | None = None
    """`provider:model` for this prompt."""
    effort: str | None = None
    """How hard the model should think."""


class PromptContext(Params, kw_only=True, frozen=True):
    """Switches for the blocks of context of this prompt alone."""

    open_files: Gate = "auto"
    """The open files."""
    patches: Gate = "auto"
    """What was changed lately."""
    git_diff: Gate = "auto"
    """The state of the working tree."""
    retrieval: Gate = "auto"
    """What was found in the index."""
    exclude: list[str] = []
    """Ids or labels of blocks to leave out."""
    include: list[str] = []
    """Ids or labels of blocks to let in."""


class PromptSendParams(Key, kw_only=True, frozen=True):
    """Exactly one of `text` and `content`."""

    prompt_id: str
    """Unique in the session: a repeat answers `duplicate` and runs nothing."""
    text: str | None = None
    """The prompt as plain text."""
    content: list[ContentBlock] | None = None
    """The prompt as content blocks."""
    delivery: Literal["queue", "steer", "interrupt", "reject"] = "queue"
    """What happens while a turn runs: wait, join it, end it, or answer -32004."""
    expect_turn_id: str | None = None
    """Refuse with -32010 unless this turn is the running one."""
    replace: TurnRef | None = None
    """Edit and resend: rewind before this turn, then send, in one step."""
    commands: Literal["auto", "off"] = "auto"
    """Whether a text that begins with `/` may be a command."""
    context: PromptContext | None = None
    """Switches for blocks of context."""
    overrides: PromptOverrides | None = None
    """Settings of this prompt alone."""


class PromptSendResult(ChatRef, kw_only=True, frozen=True):
    """`started`: acceptance and start share one commit, so such a prompt never returns to the queue."""

    disposition: Literal["started", "queued", "steered", "duplicate", "command"]
    """What became of the prompt."""
    epoch: str
    """The chat's epoch."""
    seq: int
    """The seq of the event that records the prompt; its further events follow this result."""
    turn_id: str | None = None
    """The turn that answers it, fixed at acceptance."""
    position: int | None = None
    """Its place in the queue, from 1, when it waits."""


class PromptEditParams(Key, kw_only=True, frozen=True):
    prompt_id: str
    """Which waiting prompt."""
    content: list[ContentBlock]
    """What to send instead."""
    revision: int | None = None
    """Refuse with -32010 when the prompt has another revision."""


class PromptRemoveParams(Key, kw_only=True, frozen=True):
    prompt_id: str
    """Which waiting prompt."""
    revision: int | None = None
    """Refuse with -32010 when the prompt has another revision."""


class QueueResult(ChatRef, kw_only=True, frozen=True):
    queue: Queue
    """The queue after the change."""


class TurnCancelParams(Key, kw_only=True, frozen=True):
    """`queue` says what happens to the waiting prompts: they pause, go on, or are removed."""

    turn_id: str | None = None
    """End only this turn; the running one when absent."""
    queue: Literal["pause", "keep", "clear"] = "pause"
    """What happens to the waiting prompts."""


class TurnCancelResult(ChatRef, kw_only=True, frozen=True):
    outcome: Literal["cancelled", "already_ended", "nothing_running"]
    """What there was to end."""
    end_seq: int | None = None
    """The seq of the turn's `turn.ended`."""


class TurnRetryParams(Key, kw_only=True, frozen=True):
    """`start` regenerates (the old turn stays, hidden, as a sibling); `here` goes on with an unfinished turn."""

    prompt_id: str
    """The id of the new prompt, unique in the session."""
    turn_id: str | None = None
    """Which turn; the last when absent."""
    from_: Literal["start", "here"] = msgspec.field(default="start", name="from")
    """Regenerate from the start, or go on from here."""
    overrides: PromptOverrides | None = None
    """Settings of this attempt alone."""


class EventsReadParams(Key, kw_only=True, frozen=True):
    after: Cursor
    """The last event that the client has."""
    limit: int = 1000
    """At most so many events."""
    max_bytes: int = 1024 * 1024
    """At most so many bytes of events; one event always comes."""


class EventsReadResult(ChatRef, kw_only=True, frozen=True):
    events: list[Event]
    """The events after the cursor, in order."""
    next: Cursor
    """The cursor to go on from."""
    has_more: bool
    """Whether there are events after `next`."""
