"""The table of events and of statuses: what the `data` of each type has, and when it comes.

`Event` and `Status` carry `data` as it is in the journal. These types describe it: schemas, reference page and tests
follow them, and a running sidecar does not load them.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from .base import Json, Wire
from .chats import ChatStateName, OpenFile, Owner
from .content import ContentBlock, ErrorObject, Item, Usage
from .context import ContextBlock
from .details import ItemType
from .patches import PatchInfo
from .permissions import InputOutcome, InputRequest, PermissionOutcome, PermissionRequest
from .snapshots import SnapshotEntry, SnapshotKind
from .tools import ToolServer

__all__ = ["EVENT_TYPES", "STATUS_TYPES", "EventRow"]

CompactionTrigger = Literal["background", "blocking", "manual"]
TurnReason = Literal["end_turn", "max_tokens", "max_steps", "refusal", "cancelled", "error", "interrupted"]


class EventRow(NamedTuple):
    """A type of event or status. `item` is the type of the item that its `data` carries."""

    data: type[Wire]
    meaning: str
    item: ItemType | None = None


class NoData(Wire, kw_only=True, frozen=True):
    """No members."""


class ItemData(Wire, kw_only=True, frozen=True):
    item: Item
    """The item as it is now; final when it has `endedAt`."""


class ToolEnded(ItemData, kw_only=True, frozen=True):
    measured: Json | None = None
    """Figures of the call for `stats/read`."""


class Delta(Wire, kw_only=True, frozen=True):
    item_id: str
    """The running item."""
    text: str
    """The text to append."""


class ChatState(Wire, kw_only=True, frozen=True):
    state: ChatStateName
    """The state from now on."""


class ChatRenamed(Wire, kw_only=True, frozen=True):
    title: str | None
    """The title as it is now; null for none."""
    by: Literal["user", "sidecar"]
    """Whose title it is."""


class ChatRewound(Wire, kw_only=True, frozen=True):
    head: str | None
    """The newest visible turn; null when there is none."""
    hidden: list[str]
    """Turns that were hidden."""
    shown: list[str] = []
    """Turns that were shown again."""


class ConfigUpdated(Wire, kw_only=True, frozen=True):
    config: Json
    """The effective configuration as it is now, as in `chat/open`."""


class PromptAccepted(Wire, kw_only=True, frozen=True):
    prompt_id: str
    """The client's id of the prompt."""
    turn_id: str
    """The turn that answers it."""
    delivery: Literal["queue", "steer", "interrupt", "reject"]
    """How it was sent."""
    item: Item | None = None
    """The prompt as the turn has it; absent when a turn continues without a new prompt."""
    standing: list[str] = []
    """Wishes in it that are for the whole chat, such as a language to answer in."""


class PromptQueued(Wire, kw_only=True, frozen=True):
    prompt_id: str
    """The client's id of the prompt."""
    turn_id: str
    """The id that its turn will have."""
    delivery: Literal["queue", "steer", "interrupt", "reject"]
    """How it was sent."""
    content: list[ContentBlock]
    """What will be sent."""
    position: int
    """Its position in the queue, from 1."""
    overrides: Json | None = None
    """Settings of this prompt only, as `prompt/send` got them."""


class PromptEdited(Wire, kw_only=True, frozen=True):
    prompt_id: str
    """The client's id of the prompt."""
    turn_id: str
    """The id that its turn will have."""
    delivery: Literal["queue", "steer", "interrupt", "reject"]
    """How it was sent."""
    content: list[ContentBlock]
    """What will be sent instead."""
    revision: int
    """The revision from now on."""


class PromptRemoved(Wire, kw_only=True, frozen=True):
    prompt_id: str
    """The client's id of the prompt."""
    turn_id: str
    """The id that its turn would have had."""


class QueueUpdated(Wire, kw_only=True, frozen=True):
    paused: bool
    """Whether waiting prompts stay until `prompt/resume`."""
    reason: str | None = None
    """Why: resumed, restart, or how the turn before ended."""


class TurnStarted(Wire, kw_only=True, frozen=True):
    prompt_id: str
    """The client's id of its prompt."""
    model: str
    """The model that answers."""
    engine: str
    """What runs the turn."""
    parent_turn_id: str | None = None
    """The turn before it; absent for the first."""


class TurnEnded(Wire, kw_only=True, frozen=True):
    reason: TurnReason
    """How it ended."""
    usage: Usage
    """Tokens of the turn."""
    error: ErrorObject | None = None
    """The error that ended it."""


class ContextAssembled(Wire, kw_only=True, frozen=True):
    model: str
    """The model that the request is for."""
    window: int | None
    """The model's window, in tokens; null when no window is known."""
    reserve: int | None
    """Tokens reserved for the answer; null when no window is known."""
    budget: int | None
    """What may be sent; null when no window is known."""
    used: int | None
    """What is sent: the sum of the included blocks."""
    exact: bool
    """Whether tokens were counted with the model's own tokenizer."""
    blocks: list[ContextBlock]
    """What is sent and what is not, in order of precedence, without texts."""
    kept: list[Json] = []
    """The blocks that stay in the chat with this turn; only the turn's first request has them."""


class CompactionStarted(Wire, kw_only=True, frozen=True):
    compaction_id: str
    """The compaction."""
    trigger: CompactionTrigger
    """What started it."""
    tokens_before: int
    """Tokens of the chat before it."""


class CompactionEnded(Wire, kw_only=True, frozen=True):
    item: Item
    """The compaction with its summary, or with its `error`: then nothing has changed."""
    compaction_id: str | None = None
    """The compaction."""
    trigger: CompactionTrigger | None = None
    """What started it."""
    tokens_before: int | None = None
    """Tokens of the chat before it."""
    tokens_after: int | None = None
    """Tokens after it; absent when it failed."""
    turns: int | None = None
    """How many turns the summary replaces."""
    summarised: str | None = None
    """The last turn that the summary replaces."""
    masked: str | None = None
    """The last turn whose tool output is not sent any more."""
    gathered: str | None = None
    """The last turn whose files were gathered into one block."""
    files: list[Json] = []
    """The files that were gathered."""
    state: Json | None = None
    """The summary as the next compaction continues it."""


class CompactionUndone(Wire, kw_only=True, frozen=True):
    compaction_id: str
    """The compaction."""


class ImportStarted(Wire, kw_only=True, frozen=True):
    import_id: str
    """The import."""
    created: bool
    """Whether it created the chat."""
    source: Json | None = None
    """Of `history/import`: the program, and a mark that changes when the chat there does."""


class ImportEnded(Wire, kw_only=True, frozen=True):
    import_id: str
    """The import."""
    outcome: Literal["completed", "cancelled", "interrupted"]
    """How it ended; the turns of an import that was not completed are hidden."""


class PermissionResolved(PermissionOutcome, kw_only=True, frozen=True):
    item_id: str | None = None
    """The tool call."""
    kind: str | None = None
    """What was allowed without asking: a kind of `permission/request`."""
    subject: str | None = None
    """What was allowed without asking."""
    then: Literal["stop"] | None = None
    """`stop` when the user ended the turn with the answer."""
    code: str | None = None
    """A stable name of the reason of a denial (docs/denials.md)."""
    hook: str | None = None
    """The hook that decided."""


class InputResolved(InputOutcome, kw_only=True, frozen=True):
    values: Json = {}
    """What was filled in."""


class HookStarted(Wire, kw_only=True, frozen=True):
    run_id: str
    """The run."""
    key: str
    """The same for the same question to the same hook."""
    event: str
    """The hook's event, such as PreToolUse."""
    hook_id: str
    """The hook, as in `hooks/list`."""
    name: str
    """What is run."""
    file: str
    """The file that contains the hook."""
    item_id: str | None = None
    """The tool call that it is about."""


class HookRan(HookStarted, kw_only=True, frozen=True):
    decision: Literal["none", "allow", "ask", "deny", "failed"]
    """What it decided."""
    answer: Json | None = None
    """What it said: `effect`, `reason`, `message` and others."""
    exit: int | None = None
    """Its exit code."""
    ms: int | None = None
    """How long it took."""
    problem: str | None = None
    """Why it failed."""
    again: bool = False
    """Whether a recorded answer was repeated, because it had been asked before a crash."""


class FilesUpdated(Wire, kw_only=True, frozen=True):
    files: list[OpenFile]
    """All open files: pinned first, then the most recent, as in `files/list`."""


class PatchRecorded(PatchInfo, kw_only=True, frozen=True):
    item_id: str | None = None
    """The tool call that made the change."""
    before_hash: str | None = None
    """The sha256 of the bytes before; absent for a new file."""
    after_hash: str | None = None
    """The sha256 of the bytes after; absent for a deleted file."""
    old_ref: str | None = None
    """For `blob/read`: the bytes before."""
    new_ref: str | None = None
    """For `blob/read`: the bytes after."""
    mode: int | None = None
    """The permission bits of a deleted file."""


class PatchesCleared(Wire, kw_only=True, frozen=True):
    ids: list[str]
    """The recorded changes that were removed."""


class CheckpointSaved(Wire, kw_only=True, frozen=True):
    name: str
    """Its name."""
    head: str | None
    """The newest visible turn then; null when there was none."""


class SnapshotRestored(Wire, kw_only=True, frozen=True):
    snapshot_id: str
    """The snapshot."""
    kind: SnapshotKind
    """Which kind it is of."""
    turn_id: str
    """The last turn within."""
    entries: list[SnapshotEntry]
    """What is sent with the next prompt."""


class CommandResult(Wire, kw_only=True, frozen=True):
    prompt_id: str
    """The client's id of the prompt."""
    command: str
    """The command, without its slash."""
    data: Any
    """The result, as the method has it that the command stands for."""
    markdown: str
    """The result to show."""


class WindowUse(Wire, kw_only=True, frozen=True):
    """How full the context window is."""

    used: int | None
    """Tokens that are sent."""
    budget: int | None
    """Tokens that may be sent; null when no window is known."""


class UsageUpdated(Wire, kw_only=True, frozen=True):
    turn: Usage
    """Of this turn so far."""
    total: Usage
    """Of the chat."""
    window: WindowUse | None = None
    """How full the context window is."""


class Notice(Wire, kw_only=True, frozen=True):
    """`hook_context` has the `item` that hooks add to what the model is sent, `hook_message` their `message` to the
    user. `window_unknown` names the `model` whose window is unknown, and what was `assumed`. `media_left_out` names
    images and audio that the `model` is not shown, as `items[]` with `blobId`, `type` and `reason` (modality,
    format, invalid, missing, refused or size): lines replace them; those that a tool returned and that cannot be
    used have `itemId` and `tool` in place of `model`, and `items[]` with `type`, `reason` and `message`.
    `history_left_out` and `context_left_out`: the provider refused the request, and was asked again without the
    turns, or without the files and other context, before the prompt. `limit_reached`: the turn ended at a `limit`.
    `hook_stop_limit`: hooks continued the turn as often as they may. `compaction_blocked`: a hook refused a
    compaction. `events_lost` and `patch_removed`: what a repair, or the removal of what could run, left out."""

    code: str
    """What it says, by name; an app has its own text for it."""
    params: Json
    """The values that the text needs."""
    item: Item | None = None
    """The item that it adds to the turn."""


class ErrorRaised(ErrorObject, kw_only=True, frozen=True):
    will_retry: bool
    """Whether the model is asked again."""
    attempt: int
    """How often it was asked."""
    retry_at: int
    """Milliseconds since 1970, when it is asked again."""


EVENT_TYPES: dict[str, EventRow] = {
    "chat.state": EventRow(ChatState, "The chat's state changed."),
    "chat.renamed": EventRow(ChatRenamed, "The chat has another title."),
    "chat.rewound": EventRow(ChatRewound, "The head moved: turns were hidden, or shown again."),
    "chat.deleted": EventRow(NoData, "The chat was deleted; the last event that its readers get."),
    "config.updated": EventRow(ConfigUpdated, "The chat's configuration changed."),
    "prompt.accepted": EventRow(PromptAccepted, "The prompt became part of a turn.", "user"),
    "prompt.queued": EventRow(PromptQueued, "The prompt waits for its turn."),
    "prompt.edited": EventRow(PromptEdited, "A waiting prompt changed."),
    "prompt.removed": EventRow(PromptRemoved, "A waiting prompt will not run."),
    "queue.updated": EventRow(QueueUpdated, "The queue was paused or continued."),
    "turn.started": EventRow(TurnStarted, "A turn began."),
    "turn.ended": EventRow(TurnEnded, "The turn ended; the last event of its turn."),
    "context.assembled": EventRow(
        ContextAssembled, "What the model is sent, before every request: the manifest of `chat/context`."
    ),
    "compaction.started": EventRow(CompactionStarted, "The chat is being compacted."),
    "compaction.ended": EventRow(
        CompactionEnded, "The summary replaces turns, or nothing has changed.", "compaction"
    ),
    "compaction.undone": EventRow(CompactionUndone, "The turns that it replaced are sent again."),
    "import.started": EventRow(
        ImportStarted, "An import is adding turns. Until it ends the chat is incomplete."
    ),
    "import.ended": EventRow(ImportEnded, "The import ended."),
    "message.started": EventRow(ItemData, "The model begins to answer.", "message"),
    "message.delta": EventRow(Delta, "A piece of the answer."),
    "message.completed": EventRow(ItemData, "The whole answer, authoritative.", "message"),
    "thought.started": EventRow(ItemData, "The model begins to think.", "thought"),
    "thought.delta": EventRow(Delta, "A piece of its thinking."),
    "thought.completed": EventRow(ItemData, "The whole thought, authoritative.", "thought"),
    "tool.started": EventRow(ItemData, "The model called a tool; the item has its input.", "tool"),
    "tool.updated": EventRow(ItemData, "A running tool call has new details.", "tool"),
    "tool.output": EventRow(Delta, "A piece of what the tool prints."),
    "tool.ended": EventRow(ToolEnded, "The call ended; the item has output and status.", "tool"),
    "plan.updated": EventRow(ItemData, "The model's plan as it is now.", "plan"),
    "permission.requested": EventRow(
        PermissionRequest, "A tool call waits for a permission: the parameters of `permission/request`."
    ),
    "permission.resolved": EventRow(
        PermissionResolved, "A permission was decided, also what was allowed without asking."
    ),
    "input.requested": EventRow(
        InputRequest, "The model asks the user a question: the parameters of `input/request`."
    ),
    "input.resolved": EventRow(InputResolved, "The question was answered, or ended without an answer."),
    "hook.started": EventRow(HookStarted, "A hook is asked."),
    "hook.ran": EventRow(HookRan, "The hook answered, or failed."),
    "files.updated": EventRow(FilesUpdated, "The open files changed."),
    "patch.recorded": EventRow(PatchRecorded, "A change of a file was recorded, or its `status` changed."),
    "patches.cleared": EventRow(PatchesCleared, "Recorded changes were removed; the files did not change."),
    "checkpoint.saved": EventRow(CheckpointSaved, "A named turn of the chat to go back to."),
    "snapshot.restored": EventRow(SnapshotRestored, "A snapshot is sent once with the next prompt."),
    "command.result": EventRow(CommandResult, "What a command answered."),
    "usage.updated": EventRow(UsageUpdated, "A request to the model ended: its tokens."),
    "notice": EventRow(Notice, "Something worth telling, and no error.", "notice"),
    "error": EventRow(ErrorRaised, "The model failed before its first token, and is asked again."),
}
"""Every type of event."""


class ChatsChanged(Wire, kw_only=True, frozen=True):
    session_id: str
    """The chat."""
    change: str
    """What happened to it: created, updated or deleted."""


class AccessStatus(Wire, kw_only=True, frozen=True):
    session_id: str
    """The chat."""
    chat_id: str | None
    """The app's id of it; null for a chat that has none."""
    access: Literal["writer", "reader"]
    """`reader` while another process writes to the chat."""
    owner: Owner | None = None
    """The process that writes; absent with `writer`."""


class StorageStatus(Wire, kw_only=True, frozen=True):
    state: Literal["ready", "migrating", "newer", "readonly", "quarantined", "full", "removed", "replaced"]
    """The state of the database."""
    rescued: str | None = None
    """The copy of everything that was stored, when the files were removed or replaced."""
    recovered: Json | None = None
    """What was saved of a damaged database: `chats`, `saved`, `lost` (events) and `damaged`, the file."""
    stripped: Json | None = None
    """What was removed from a database of another installation, and `copy`, the file as it was."""
    purged: int | None = None
    """How many chats were purged after their retention."""
    removed: Json | None = None
    """What was removed with them, counted."""
    free_bytes: int | None = None
    """The free space of the disk, when it is low."""


class ModelsStatus(Wire, kw_only=True, frozen=True):
    provider: str | None = None
    """The provider whose models or key changed; absent for all."""


class TrustStatus(Wire, kw_only=True, frozen=True):
    path: str
    """The project's folder."""
    trusted: bool
    """Whether it is trusted."""
    changes: list[Json] = []
    """What changed in its files since it was trusted, as in `project/trust`."""


class ProgressStatus(Wire, kw_only=True, frozen=True):
    operation_id: str
    """The id of the request as text; `$/cancelRequest` ends it. Loading a model is no request: it has an id of its
    own, which `$/cancelRequest` takes as well."""
    kind: str
    """What is done: `import`, `history`, `fork`, `index`, `fetch`, or `load` (a model of this machine)."""
    done: int
    """How much is done, in bytes (`import`, `history`, `fetch`, `load`), events (`fork`) or files (`index`). Of `load`
    it is an estimate, and 0 where the system does not tell how much a process has in memory."""
    total: int | None = None
    """How much there is, when it is known."""
    chats: int | None = None
    """Of `history`: how many chats were imported so far."""


class McpStatus(ToolServer, kw_only=True, frozen=True):
    """A server of `tools/list`."""

    tools: int = 0
    """How many tools it has; 0 until it is ready."""
    attempts: int = 0
    """How often it failed in a row."""
    left_out: list[str] = []
    """Tools of it that cannot be offered, such as for their names."""
    since: int
    """Since when it is in this state, in milliseconds since 1970."""


STATUS_TYPES: dict[str, EventRow] = {
    "chats.changed": EventRow(ChatsChanged, "A chat changed, in this process or in another."),
    "access": EventRow(
        AccessStatus, "Another process began or ceased to write to a chat that this connection has open."
    ),
    "storage": EventRow(StorageStatus, "The database is in another state."),
    "models": EventRow(ModelsStatus, "Models, or a provider's key, changed: ask `models/list` again."),
    "mcp": EventRow(McpStatus, "An MCP server is in another state."),
    "trust": EventRow(TrustStatus, "The trust in a project ended, because its files changed."),
    "progress": EventRow(ProgressStatus, "How far a long request is, a few times a second."),
}
"""Every type of status."""
