"""Crash closure: what a dead owner left open gets its end, so that every turn and item has exactly one. Pure."""

from __future__ import annotations

import msgspec

from ..model.content import Turn, Usage
from ..model.events import NewEvent
from .running import ended, terminal_event, turn_ended


class Closure(msgspec.Struct, frozen=True):
    """The events that close a chat, and which turns and items they end."""

    events: list[NewEvent]
    turns: list[str]
    items: list[str]


def close(turn: Turn | None, state: str, queue_waits: bool) -> Closure:
    """Ends for the unfinished turn and its items; partial text is kept. Waiting prompts pause."""
    events: list[NewEvent] = []
    turns: list[str] = []
    items: list[str] = []
    if turn:
        open_items = [item for item in turn.items if item.status == "running"]
        events += [terminal_event(ended(item, "interrupted")) for item in open_items]
        events.append(turn_ended(turn.id, "interrupted", turn.usage or Usage(), None))
        turns, items = [turn.id], [item.id for item in open_items]
    if queue_waits:
        events.append(NewEvent("queue.updated", {"paused": True, "reason": "restart"}))
    if state != "idle":
        events.append(NewEvent("chat.state", {"state": "idle"}))
    return Closure(events, turns, items)
