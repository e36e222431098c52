"""What was said, read off turns and events."""

from __future__ import annotations

from .wire import Json


def item_text(item: Json) -> str:
    """The text of an item; a user's prompt has it in its content."""
    if item.get("content"):
        return "".join(block.get("text", "") for block in item["content"] if block["type"] == "text")
    return str(item.get("text") or "")


def last_messages(turns: list[Json]) -> list[str]:
    """The last message of each turn."""
    return [([item_text(i) for i in turn["items"] if i["type"] == "message"] or [""])[-1] for turn in turns]


def streamed_text(events: list[Json]) -> str:
    """All deltas of messages, one after the other."""
    return "".join(event["data"]["text"] for event in events if event["type"] == "message.delta")


def without_deltas(events: list[Json]) -> list[Json]:
    """All but deltas, which may be grouped differently each time that they are read."""
    return [event for event in events if not event["type"].endswith(".delta")]


def is_idle(event: Json) -> bool:
    return bool(event["type"] == "chat.state" and event["data"]["state"] == "idle")
