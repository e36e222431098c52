"""The two notifications of the sidecar: `event`, for what happens in a chat, and `status`, for all else."""

from __future__ import annotations

from typing import Literal

import msgspec

from .base import Json, Wire

__all__ = ["EVENT_TYPES", "Event", "Status"]

EVENT_TYPES: dict[str, str] = {
    "chat.state": "The chat is idle, running, requires_action or retrying.",
    "chat.renamed": "`title`, and `by`: user or sidecar.",
    "chat.rewound": "The head moved: `head` is the newest visible turn, `hidden[]` those that left the view.",
    "chat.deleted": "The chat is gone; the last event that its readers get.",
    "config.updated": "`config` as it is now.",
    "prompt.accepted": "`promptId`, `turnId` and the user `item`: the prompt became part of a turn.",
    "prompt.queued": "`promptId`, `turnId`, `delivery`, `content`, `position`: it waits for its turn.",
    "prompt.edited": "`promptId`, `turnId`, `content`, `revision`: a waiting prompt changed.",
    "prompt.removed": "`promptId`, `turnId`: a waiting prompt will not run.",
    "queue.updated": "`paused`: whether waiting prompts stay until `prompt/resume`; `reason` says why.",
    "turn.started": "`promptId`, `model`, `engine`, `parentTurnId`.",
    "turn.ended": "`reason`, `error?`, `usage`. The last event of its turn.",
    "context.assembled": "What the model is sent: `model`, `window`, `reserve`, `budget`, `used` (tokens; an estimate"
    " unless `exact`), and `blocks[]` with the `tokens` of each.",
    "message.started": "The `item` of an answer that now streams.",
    "message.delta": "`itemId` and the `text` to append.",
    "message.completed": "The whole `item`, authoritative.",
    "thought.started": "The `item` of the model's thinking.",
    "thought.delta": "`itemId` and the `text` to append.",
    "thought.completed": "The whole `item`, authoritative.",
    "tool.started": "The `item` of a tool call, with its input.",
    "tool.output": "`itemId` and the `text` that the tool printed.",
    "tool.ended": "The whole `item`, with output and status.",
    "usage.updated": "`turn` and `total`: tokens of this turn and of the chat.",
    "notice": "`code` and `params`: something worth telling, and no error. `window_unknown` names the `model` whose"
    " window nobody knows, and what was `assumed`.",
    "error": "An error of the vocabulary, with `willRetry`, `attempt` and `retryAt`.",
}


class Event(Wire, kw_only=True, frozen=True):
    """A journalled fact. `from` to `seq` is the run of deltas that one frame stands for."""

    session_id: str
    """The chat's session id."""
    chat_id: str | None
    """The app's name for the chat, or null."""
    epoch: str
    """The chat's epoch."""
    seq: int
    """Dense from 1 in the epoch."""
    ts: int
    """Milliseconds since 1970."""
    type: str
    """What happened; clients ignore types that they do not know."""
    data: Json
    """What the type says."""
    from_: int | None = msgspec.field(default=None, name="from")
    """The first seq of a coalesced run of deltas; `seq` when absent."""
    turn_id: str | None = None
    """The turn that it belongs to."""


class Status(Wire, kw_only=True, frozen=True):
    """What belongs to no chat: `chats.changed` (sessionId, change), `storage` (state), `models` (provider), `mcp`."""

    type: Literal["chats.changed", "storage", "models", "mcp"]
    """What it tells of."""
    data: Json
    """What the type says."""
