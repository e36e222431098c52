"""Items, turns and content blocks: one shape in events and in history."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .base import Json, Wire, always

__all__ = [
    "Branch",
    "ContentBlock",
    "ErrorObject",
    "FileChange",
    "Item",
    "ItemStatus",
    "LineRange",
    "Turn",
    "Usage",
]

ItemStatus = Literal["running", "completed", "failed", "denied", "cancelled", "interrupted"]


class LineRange(Wire, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A range of a resource, in lines and code points from 0."""

    start: int
    """The first line."""
    end: int
    """The line after the last."""


class ContentBlock(Wire, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A part of a prompt. `text` has `text`; `image` and `audio` have one of `data`, `path`, `blobId`;
    `resource_link` has `uri`; `resource` has `uri` and `text`, and a `range` where it is a part.
    History carries `blobId`, `mimeType` and `size`, never base64."""

    type: Literal["text", "image", "audio", "resource_link", "resource"]
    """Says which of the members are present."""
    text: str | None = None
    """The text of `text` and `resource`."""
    uri: str | None = None
    """Where a resource comes from."""
    range: LineRange | None = None
    """Which part of the resource `text` is."""
    data: str | None = None
    """The bytes, in base64."""
    path: str | None = None
    """A regular file whose bytes are stored when the prompt is sent: an absolute path, not a file of the
    sidecar's own database."""
    blob_id: str | None = None
    """Bytes that `blob/put` has stored."""
    mime_type: str | None = None
    """What the bytes are."""
    name: str | None = None
    """A name to show."""
    size: int | None = None
    """How many bytes; set by the sidecar."""


class ErrorObject(Wire, kw_only=True, frozen=True):
    """An error of the contract's vocabulary."""

    code: int
    """The number of the error."""
    message: str
    """English, for developers."""
    data: Json = always({})
    """What an app shows in its own words."""


class Usage(Wire, kw_only=True, frozen=True):
    """Tokens of a turn or of a chat, and their cost; absent figures are unknown."""

    input_tokens: int | None = None
    """Tokens sent to the model."""
    output_tokens: int | None = None
    """Tokens that the model wrote."""
    cached_tokens: int | None = None
    """Those of the input that the provider had cached."""
    cost: float | None = None
    """US dollars by list prices, of what has known prices; absent when none has."""


class FileChange(Wire, kw_only=True, frozen=True):
    """A file that a tool changed, or is about to change."""

    path: str
    """Relative to the project, or absolute in another folder of the chat."""
    kind: Literal["create", "modify", "delete"]
    """What happens to the file."""
    unified_diff: str | None = None
    """The change as a unified diff; absent for binary files."""
    before_hash: str | None = None
    """The sha256 of the bytes before; absent for a new file."""
    after_hash: str | None = None
    """The sha256 of the bytes after; absent for a deleted file."""
    old_ref: str | None = None
    """For `blob/read`: the bytes before."""
    new_ref: str | None = None
    """For `blob/read`: the bytes after."""
    added: int = always(0)
    """Lines added."""
    removed: int = always(0)
    """Lines removed."""
    binary: bool = always(False)
    """Whether the bytes are not text."""
    truncated: bool = always(False)
    """Whether the diff is truncated."""


class Item(Wire, kw_only=True, frozen=True):
    """One part of a turn. `type` is user, message, thought, tool, plan, compaction, command, notice or error;
    a type that a client does not know still has `title` and `text`."""

    id: str
    """Unique in the chat."""
    turn_id: str
    """The turn that it is part of."""
    type: str
    """What it is."""
    status: ItemStatus
    """How far it came."""
    started_at: int
    """Milliseconds since 1970."""
    ended_at: int | None = None
    """Milliseconds since 1970; absent while it runs."""
    title: str | None = None
    """A line to show."""
    text: str | None = None
    """What a message or a thought says."""
    content: list[ContentBlock] | None = None
    """What the user sent."""
    name: str | None = None
    """The name of the tool or the command."""
    kind: str | None = None
    """A tool's kind: read, edit, delete, move, search, execute, think, fetch or other."""
    input: Any = None
    """A tool's arguments."""
    output: Json | None = None
    """A tool's output: `text`, `truncated`, `ref?` (a blob of the whole), `source?` (in the index), `content?` (the
    images and audio that it returned, as blocks with `blobId`, `mimeType`, `size` and `name?`)."""
    locations: list[Json] | None = None
    """Positions in files that a tool used: `path`, `line?`."""
    changes: list[FileChange] | None = None
    """Files that a tool changed."""
    exit_code: int | None = None
    """Of a command that a tool ran."""
    entries: list[Json] | None = None
    """The steps of a plan: `content`, `status` (pending, in_progress or completed), `priority?`."""
    result: Any = None
    """What a command answered, as `command.result` has it in `data`."""
    compaction_id: str | None = None
    """Of a compaction; `chat/uncompact` undoes the newest one."""
    trigger: str | None = None
    """Why a chat was compacted: background, blocking or manual."""
    from_turn: str | None = None
    """The first turn that a compaction's summary replaces."""
    to_turn: str | None = None
    """The last turn that it replaces."""
    tokens_before: int | None = None
    """Tokens of the chat before the compaction."""
    tokens_after: int | None = None
    """Tokens of the chat after it."""
    summary: str | None = None
    """The summary, as Markdown."""
    undoable: bool | None = None
    """Whether a compaction can be undone."""
    error: ErrorObject | None = None
    """Why it failed."""
    rewritten: Json | None = None
    """When a hook changed a tool's arguments: `by`, the hook, and `input`, what the model had given."""
    not_run: Json | None = None
    """Why a call was not run: `code` (docs/denials.md), `message`, `by?`, and for a redirect `instead?`, the
    tool to use."""


class Branch(Wire, kw_only=True, frozen=True):
    """The branch of a sibling: the turns from it to the newest that follows it."""

    turn_id: str
    """The sibling that it starts with."""
    tip: str
    """Its newest turn. `chat/history` `around` it reads the branch, `chat/rewind` `to` it shows the branch again."""
    turns: int
    """How many turns it has, from the sibling to the tip."""
    started_at: int
    """When the sibling started, in milliseconds since 1970. With the turn's own `startedAt` it puts all versions in an
    order that stays: "2 of 3"."""
    last_activity: int
    """When its newest turn started, in milliseconds since 1970."""


class Turn(Wire, kw_only=True, frozen=True):
    """One prompt and everything that answers it."""

    id: str
    """Unique in the chat; fixed when its prompt is accepted."""
    prompt_id: str
    """The client's id of the prompt."""
    items: list[Item]
    """The prompt and what answered it, in order."""
    status: ItemStatus
    """How far it came."""
    model: str
    """The model that answered."""
    engine: str
    """The engine that ran it."""
    started_at: int
    """Milliseconds since 1970."""
    parent_turn_id: str | None = None
    """The turn that it follows; absent for the first."""
    siblings: list[str] = always([])
    """Turns that an edit or a retry replaced."""
    branches: list[Branch] = always([])
    """For each of the siblings, the turns that follow it."""
    reason: str | None = None
    """Why it ended: end_turn, max_tokens, max_steps, refusal, cancelled, error or interrupted."""
    error: ErrorObject | None = None
    """What went wrong, when `reason` is error."""
    usage: Usage | None = None
    """Tokens of this turn."""
    ended_at: int | None = None
    """Milliseconds since 1970; absent while it runs."""
    hidden: bool | msgspec.UnsetType = msgspec.UNSET
    """True for a turn that is hidden after a rewind."""
    refused: bool | msgspec.UnsetType = msgspec.UNSET
    """True for a prompt that was refused before any answer, because of its size or by the provider: it is
    shown, but not sent with later requests. `turn/retry` sends it again."""
