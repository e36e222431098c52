"""What is kept and for whom: figures, purges, projects that were moved."""

from __future__ import annotations

from typing import Literal

import msgspec

from .base import Key, Params, Wire
from .chats import Owner

__all__ = [
    "DataPurgeParams",
    "DataPurgeResult",
    "DayFigures",
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
    alone), or of all (no key). What could mean two things is refused."""

    scope: Literal["chat", "project", "all"] | None = None
    """What is purged; may be left out when `chatId` or `sessionId` names a chat."""
    confirm: bool = False
    """Must be true, but for a dry run: what is purged does not come back."""
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
    """Messages of users and models, in the search too."""
    prompts: int
    """Prompts, waiting ones included."""
    patches: int
    """Entries of ledgers; no file of a project is touched."""
    compactions: int
    """Summaries that stood for turns."""
    checkpoints: int
    """Named places of chats."""
    requests: int
    """Permissions and questions."""
    rules: int
    """Permission rules of the chats, of the project, and with scope `all` the user's."""
    blobs: int
    """Attachments and kept outputs that no other chat uses."""
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
    """Projects that are no longer known, and with them whether they were trusted."""
    totals: int
    """Figures of projects. A purge of chats alone leaves them."""
    copies: int
    """Copies of the database beside it: from before it got a newer shape, and with scope `all` damaged ones."""


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
    """Chats that are still there, and why."""
    bytes_freed: int
    """How much smaller the database's files became; 0 for a dry run."""
    database_bytes: int
    """Their size now."""
    dry_run: bool = False
    """True when nothing was removed."""


class ProjectsRebindParams(Params, kw_only=True, frozen=True):
    from_: str = msgspec.field(name="from")
    """Where the project was: an absolute path, which need not exist any more."""
    to: str
    """Where it is now: an absolute path of a folder that exists."""


class ProjectsRebindResult(Wire, kw_only=True, frozen=True):
    """What now belongs to the folder `to`. Asking again moves nothing more."""

    path: str
    """The real path of the folder."""
    chats: int
    """Chats that work there now."""
    renamed: int
    """Those of them that were keyed by the old path, and have a new session id."""
    open_files: int
    """Files in view whose paths were changed."""
    rules: int
    """Permission rules of the project that moved."""
    rules_left: int
    """Those that allow something and stayed behind, because the old folder is still there."""
    sources: int
    """Texts of the index."""
    figures: int
    """Figures of the statistics."""
    was_trusted: bool
    """Whether the old folder was trusted."""
    trusted: bool
    """Whether the new one is. Trust does not move: the new folder has to be trusted for itself."""


class StatsReadParams(Key, kw_only=True, frozen=True):
    scope: Literal["chat", "project", "all"] = "all"
    """Of one chat, of a project's chats, or of all."""


class Savings(Wire, kw_only=True, frozen=True):
    """Tokens of tool output, as the sidecar counted them when the call ended; null when nothing was measured."""

    captured: int | None
    """Tokens of outputs that the index keeps."""
    sent: int | None
    """Tokens that models were sent in their place."""
    returned: int | None
    """Tokens that models got back out of the index."""
    kept_out: int | None
    """What windows were spared: captured, less sent and returned."""


class ToolFigures(Savings, kw_only=True, frozen=True):
    name: str
    """The tool."""
    calls: int
    """How often it was called, in chats that are there."""


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
    """The chats are those that are there; what was measured counts purged ones too."""

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
    """The size of the texts as they came."""
    disk_bytes: int | None = None
    """What the whole index takes of the database, with scope `all`; absent when it took too long to measure."""


class StatsReadResult(Savings, kw_only=True, frozen=True):
    """`chats` to `databaseBytes` tell what is there. The rest was measured by and by, and counts purged chats too; what
    nobody measured is null. Turns that a fork or an import brought in are not measured again."""

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
    input_tokens: int
    """Tokens sent to models, as far as providers told."""
    output_tokens: int
    """Tokens that models wrote."""
    cached_tokens: int
    """Those of the input that providers had cached."""
    blobs: int
    """Kept blobs."""
    blob_bytes: int
    """Their size."""
    database_bytes: int
    """The size of the database's file."""
    last_activity: int | None
    """When something last happened."""
    counted_turns: int
    """Turns whose provider told its tokens; the tokens above are theirs."""
    priced_turns: int
    """Those of them whose model has a known price."""
    cost: float | None
    """US dollars by list prices, of the priced turns; null when there is none."""
    searches: int
    """Queries that models put to the index."""
    fetches: int | None
    """Pages that models asked for."""
    fetch_hits: int | None
    """Those of them that came out of the cache."""
    compactions: int
    """Compactions that were not undone."""
    compaction_tokens: int
    """Tokens that they took out of windows."""
    purged_chats: int
    """Chats that were purged; what was measured of them is in these figures."""
    purged_turns: int
    """Their turns."""
    purged_events: int
    """Their events."""
    tools: list[ToolFigures]
    """By tool, of chats that are there; the tool that kept most out comes first."""
    days: list[DayFigures]
    """The newest days on which something was measured, at most 30."""
    projects: list[ProjectFigures]
    """The projects of the scope, the newest first, at most 50; empty for a chat."""
    index: IndexFigures
    """What the index holds of the scope."""
