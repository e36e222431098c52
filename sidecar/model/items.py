"""Events of one turn, folded into its items: finished ones as they ended, the others as far as they got."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from .content import Item, Kept
from .events import DELTA_TYPES, StoredEvent, decode


def fold(events: Iterable[StoredEvent]) -> list[Item]:
    """The items of a turn in the order in which they began."""
    items: dict[str, dict[str, Any]] = {}
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
    return [msgspec.convert(item, Item) for item in items.values()]


def context_of(events: Iterable[StoredEvent]) -> list[Kept]:
    """What entered the chat with this turn's prompt: as its first request had it."""
    for event in events:
        if event.type == "context.assembled":
            return msgspec.convert(decode(event.data).get("kept") or [], list[Kept])
    return []


def _put_text(item: dict[str, Any], text: str) -> None:
    if item["type"] == "tool":
        item["output"] = {"text": text, "truncated": False}
    else:
        item["text"] = text
