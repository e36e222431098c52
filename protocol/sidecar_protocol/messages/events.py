"""The two notifications of the sidecar: `event`, for what happens in a chat, and `status`, for all else."""

from __future__ import annotations

from typing import Literal

import msgspec

from .base import Json, Wire

__all__ = ["EVENT_TYPES", "Event", "Status"]

EVENT_TYPES: dict[str, str] = {
    "chat.state": "The chat is idle, running, requires_action or retrying.",
    "chat.renamed": "`title`, and `by`: user or sidecar.",
    "chat.rewound": "The head moved: `head` is the newest visible turn, `hidden[]` those that left the view, `shown[]`"
    " those that came back into it.",
    "chat.deleted": "The chat is gone; the last event that its readers get.",
    "config.updated": "`config` as it is now.",
    "prompt.accepted": "`promptId`, `turnId` and the user `item`: the prompt became part of a turn.",
    "prompt.queued": "`promptId`, `turnId`, `delivery`, `content`, `position`: it waits for its turn.",
    "prompt.edited": "`promptId`, `turnId`, `content`, `revision`: a waiting prompt changed.",
    "prompt.removed": "`promptId`, `turnId`: a waiting prompt will not run.",
    "queue.updated": "`paused`: whether waiting prompts stay until `prompt/resume`; `reason` says why.",
    "turn.started": "`promptId`, `model`, `engine`, `parentTurnId`.",
    "turn.ended": "`reason`, `error?`, `usage`. The last event of its turn.",
    "context.assembled": "What the model is sent, before every request: the manifest as `chat/context` has it, without"
    " texts.",
    "compaction.started": "`compactionId`, `trigger` (background, blocking or manual), `tokensBefore`: the chat is"
    " being compacted.",
    "compaction.ended": "The `item`, with `tokensBefore`, `tokensAfter`, the turns it stands for and the `summary`;"
    " when it failed, nothing has changed.",
    "compaction.undone": "`compactionId`: the turns that it stood for are sent again.",
    "message.started": "The `item` of an answer that now streams.",
    "message.delta": "`itemId` and the `text` to append.",
    "message.completed": "The whole `item`, authoritative.",
    "thought.started": "The `item` of the model's thinking.",
    "thought.delta": "`itemId` and the `text` to append.",
    "thought.completed": "The whole `item`, authoritative.",
    "tool.started": "The `item` of a tool call, with its input.",
    "tool.updated": "The `item` of a running tool call, as more became known of it.",
    "tool.output": "`itemId` and the `text` that the tool printed.",
    "tool.ended": "The whole `item`, with output and status.",
    "plan.updated": "The `item` with the plan's `entries[]` as they are now.",
    "permission.requested": "The parameters of `permission/request`: a tool call waits for leave.",
    "permission.resolved": "`permissionId`, `itemId`, `decision`, `by` (user, rule, policy, expiry, cancel or restart),"
    " `ruleId?`, `feedback?`, `reason?`, `code?` of a denial (docs/denials.md), `hook?`. What was allowed without"
    " asking has it too, with `kind` and `subject`.",
    "input.requested": "The parameters of `input/request`: the model asks the person something.",
    "input.resolved": "`inputId`, `action` (accept, decline or cancel), `by`, `values?`.",
    "hook.started": "`runId`, `event`, `name` and `file` of a hook that is asked, `itemId?` of the call that it is"
    " about.",
    "hook.ran": "The same, with what came of it: `decision` (none, allow, ask, deny or failed), `exit?`, `ms?`,"
    " `problem?`, `answer`. `again` when it was asked before a crash.",
    "files.updated": "`files[]`: the open files as they are now, the most recent last; `files/list` has their `state`.",
    "patch.recorded": "A change as `patches/list` has it: it entered the ledger, or its `status` is another.",
    "patches.cleared": "`ids[]`: changes that left the ledger.",
    "checkpoint.saved": "`name` and `head`: a place in the chat to come back to.",
    "snapshot.restored": "`snapshotId`, `kind`, `turnId`, `entries[]`: it goes along with the next prompt, once.",
    "command.result": "`promptId`, `command`, and what it answered as `data` and as `markdown`.",
    "usage.updated": "`turn` and `total`: tokens of this turn and of the chat, cached ones apart; `window`: what is"
    " `used` of its `budget`.",
    "notice": "`code` and `params`: something worth telling, and no error. `hook_context` has the `item` that hooks add"
    " to what the model is sent, `hook_message` their `message` to the user. `window_unknown` names the `model` whose"
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
    """What belongs to no chat: `chats.changed` (sessionId, change), `storage` (state), `models` (provider),
    `mcp` (a server of `tools/list`)."""

    type: Literal["chats.changed", "storage", "models", "mcp"]
    """What it tells of."""
    data: Json
    """What the type says."""
