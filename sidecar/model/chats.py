"""Chats as values: their key, their configuration, their row in the list, their queue, and who may write to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import msgspec
from msgspec import UNSET, UnsetType

from ..system.choices import GATE_SWITCHES, MODES
from . import JsonObject
from .content import Block, JournalValue, Usage

if TYPE_CHECKING:
    from ..system.choices import GateSwitch as GateSwitch
    from ..system.choices import Mode as Mode
else:
    GateSwitch, Mode = Literal[GATE_SWITCHES], Literal[MODES]

TAKEN_FROM_ELSEWHERE = ("gates", "budgets", "compaction")
"""Keys of a chat's configuration that only decide how much of its own past is sent. From an imported file or
database no others are used, except a model of a provider that is configured here."""

ChatState = Literal["idle", "running", "requires_action", "retrying"]
KeyKind = Literal["chat", "project", "default"]


class ChatKey(msgspec.Struct, frozen=True):
    """What a session id is derived from."""

    namespace: str
    kind: KeyKind
    value: str
    session_id: str

    @property
    def chat_id(self) -> str | None:
        return self.value if self.kind == "chat" else None


class ToolChoice(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Which tools the model may call; an absent or empty `allow` stands for all."""

    allow: list[str] | UnsetType = UNSET
    deny: list[str] | UnsetType = UNSET


class GateSwitches(msgspec.Struct, forbid_unknown_fields=True, rename="camel", frozen=True):
    """The switches for blocks of context."""

    open_files: GateSwitch = "auto"
    patches: GateSwitch = "auto"
    git_diff: GateSwitch = "auto"
    retrieval: GateSwitch = "auto"


class Budgets(msgspec.Struct, forbid_unknown_fields=True, rename="camel", frozen=True):
    """The tokens that blocks of context may have; None for the default."""

    per_file: int | None = None
    open_files: int | None = None
    diffs: int | None = None
    git_diff: int | None = None
    retrieval: int | None = None


class CompactionConfig(msgspec.Struct, forbid_unknown_fields=True, rename="camel", frozen=True):
    """When a chat is compacted, as shares of its window. It is not before it has `postponed_until` turns."""

    enabled: bool = True
    background: float = 0.80
    blocking: float = 0.95
    postponed_until: int | UnsetType | None = UNSET


class OwnConfig(TypedDict, total=False):
    """The keys that a chat sets itself, as the journal and apps spell them; in a change null clears a key."""

    model: str | None
    engine: str | None
    effort: str | None
    instructions: str | None
    projectPath: str | None
    mode: Mode | None
    window: int | None
    outputReserve: int | None
    maxSteps: int | None
    tools: Mapping[str, object] | None
    gates: Mapping[str, object] | None
    exclude: list[str] | None
    budgets: Mapping[str, object] | None
    compaction: Mapping[str, object] | None
    mcpServers: list[JsonObject] | None
    extraFolders: list[str] | None
    meta: Any


class EffectiveConfig(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """The configuration that a chat runs with: its own keys over the settings. As JSON it is what apps get."""

    model: str
    engine: str
    mode: Mode
    max_steps: int
    budgets: Budgets = msgspec.field(default_factory=Budgets)
    gates: GateSwitches = msgspec.field(default_factory=GateSwitches)
    compaction: CompactionConfig = msgspec.field(default_factory=CompactionConfig)
    output_reserve: int | None = None
    effort: str | None = None
    instructions: str | None = None
    window: int | None = None
    tools: ToolChoice | None = None
    exclude: list[str] = []
    mcp_servers: list[JsonObject] = []
    extra_folders: list[str] = []
    meta: Any = None
    project_path: str | None = None


class Chat(msgspec.Struct, frozen=True):
    """A chat's row. `id` is internal to the store; `config` are the keys that the chat itself sets. `listed_path` is
    the project under which it is listed: that of a chat from another installation's database is no `project_path`
    until an app has named it.
    """

    id: int
    key: ChatKey
    epoch: str
    last_seq: int
    title: str | None
    title_by: str | None
    project_path: str | None
    config: OwnConfig
    archived: bool
    created_at: int
    last_activity: int
    turns: int
    preview: str | None
    state: ChatState
    head: str | None
    queue_paused: bool
    usage: Usage
    model: str | None
    deleted: bool
    revision: int
    open_files: list[JsonObject] = []
    listed_path: str | None = None


class ContextSwitches(JournalValue, kw_only=True, frozen=True):
    """A prompt's own switches for blocks of context; `exclude` and `include` have ids or labels of blocks."""

    open_files: GateSwitch = "auto"
    patches: GateSwitch = "auto"
    git_diff: GateSwitch = "auto"
    retrieval: GateSwitch = "auto"
    exclude: list[str] = []
    include: list[str] = []


class PromptOverrides(JournalValue, kw_only=True, frozen=True):
    """What a prompt decides for itself. `hooked`: its hooks have run."""

    model: str | None = None
    effort: str | None = None
    context: ContextSwitches | None = None
    hooked: bool = False


class Prompt(msgspec.Struct, frozen=True):
    """A queued prompt, or one that a turn answers."""

    id: str
    turn_id: str
    content: list[Block]
    delivery: str
    overrides: PromptOverrides
    revision: int = 1


class PromptRecord(msgspec.Struct, frozen=True):
    """What is known of a `promptId` that was used before."""

    turn_id: str
    status: str
    seq: int


class ProcessIdentity(msgspec.Struct, frozen=True):
    """Identifies a process among all that ever had its pid."""

    instance: str
    boot: str
    pid_namespace: str
    pid: int
    started: int


class LeaseOwner(msgspec.Struct, frozen=True):
    """The process that holds a lease, as an error names it."""

    pid: int
    client: str


class Lease(msgspec.Struct, frozen=True):
    """The right to write to a chat. A lease that is not renewed ends at `expires` (monotonic milliseconds)."""

    generation: int
    owner: ProcessIdentity | None
    client: str
    expires: int
    closing: bool


class ChatQuery(msgspec.Struct, frozen=True):
    """Which chats a list contains."""

    namespace: str | None = None
    project_path: str | None = None
    archived: bool | None = None
    query: str | None = None
    cursor: str | None = None
    limit: int = 50
    project_ids: tuple[str, ...] = ()


class MessageHit(msgspec.Struct, frozen=True):
    """A message that matches a search."""

    chat: Chat
    turn_id: str
    item_id: str
    snippet: str
    matches: tuple[tuple[int, int], ...] = ()
    """Where the words are in the snippet, in code points."""
    snippet_start: int = 0
    """Where the snippet begins in the message's text, without the sign for what is left out before it."""
