"""Items, turns and content blocks: one shape in events and in history."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .base import Json, Wire

__all__ = [
    "ContentBlock",
    "ErrorObject",
    "Item",
    "ItemStatus",
    "LineRange",
    "Turn",
    "Usage",
]

ItemStatus = Literal["running", "completed", "failed", "denied", "cancelled", "interrupted"]


class LineRange(Wire, forbid_unknown_fields=True, kw_only=True):
    """A range of a resource, in lines and code points from 0."""

    start: int
    end: int


class ContentBlock(Wire, forbid_unknown_fields=True, kw_only=True):
    """A piece of a prompt. `text` has `text`; `image` and `audio` have one of `data`, `path`, `blobId`;
    `resource_link` has `uri`; `resource` has `uri` and `text`, and a `range` where it is a part.
    History carries `blobId`, `mimeType` and `size`, never base64."""

    type: Literal["text", "image", "audio", "resource_link", "resource"]
    text: str | None = None
    uri: str | None = None
    range: LineRange | None = None
    data: str | None = None
    path: str | None = None
    blob_id: str | None = None
    mime_type: str | None = None
    name: str | None = None
    size: int | None = None


class ErrorObject(Wire, kw_only=True):
    """An error of the contract's vocabulary."""

    code: int
    message: str
    data: Json = {}


class Usage(Wire, kw_only=True):
    """Tokens of a turn or of a chat; absent figures are not known."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


class Item(Wire, kw_only=True):
    """One part of a turn. `type` is user, message, thought, tool, plan, compaction, command, notice or error;
    a type that a client does not know still has `title` and `text`."""

    id: str
    turn_id: str
    type: str
    status: ItemStatus
    started_at: int
    ended_at: int | None = None
    title: str | None = None
    text: str | None = None
    content: list[ContentBlock] | None = None
    name: str | None = None
    kind: str | None = None
    input: Any = None
    output: Json | None = None
    locations: list[Json] | None = None
    changes: list[Json] | None = None
    exit_code: int | None = None
    error: ErrorObject | None = None


class Turn(Wire, kw_only=True):
    """One prompt and all that answers it."""

    id: str
    prompt_id: str
    items: list[Item]
    status: ItemStatus
    model: str
    engine: str
    started_at: int
    parent_turn_id: str | None = None
    siblings: list[str] = []
    reason: str | None = None
    error: ErrorObject | None = None
    usage: Usage | None = None
    ended_at: int | None = None
    hidden: bool | msgspec.UnsetType = msgspec.UNSET
