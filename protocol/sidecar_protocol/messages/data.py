"""Stored data: statistics, purges, moved projects."""

from __future__ import annotations

from typing import Literal

import msgspec

from .base import Key, Params, Wire, always
from .chats import Owner

__all__ = [
    "DataPurgeParams",
    "DataPurgeResult",
    "DayFigures",
    "HistoryChat",
    "HistoryImportParams",
    "HistoryImportResult",
    "HistoryProblem",
    "IndexFigures",
    "LeftChat",
    "ProjectFigures",
    "ProjectsRebindParams",
    "ProjectsRebindResult",
    "PurgeCounts",
    "Savings",
    "StatsReadParams",
    "StatsReadResult",
    "ToolFigures",
]


class DataPurgeParams(Key, kw_only=True, frozen=True):
    """Of a chat (named by `chatId`, `sessionId`, or with scope `chat` by `projectPath`), of a project (`projectPath`
    alone), or of all (no key). An ambiguous request is refused."""

    scope: Literal["chat", "project", "all"] | None = None
    """What is purged; may be omitted when `chatId` or `sessionId` names a chat."""
    confirm: bool = False
    """Must be true, except for a dry run: purged data cannot be restored."""
    dry_run: bool = False
    """Only count what would be removed."""


class PurgeCounts(Wire, kw_only=True, frozen=True):
    chats: int
    """Chats; a tombstone of each stays."""
    turns: int
    """Turns, hidden ones included."""
    events: int
    """Events of the journal."""
    messages: int
    """Messages of users and models, also in the search index."""
    prompts: int
    """Prompts, waiting ones included."""
    patches: int
    """Recorded changes; no file of a project is changed."""
    compactions: int
    """Summaries that replaced turns."""
    checkpoints: int
    """Named turns of chats."""
    requests: int
    """Permissions and questions."""
    rules: int
    """Permission rules of the chats, of the project, and with scope `all` the user's."""
    blobs: int
    """Attachments and stored outputs that no other chat uses."""
    blob_bytes: int
    """Their size."""
    sources: int
    """Texts in the index."""
    chunks: int
    """Their pieces."""
    pages: int
    """Cached pages."""
    snapshots: int
    """Resume snapshots."""
    projects: int
    """Projects that are no longer known, with their trust."""
    totals: int
    """Figures of projects. A purge of chats alone keeps them."""
    copies: int
    """Copies of the database next to it: from before migrations, and with scope `all` damaged ones."""


class LeftChat(Wire, kw_only=True, frozen=True):
    session_id: str
    """The chat's session id."""
    chat_id: str | None
    """The app's name for the chat."""
    reason: Literal["locked"]
    """Why it was not purged: another process writes to it."""
    owner: Owner
    """That process."""


class DataPurgeResult(Wire, kw_only=True, frozen=True):
    scope: Literal["chat", "project", "all"]
    """What was purged."""
    removed: PurgeCounts
    """What was removed, or would be."""
    left: list[LeftChat]
    """Chats that were not purged, and why."""
    bytes_freed: int
    """How much smaller the database's files became; 0 for a dry run."""
    database_bytes: int
    """Their size now."""
    dry_run: bool = always(False)
    """True when nothing was removed."""


class ProjectsRebindParams(Params, kw_only=True, frozen=True):
    from_: str = msgspec.field(name="from")
    """Where the project was: an absolute path, which need not exist any more."""
    to: str
    """Where it is now: an absolute path of a folder that exists."""


class ProjectsRebindResult(Wire, kw_only=True, frozen=True):
    """What now belongs to the folder `to`. A repeat moves nothing more."""

    path: str
    """The real path of the folder."""
    chats: int
    """Chats that work there now."""
    renamed: int
    """Those of them that were keyed by the old path, and have a new session id."""
    open_files: int
    """Open files whose paths were changed."""
    rules: int
    """Permission rules of the project that moved."""
    rules_left: int
    """Those that allow something and were not moved, because the old folder still exists."""
    sources: int
    """Texts of the index."""
    figures: int
    """Figures of the statistics."""
    was_trusted: bool
    """Whether the old folder was trusted."""
    trusted: bool
    """Whether the new one is. Trust does not move: the new folder must be trusted itself."""


class StatsReadParams(Key, kw_only=True, frozen=True):
    scope: Literal["chat", "project", "all"] = "all"
    """Of one chat, of a project's chats, or of all."""


class Savings(Wire, kw_only=True, frozen=True):
    """Tokens of tool output, as the sidecar counted them when the call ended; null when nothing was measured."""

    captured: int | None
    """Tokens of outputs that the index stores."""
    sent: int | None
    """Tokens that were sent to models in their place."""
    returned: int | None
    """Tokens that models got back out of the index."""
    kept_out: int | None
    """Tokens kept out of context windows: captured minus sent and returned."""


class ToolFigures(Savings, kw_only=True, frozen=True):
    name: str
    """The tool."""
    calls: int
    """How often it was called, in existing chats."""


class DayFigures(Savings, kw_only=True, frozen=True):
    day: str
    """The day, in UTC: 2026-11-18."""
    input_tokens: int | None
    """Tokens sent to models."""
    output_tokens: int | None
    """Tokens that models wrote."""
    cost: float | None
    """US dollars by list prices, of what has known prices."""


class ProjectFigures(Savings, kw_only=True, frozen=True):
    """`chats` counts existing chats; measured figures include purged ones."""

    path: str
    """The project's folder."""
    chats: int
    """Its chats."""
    turns: int
    """Their turns."""
    events: int
    """Their events."""
    last_activity: int | None
    """When something last happened in one of them."""
    input_tokens: int | None
    """Tokens sent to models."""
    output_tokens: int | None
    """Tokens that models wrote."""
    cost: float | None
    """US dollars by list prices, of what has known prices."""


class IndexFigures(Wire, kw_only=True, frozen=True):
    sources: int
    """Kept texts."""
    chunks: int
    """Their pieces."""
    text_bytes: int
    """The size of the original texts."""
    disk_bytes: int | None = None
    """The size of the whole index in the database, with scope `all`; absent when measuring took too long."""


class StatsReadResult(Savings, kw_only=True, frozen=True):
    """`chats` to `databaseBytes` tell what is there. The rest was measured by and by, and counts purged chats too; what
    was not measured is null. Turns that a fork or an import brought are not measured again."""

    scope: str
    """What was counted."""
    chats: int
    """Chats."""
    turns: int
    """Turns, hidden ones included."""
    events: int
    """Events in the journal."""
    messages: int
    """Messages of users and models."""
    input_tokens: int | None
    """Tokens sent to models, as far as providers reported them; null when none did."""
    output_tokens: int | None
    """Tokens that models wrote; null when no provider reported any."""
    cached_tokens: int | None
    """Those of the input that providers had cached; null when no provider reported any."""
    blobs: int
    """Kept blobs."""
    blob_bytes: int
    """Their size."""
    database_bytes: int
    """The size of the database's file."""
    last_activity: int | None
    """When something last happened."""
    counted_turns: int
    """Turns whose provider reported its tokens; the tokens above are theirs."""
    priced_turns: int
    """Those of them whose model has a known price."""
    cost: float | None
    """US dollars by list prices, of the priced turns; null when there is none."""
    searches: int
    """Queries of models to the index."""
    fetches: int | None
    """Pages that models fetched."""
    fetch_hits: int | None
    """Those of them that came from the cache."""
    compactions: int
    """Compactions that were not undone."""
    compaction_tokens: int
    """Tokens that they removed from context windows."""
    purged_chats: int
    """Chats that were purged; what was measured of them is in these figures."""
    purged_turns: int
    """Their turns."""
    purged_events: int
    """Their events."""
    tools: list[ToolFigures]
    """By tool, of existing chats; the tool that kept out most tokens comes first."""
    days: list[DayFigures]
    """The newest days on which something was measured, at most 30."""
    projects: list[ProjectFigures]
    """The projects of the scope, the newest first, at most 50; empty for a chat."""
    index: IndexFigures
    """What the index stores for the scope."""


class HistoryImportParams(Params, kw_only=True, frozen=True):
    """Which chats of another program to import. Its files are only read; no setting, server, hook or mode in them is
    taken over, and keys and tokens in them are replaced by `(hidden)`."""

    platform: str
    """`claude-code`, `codex`, `gemini-cli`, `opencode`, `copilot`, `qwen-code`, or an export of `chatgpt` or
    `claude-ai`."""
    path: str | None = None
    """A file or folder, an absolute path. By default where the program keeps its sessions; an export needs one."""
    since: int | None = None
    """Only chats with something new since then, in milliseconds since 1970."""
    project_path: str | None = None
    """Only chats of this folder or of one below it."""
    namespace: str | None = None
    """The namespace that they come into."""
    dry_run: bool = False
    """Only read, and answer what would be imported."""


class HistoryChat(Wire, kw_only=True, frozen=True):
    chat_id: str
    """The chat here: the platform, a colon, and the id there."""
    session_id: str
    """The session here."""
    status: Literal["new", "grown"]
    """Whether the chat is new here, or was imported before and has more now."""
    title: str | None = None
    """Its title, or its first words."""
    project_path: str | None = None
    """The folder that it works in, which may not exist here."""
    turns: int
    """How many turns were added."""
    messages: int
    """How many items these have: messages, thoughts, tool calls."""
    last_activity: int
    """When something last happened in it, in milliseconds since 1970."""


class HistoryProblem(Wire, kw_only=True, frozen=True):
    file: str
    """The file."""
    line: int | None = None
    """The line in it."""
    message: str
    """What could not be read, and why."""


class HistoryImportResult(Wire, kw_only=True, frozen=True):
    chats: list[HistoryChat]
    """The chats that are new or have grown, at most 20,000."""
    problems: list[HistoryProblem]
    """What could not be read, at most 20,000."""
    new: int
    """How many chats were created."""
    grown: int
    """How many chats got more turns."""
    unchanged: int
    """How many chats were here as they are there."""
    skipped: int
    """How many chats are not what was asked for, or have no message."""
    deleted: int
    """How many chats were deleted here after an earlier import; they do not come back."""
    turns: int
    """How many turns were added."""
    messages: int
    """How many items these have."""
    problem_count: int
    """How many problems there were."""
    dry_run: bool = always(False)
    """Whether nothing was imported."""
