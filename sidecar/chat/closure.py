"""Crash closure: what a dead owner left open gets its end, so that every turn and item has exactly one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.content import Turn, Usage
from ..model.events import NewEvent
from ..store.work import RequestRecord
from .running import ended, now, terminal_event, turn_ended, unanswered


class Closure(msgspec.Struct, frozen=True):
    """The events that close a chat, and which turns and items they end."""

    events: list[NewEvent]
    turns: list[str]
    items: list[str]


def close(
    turn: Turn | None,
    state: str,
    queue_waits: bool,
    pending: Sequence[RequestRecord] = (),
    made: Sequence[NewEvent] = (),
) -> Closure:
    """Ends for the unfinished turn, its items and what it asked; partial text is kept. Waiting prompts pause.

    `made` are the ledger's entries of changes that the turn made and did not come to record.
    """
    events = [end_of(asked) for asked in pending]
    events += made
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


def end_of(asked: RequestRecord) -> NewEvent:
    """The end of what was asked of a person, or of a compaction that was under way."""
    if asked.kind == "compaction":
        item = {
            "id": asked.id,
            "turnId": "",
            "type": "compaction",
            "status": "interrupted",
            "startedAt": now(),
            "endedAt": now(),
            "title": "Not compacted",
        }
        return NewEvent("compaction.ended", {**asked.data, "item": item})
    return NewEvent(f"{asked.kind}.resolved", unanswered(asked.kind, asked.id, "restart"), asked.turn_id)
