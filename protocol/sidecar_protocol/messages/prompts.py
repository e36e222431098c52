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
    """Settings of this prompt only."""

    model: str | None = None
    """`provider:model` for this prompt."""
    effort: str | None = None
    """How hard the model should think."""


class PromptContext(Params, kw_only=True, frozen=True):
    """Switches for the blocks of context of this prompt only."""

    open_files: Gate = "auto"
    """The open files."""
    patches: Gate = "auto"
    """What was changed lately."""
    git_diff: Gate = "auto"
    """The state of the working tree."""
    retrieval: Gate = "auto"
    """What was found in the index."""
    exclude: list[str] = []
    """Kinds, ids or labels of blocks to exclude. An unknown one, and one that every request has, is -32602 with the
    `field` and the `nearest`."""
    include: list[str] = []
    """Kinds, ids or labels of blocks to include, whatever the gates say. An unknown one is -32602."""


class PromptSendParams(Key, kw_only=True, frozen=True):
    """Exactly one of `text` and `content`."""

    prompt_id: str
    """Unique in the session: a repeat answers `duplicate` and runs nothing."""
    text: str | None = None
    """The prompt as plain text. No text in any parameter may have more than 4 MiB of UTF-8, but for an import's and a
    blob's `data` and media: a longer one is -32602 with the reason `too_long`, the `field` and the `limit`."""
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
    """Settings of this prompt only."""


class PromptSendResult(ChatRef, kw_only=True, frozen=True):
    """`started`: acceptance and start share one commit, so such a prompt never returns to the queue."""

    disposition: Literal["started", "queued", "steered", "duplicate", "command"]
    """What happened to the prompt."""
    epoch: str
    """The chat's epoch."""
    seq: int
    """The seq of the event that records the prompt; its further events follow this result."""
    turn_id: str | None = None
    """The turn that answers it, fixed at acceptance."""
    position: int | None = None
    """Its position in the queue, from 1, when it waits."""


class PromptEditParams(Key, kw_only=True, frozen=True):
    """Exactly one of `text` and `content`, as in `prompt/send`."""

    prompt_id: str
    """Which waiting prompt."""
    text: str | None = None
    """What to send instead, as plain text."""
    content: list[ContentBlock] | None = None
    """What to send instead, as content blocks."""
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
    """`queue` says what happens to the waiting prompts: they pause, continue, or are removed."""

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
    """Regenerate from the start, or continue from here."""
    overrides: PromptOverrides | None = None
    """Settings of this attempt only."""


class EventsReadParams(Key, kw_only=True, frozen=True):
    after: Cursor
    """The last event that the client has."""
    limit: int = 1000
    """Maximum number of events."""
    max_bytes: int = 1024 * 1024
    """Maximum bytes of events; one event is always included."""


class EventsReadResult(ChatRef, kw_only=True, frozen=True):
    events: list[Event]
    """The events after the cursor, in order."""
    next: Cursor
    """The cursor to continue from."""
    has_more: bool
    """Whether there are events after `next`."""
