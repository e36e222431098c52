"""Chats: open, list, search, read, move in and out, configure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .base import ChatRef, Cursor, Json, Key, Params, Wire, always
from .content import ContentBlock, Turn, Usage

__all__ = [
    "ChatArchiveParams",
    "ChatChanged",
    "ChatCloseResult",
    "ChatConfigureParams",
    "ChatConfigureResult",
    "ChatDeleteResult",
    "ChatExportParams",
    "ChatExportResult",
    "ChatHistoryParams",
    "ChatHistoryResult",
    "ChatImportParams",
    "ChatImportResult",
    "ChatListParams",
    "ChatListResult",
    "ChatOpenParams",
    "ChatOpenResult",
    "ChatRenameParams",
    "ChatSearchParams",
    "ChatSearchResult",
    "ChatSummary",
    "KeyInfo",
    "OpenFile",
    "Owner",
    "PendingRequest",
    "Queue",
    "QueuedPrompt",
    "Recovered",
    "Replay",
    "Salvage",
    "SearchHit",
    "Tail",
    "TextMatch",
    "TurnRef",
]

ChatStateName = Literal["idle", "running", "requires_action", "retrying"]


class TurnRef(Params, kw_only=True, frozen=True):
    turn_id: str
    """The id of a turn of this chat."""


class Tail(Params, kw_only=True, frozen=True):
    """How many of the newest turns a result contains."""

    turns: int = 30
    """Maximum number of turns."""
    max_bytes: int = 1024 * 1024
    """Maximum bytes of turns; the newest turn is always included."""


class ChatOpenParams(Key, kw_only=True, frozen=True):
    if_missing: Literal["create", "fail"] = "create"
    """What to do when there is no such chat: create it, or answer -32002."""
    after: Cursor | Literal["start", "tail"] = "tail"
    """Replay what came after this cursor, or everything (`start`), or nothing but the newest turns
    (`tail`)."""
    tail: Tail = Tail()
    """How many of the newest turns the result contains."""
    config: Json | None = None
    """Keys to set in the chat's configuration, as `chat/configure` does."""


class KeyInfo(Wire, kw_only=True, frozen=True):
    kind: Literal["chat", "project", "default"]
    """Which of the three keys names the chat."""
    value: str
    """The chat id, the real path of the project, or `default`."""


class Owner(Wire, kw_only=True, frozen=True):
    """The process that may write to the chat now."""

    pid: int
    """The process id of the sidecar that writes."""
    client: str
    """The name of the client that this sidecar serves."""


class Replay(Wire, kw_only=True, frozen=True):
    """What follows the result: stored events `from` to `to`, a snapshot in the result, or nothing."""

    kind: Literal["events", "snapshot", "none"]
    """`events`: they follow as notifications. `snapshot`: the turns of the result replace them."""
    from_: int | None = msgspec.field(default=None, name="from")
    """The seq of the first event that follows."""
    to: int | None = None
    """The seq of the last event that follows; live events come after it."""
    reason: str | None = None
    """Why the result has a snapshot instead of events, such as an unknown epoch."""


class QueuedPrompt(Wire, kw_only=True, frozen=True):
    prompt_id: str
    """The client's id of the prompt."""
    turn_id: str
    """The id that its turn will have; fixed at acceptance."""
    content: list[ContentBlock]
    """What will be sent."""
    delivery: str
    """How it was sent: queue, steer or interrupt."""
    position: int
    """Its position in the queue, from 1."""
    revision: int
    """Grows with each edit; `prompt/edit` and `prompt/remove` check it."""


class Queue(Wire, kw_only=True, frozen=True):
    paused: bool
    """Whether the waiting prompts stay until `prompt/resume`."""
    items: list[QueuedPrompt]
    """The waiting prompts, next first."""


class Salvage(Wire, kw_only=True, frozen=True):
    """What was saved of the chat when its damaged database was repaired."""

    at: int
    """Milliseconds since 1970, when that was."""
    saved: int
    """How many events of the chat were saved."""
    lost: int
    """How many were not."""
    gaps: list[list[int]]
    """The first and last seqs of what was lost, at most a hundred ranges; `notice` events replace them."""
    damaged: str
    """The damaged database, which is kept."""


class Recovered(Wire, kw_only=True, frozen=True):
    """What was ended after a crash when the chat was opened, and what was saved of it from a damaged database."""

    turns: list[str]
    """The ids of the turns that were ended as interrupted."""
    items: list[str]
    """The ids of the items that were ended as interrupted."""
    salvage: Salvage | None = None
    """Only after damage, until the chat has a new turn."""


class OpenFile(Wire, kw_only=True, frozen=True):
    """An open file: part of the chat's context."""

    path: str
    """The file's real path, absolute."""
    pinned: bool
    """Whether it stays open when newer files replace others."""
    last_viewed_at: int
    """Milliseconds since 1970, when it was last opened or touched by a tool."""
    added_at: int
    """Milliseconds since 1970, when it was opened."""
    opened_by: str
    """Who opened it: `user`, the name of a tool, or a rule."""
    state: Literal["ok", "missing", "binary", "too_large", "unreadable"]
    """Its state on disk; only an `ok` file is sent to the model."""


class PendingRequest(Wire, kw_only=True, frozen=True):
    """A request that waits for the user."""

    kind: Literal["permission", "input"]
    """Which of the two."""
    id: str
    """What `permission/answer` or `input/answer` takes."""
    turn_id: str
    """The turn that waits."""
    request: Json
    """The parameters of `permission/request` or `input/request`."""


class ChatOpenResult(ChatRef, kw_only=True, frozen=True):
    status: Literal["created", "resumed", "attached", "recovered"]
    """`created` now, `resumed` from the database, `attached` (open on this connection already), or
    `recovered` (salvaged from a damaged database)."""
    key: KeyInfo
    """The key that names the chat."""
    access: Literal["writer", "reader"]
    """`reader` while another process writes to this chat."""
    epoch: str
    """The first half of every cursor of this chat."""
    last_seq: int
    """The seq of the newest event, what recovery added included."""
    as_of: Cursor
    """The cursor at which `turns`, `state` and `queue` were read."""
    replay: Replay
    """Which events follow this result."""
    turns: list[Turn]
    """The newest turns, oldest first; a running one has its partial items."""
    state: ChatStateName
    """The current state of the chat."""
    queue: Queue
    """The waiting prompts."""
    pending: list[PendingRequest]
    """Permission and input requests without an answer, oldest first."""
    usage: Usage
    """Tokens of the whole chat."""
    config: Json
    """The effective configuration of the chat."""
    open_files: list[OpenFile]
    """The open files of the chat: pinned first, then the most recent."""
    title: str | None = None
    """The chat's title, given or automatic."""
    project_path: str | None = None
    """The project that the chat works in."""
    project_problem: Literal["missing", "not_a_folder"] | None = None
    """Why the project cannot be worked in: the chat goes on without tools for files, rules and open files until there
    is a folder at `projectPath`."""
    before: str | None = None
    """The cursor for `chat/history` to the turns before `turns`; absent when there are none."""
    owner: Owner | None = None
    """Who writes, when it is another process."""
    recovered: Recovered | None = None
    """What a crash left unfinished and is now ended, and what was lost by damage."""


class ChatCloseResult(ChatRef, kw_only=True, frozen=True):
    closed: bool
    """False when the chat was not open on this connection."""


class ChatChanged(ChatRef, kw_only=True, frozen=True):
    """The chat as it is after a change."""

    title: str | None = None
    """The title as it is now."""
    archived: bool = always(False)
    """Whether the chat is archived, and not in the default list."""
    seq: int | None = None
    """The seq of the event of the change."""


class ChatDeleteResult(Wire, kw_only=True, frozen=True):
    session_id: str
    """The session id, which a new chat of the same key will have again."""
    deleted: bool
    """False when there was nothing to delete."""


class ChatRenameParams(Key, kw_only=True, frozen=True):
    """`title: null` makes the title automatic again."""

    title: str | None
    """The new title; null for the automatic one."""


class ChatArchiveParams(Key, kw_only=True, frozen=True):
    archived: bool = True
    """False restores the chat."""


class ChatListParams(Params, kw_only=True, frozen=True):
    namespace: str | None = None
    """Only chats of this namespace; all when absent."""
    project_path: str | None = None
    """Only chats of this project."""
    archived: bool | None = None
    """Only archived chats, or only those that are not; both when absent."""
    query: str | None = None
    """Only chats whose title, preview or key contains this text."""
    cursor: str | None = None
    """The `nextCursor` of the page before."""
    limit: int = 50
    """Maximum number of items."""


class ChatSummary(ChatRef, kw_only=True, frozen=True):
    namespace: str
    """The namespace of the chat."""
    title: str | None
    """The chat's title, given or automatic."""
    project_path: str | None
    """The project that the chat works in."""
    model: str | None
    """The model of its configuration."""
    state: ChatStateName
    """The current state of the chat."""
    created_at: int
    """Milliseconds since 1970."""
    last_activity: int
    """Milliseconds since 1970."""
    turns: int
    """How many turns are visible."""
    preview: str | None
    """The beginning of the newest message."""
    archived: bool
    """Whether the chat is archived, and not in the default list."""
    meta: Any = None
    """The app's own data, as `chat/configure` set it."""


class ChatListResult(Wire, kw_only=True, frozen=True):
    items: list[ChatSummary]
    """The chats of this page."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""


class ChatSearchParams(Params, kw_only=True, frozen=True):
    query: str
    """The words to find; every one must occur.

    A word is found by its beginning (from two letters on), as a part of an identifier (`name` in `getUserName`), and
    in Chinese, Japanese, Korean and Thai anywhere. Case, accents and width do not matter. `"a phrase"` is
    found as it is; there is no other syntax. What begins no word is searched inside words.
    """
    namespace: str | None = None
    """Only chats of this namespace; all when absent."""
    project_path: str | None = None
    """Only chats of this project."""
    archived: bool | None = None
    """Only archived chats, or only those that are not; both when absent."""
    cursor: str | None = None
    """The `nextCursor` of the page before."""
    limit: int = 20
    """Maximum number of hits."""


class TextMatch(Wire, kw_only=True, frozen=True):
    """A range of a text in Unicode code points, not in UTF-16 units or bytes."""

    start: int
    """Its first code point, from 0."""
    end: int
    """The code point after its last one."""


class SearchHit(ChatSummary, kw_only=True, frozen=True):
    turn_id: str
    """The turn of the hit, for `chat/history` with `around`."""
    item_id: str
    """The item that contains the words."""
    snippet: str
    """The words with the text around them; `…` where text is left out."""
    matches: list[TextMatch]
    """Where the words are in `snippet`, in order."""
    snippet_start: int
    """Where the text of `snippet`, without a leading `…`, begins in the message, in code points."""


class ChatSearchResult(Wire, kw_only=True, frozen=True):
    items: list[SearchHit]
    """The hits of this page, best first."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""


class ChatHistoryParams(Key, kw_only=True, frozen=True):
    before: str | None = None
    """Turns before this cursor, of an earlier result."""
    after: str | None = None
    """Turns after this cursor, of an earlier result."""
    around: TurnRef | None = None
    """Turns around this one. Around a hidden turn they are those of its branch, also with the cursors of the result."""
    limit: int = 30
    """Maximum number of turns."""
    max_bytes: int = 1024 * 1024
    """Maximum bytes of turns; one turn is always included."""


class ChatHistoryResult(ChatRef, kw_only=True, frozen=True):
    turns: list[Turn]
    """The turns of this page, oldest first."""
    before: str | None
    """The cursor to older turns; null when there are none."""
    after: str | None
    """The cursor to newer turns; null when there are none."""
    as_of: Cursor
    """The cursor at which the page was read."""


class ChatExportParams(Key, kw_only=True, frozen=True):
    format: Literal["jsonl", "markdown", "claude-code", "codex"] = "jsonl"
    """`jsonl` imports as it was; `markdown` is for reading; the others are session files that these programs resume,
    by the id in the name of `path`."""
    path: str | None = None
    """The file to write, an absolute path; without it the text is in the result. A link is never followed, and
    Sidecar's own data folder is always refused."""
    overwrite: bool = False
    """Replace an existing regular file, instead of answering -32003. Ignored without `path`."""


class ChatExportResult(ChatRef, kw_only=True, frozen=True):
    turns: int
    """How many turns were written."""
    bytes: int
    """How many bytes were written."""
    path: str | None = None
    """The file that was written."""
    data: str | None = None
    """The text, when no `path` was given."""


class ChatImportParams(Key, kw_only=True, frozen=True):
    """Refused by -32602 with `line` and `reason` (not_understood, nesting, too_long, too_many, duplicate, version), and
    nothing is imported then: over 1 GiB, 2,000,000 lines, 1,000,000 turns, 10,000 items in a turn, 100,000 blobs or
    patches, 16 MiB in a line (48 MiB for a blob), 4 MiB in a text, 100 levels of nesting, an id that is there twice."""

    path: str | None = None
    """The file to read, an absolute path. Only a regular file, and none of the sidecar's own database."""
    data: str | None = None
    """The text itself, in place of `path`."""
    format: str = "jsonl"
    """As in `chat/export`. Only `jsonl` can be imported: an export, or plain turns: a line
    `{"role":"user","text":"…"}` for each prompt, and `{"role":"assistant","text":"…"}` for each answer."""
    append: bool = False
    """Add to a chat that has turns, instead of answering -32003."""


class ChatImportResult(ChatRef, kw_only=True, frozen=True):
    turns: int
    """How many turns were added."""
    items: int
    """How many items they have."""
    epoch: str
    """The chat's epoch."""
    last_seq: int
    """The seq of the newest event."""
    ignored: list[str]
    """Names of what the import ignored: keys of its `config` other than `gates`, `budgets`,
    `compaction` and the `model` of a provider that is configured here; `openFiles` and `patches` when some of them lead
    out of the project or to protected files."""


class ChatConfigureParams(Key, kw_only=True, frozen=True):
    set: Json
    """Keys and their new values; null clears one. In `mcpServers`, the values of `env` and `headers` and the query of
    `url` are secrets: they are shown as `(set)`, and one that is sent back as `(set)` keeps its value."""


class ChatConfigureResult(ChatRef, kw_only=True, frozen=True):
    config: Json
    """The effective configuration after the change."""
    seq: int
    """The seq of `config.updated`."""
