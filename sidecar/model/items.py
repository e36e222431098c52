"""Folds the events of one turn into its items: finished ones as they ended, the others as far as they got."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from . import JsonObject
from .content import Item, SentBlock, stored_item
from .events import DELTA_TYPES, StoredEvent, decode

HISTORY_LEFT_OUT = "history_left_out"
"""The code of the notice that a turn is answered without the turns before it, and without its context."""

CONTEXT_LEFT_OUT = "context_left_out"
"""The code of the notice that a turn is answered without the files and other blocks of its prompt."""


def fold_items(events: Iterable[StoredEvent]) -> list[Item]:
    """Return the items of a turn in the order in which they began."""
    items: dict[str, JsonObject] = {}
    parts: dict[str, list[str]] = {}
    for event in events:
        data = decode(event.data)
        if event.type in DELTA_TYPES:
            parts.setdefault(data["itemId"], []).append(data["text"])
        elif item := data.get("item"):
            items[item["id"]] = item
            if item["status"] != "running":
                parts.pop(item["id"], None)
    for id, texts in parts.items():
        if id in items:
            _put_text(items[id], "".join(texts))
    return [stored_item(item) for item in items.values()]


def sent_blocks(events: Sequence[StoredEvent]) -> list[SentBlock]:
    """Return the context that entered the chat with this turn's prompt: that of its first request, unless the
    provider refused it."""
    if _notices(events) & {HISTORY_LEFT_OUT, CONTEXT_LEFT_OUT}:
        return []
    for event in events:
        if event.type == "context.assembled":
            return msgspec.convert(decode(event.data).get("kept") or [], list[SentBlock])
    return []


def is_alone(events: Sequence[StoredEvent]) -> bool:
    """Return whether the turn was answered without the turns before it."""
    return HISTORY_LEFT_OUT in _notices(events)


def _notices(events: Sequence[StoredEvent]) -> set[object]:
    return {decode(event.data).get("code") for event in events if event.type == "notice"}


def _put_text(item: JsonObject, text: str) -> None:
    if item["type"] == "tool":
        item["output"] = {"text": text, "truncated": False}
    else:
        item["text"] = text
