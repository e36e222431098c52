"""Content blocks, items and turns as the journal keeps them.

The journal's field names are the contract's and, like it, are never renamed: what was written years ago must
still be read.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec

Status = Literal["running", "completed", "failed", "denied", "cancelled", "interrupted"]
EndReason = Literal["end_turn", "max_tokens", "max_steps", "refusal", "cancelled", "error", "interrupted"]

STATUS_OF_REASON: dict[str, Status] = {
    "end_turn": "completed",
    "max_tokens": "completed",
    "max_steps": "completed",
    "refusal": "completed",
    "cancelled": "cancelled",
    "error": "failed",
    "interrupted": "interrupted",
}


class Value(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """A value of the journal: camelCase in JSON, absent instead of null."""


class Block(Value, kw_only=True, frozen=True):
    """A piece of a prompt; media stand here by `blob_id`, never by their bytes."""

    type: Literal["text", "image", "audio", "resource_link", "resource"]
    text: str | None = None
    uri: str | None = None
    range: dict[str, int] | None = None
    blob_id: str | None = None
    mime_type: str | None = None
    name: str | None = None
    size: int | None = None


class Item(Value, kw_only=True, frozen=True):
    """One part of a turn: what the user said, a message, a thought, a tool call, a notice."""

    id: str
    turn_id: str
    type: str
    status: Status
    started_at: int
    ended_at: int | None = None
    title: str | None = None
    text: str | None = None
    content: list[Block] | None = None
    name: str | None = None
    kind: str | None = None
    input: Any = None
    output: dict[str, Any] | None = None
    locations: list[dict[str, Any]] | None = None
    changes: list[dict[str, Any]] | None = None
    exit_code: int | None = None
    entries: list[dict[str, Any]] | None = None
    error: dict[str, Any] | None = None
    rewritten: dict[str, Any] | None = None
    """What the model had given, when a hook changed it, and which hook did."""
    not_run: dict[str, str] | None = None
    """Why a call was not carried out: a code, and words."""


class Usage(Value, kw_only=True, frozen=True):
    """Tokens, and what they cost in US dollars by list prices; absent figures are not known."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None

    def plus(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=_add(self.input_tokens, other.input_tokens),
            output_tokens=_add(self.output_tokens, other.output_tokens),
            cached_tokens=_add(self.cached_tokens, other.cached_tokens),
            cost=_add(self.cost, other.cost),
        )


class Kept(Value, kw_only=True, frozen=True):
    """A block of context that entered a chat with a turn. A file stays as it was sent (`ref` is the text's blob,
    `hash` and `source` the file's bytes), whole or as what has changed since `base`; of other blocks a line stays
    (`stub`)."""

    label: str
    path: str | None = None
    hash: str | None = None
    source: str | None = None
    base: str | None = None
    """The hash of the version that a diff begins with."""
    ref: str | None = None
    stub: str | None = None


class Turn(Value, kw_only=True, frozen=True):
    """One prompt and all that answers it."""

    id: str
    prompt_id: str
    items: list[Item]
    status: Status
    model: str
    engine: str
    started_at: int
    parent_turn_id: str | None = None
    siblings: list[str] = []
    reason: EndReason | None = None
    error: dict[str, Any] | None = None
    usage: Usage | None = None
    ended_at: int | None = None
    hidden: bool = False
    context: list[Kept] = []
    """What was sent with its prompt, beside it; not for apps."""


Number = TypeVar("Number", int, float)


def _add(left: Number | None, right: Number | None) -> Number | None:
    return right if left is None else left + (right or 0)
