"""Content blocks, items, turns and the outcomes of requests to the user, as the journal stores them.

The journal's field names are those of the contract and are never renamed: old journals must stay readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import msgspec

from . import JsonObject

ItemStatus = Literal["running", "completed", "failed", "denied", "cancelled", "interrupted"]
EndReason = Literal["end_turn", "max_tokens", "max_steps", "refusal", "cancelled", "error", "interrupted"]

STATUS_OF_REASON: dict[str, ItemStatus] = {
    "end_turn": "completed",
    "max_tokens": "completed",
    "max_steps": "completed",
    "refusal": "completed",
    "cancelled": "cancelled",
    "error": "failed",
    "interrupted": "interrupted",
}


class JournalValue(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """A value of the journal: camelCase in JSON, absent instead of null."""


class Block(JournalValue, kw_only=True, frozen=True):
    """A piece of a prompt. Media are referenced by `blob_id`, never embedded. A media block with a `text` is
    not shown to the model: the text is sent instead."""

    type: Literal["text", "image", "audio", "resource_link", "resource"]
    text: str | None = None
    uri: str | None = None
    range: dict[str, int] | None = None
    blob_id: str | None = None
    mime_type: str | None = None
    name: str | None = None
    size: int | None = None


class GivenBlock(Block, kw_only=True, frozen=True):
    """A block as an app or a tool sends it: its bytes may be inline, in base64, or in a file."""

    data: str | None = None
    path: str | None = None


class Rewritten(JournalValue, kw_only=True, frozen=True):
    """A change of a call's input by a hook: which hook, and the input that the model had given."""

    by: str | None = None
    input: Any = None


class StoredError(JournalValue, kw_only=True, frozen=True):
    """A failure. `data` are its details: its `name`, and what that name brings along."""

    message: str = ""
    data: JsonObject = {}


def stored_error(journalled: object) -> StoredError:
    """Read a journalled error. Earlier versions imported an error as its line had it, so its members may have any
    type: a chat that has one must still open.
    """
    members = journalled if isinstance(journalled, dict) else {"message": journalled}
    message, data = members.get("message"), members.get("data")
    data = data if isinstance(data, dict) else {}
    if not isinstance(data.get("name", ""), str):
        data = {**data, "name": str(data["name"])}
    return StoredError(message=message if isinstance(message, str) else str(message or ""), data=data)


class Item(JournalValue, kw_only=True, frozen=True):
    """One part of a turn: a user message, a message, a thought, a tool call, a notice."""

    id: str
    turn_id: str
    type: str
    status: ItemStatus
    started_at: int
    ended_at: int | None = None
    title: str | None = None
    text: str | None = None
    content: list[Block] | None = None
    name: str | None = None
    kind: str | None = None
    input: Any = None
    output: JsonObject | None = None
    locations: list[JsonObject] | None = None
    changes: list[JsonObject] | None = None
    exit_code: int | None = None
    entries: list[JsonObject] | None = None
    error: StoredError | None = None
    rewritten: Rewritten | None = None
    not_run: dict[str, str] | None = None
    """Why a call did not run: a code, and a text."""

    @property
    def output_text(self) -> str:
        """What a tool call returned to the model; "" for an imported value of another form."""
        text = (self.output or {}).get("text")
        return text if isinstance(text, str) else ""

    @property
    def output_source(self) -> str | None:
        """The id of the output in the index."""
        source = (self.output or {}).get("source")
        return source if isinstance(source, str) else None

    @property
    def output_ref(self) -> str | None:
        """The blob with the whole output, when it is longer than `output_text`."""
        ref = (self.output or {}).get("ref")
        return ref if isinstance(ref, str) else None


def stored_item(journalled: JsonObject) -> Item:
    """Read a journalled item."""
    if journalled.get("error") is None:
        return msgspec.convert(journalled, Item)
    item = msgspec.convert({**journalled, "error": None}, Item)
    return msgspec.structs.replace(item, error=stored_error(journalled["error"]))


class Usage(JournalValue, kw_only=True, frozen=True):
    """Tokens, and their cost in US dollars by list prices; absent values are unknown."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None

    def plus(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=_sum_known(self.input_tokens, other.input_tokens),
            output_tokens=_sum_known(self.output_tokens, other.output_tokens),
            cached_tokens=_sum_known(self.cached_tokens, other.cached_tokens),
            cost=_sum_known(self.cost, other.cost),
        )


class SentBlock(JournalValue, kw_only=True, frozen=True):
    """A block of context that entered a chat with a turn. A file is stored as it was sent (`ref` is the
    text's blob, `hash` and `source` the file's bytes), whole or as the changes since `base`; other blocks are
    replaced by a line (`stub`)."""

    label: str
    path: str | None = None
    hash: str | None = None
    source: str | None = None
    base: str | None = None
    """The hash of the version that a diff starts from."""
    ref: str | None = None
    stub: str | None = None


class Branch(JournalValue, kw_only=True, frozen=True):
    """What follows a sibling of a turn: its newest turn, and how many turns it has."""

    turn_id: str
    tip: str
    turns: int
    started_at: int
    last_activity: int


class Turn(JournalValue, kw_only=True, frozen=True):
    """One prompt and everything that answers it."""

    id: str
    prompt_id: str
    items: list[Item]
    status: ItemStatus
    model: str
    engine: str
    started_at: int
    parent_turn_id: str | None = None
    siblings: list[str] = []
    branches: list[Branch] = []
    reason: EndReason | None = None
    error: StoredError | None = None
    usage: Usage | None = None
    ended_at: int | None = None
    hidden: bool = False
    context: list[SentBlock] = []
    """The context that was sent with its prompt; not for apps."""
    alone: bool = False
    """Whether it was answered without the turns before it, because the provider refused those."""


UserDecision = Literal["allow_once", "allow_chat", "allow_always", "deny_once", "deny_always"]
ResolvedBy = Literal["user", "rule", "policy", "expiry", "cancel", "restart"]
InputAction = Literal["accept", "decline", "cancel"]


class PermissionOutcome(JournalValue, kw_only=True, frozen=True):
    """How a permission was decided: the data of `permission.resolved`. `kind` and `subject` are set when there
    was no request, `code` when the call is denied."""

    permission_id: str
    item_id: str | None = None
    kind: str | None = None
    subject: str | None = None
    decision: UserDecision
    by: ResolvedBy
    reason: str | None = None
    feedback: str | None = None
    then: Literal["stop"] | None = None
    code: str | None = None
    hook: str | None = None
    rule_id: str | None = None

    @property
    def is_allowed(self) -> bool:
        return self.decision.startswith("allow")


class InputOutcome(JournalValue, kw_only=True, frozen=True):
    """How a question to the user ended: the data of `input.resolved`."""

    input_id: str
    action: InputAction
    by: ResolvedBy
    values: JsonObject | None = None


def output_media(item: Item) -> list[Block]:
    """Return the images and audio that a tool call returned; none for an imported value of another form."""
    given = (item.output or {}).get("content")
    try:
        return msgspec.convert(given or [], list[Block])
    except msgspec.ValidationError:
        return []


def with_output_media(item: Item, media: Sequence[Block]) -> Item:
    """Return the item with other media in its output."""
    output = {name: value for name, value in (item.output or {}).items() if name != "content"}
    if media:
        output["content"] = list(media)
    return msgspec.structs.replace(item, output=output)


Number = TypeVar("Number", int, float)


def _sum_known(left: Number | None, right: Number | None) -> Number | None:
    return right if left is None else left + (right or 0)
