"""Crash closure: ends the turns and items that a dead owner left open, so that each has exactly one end. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...model.content import Turn, Usage
from ...model.events import NewEvent
from ...store.tables.work import RequestRecord
from ...system.clock import now
from ..journal.running_turn import terminal_event, turn_ended_event, unanswered_outcome, with_end


class Closure(msgspec.Struct, frozen=True):
    """The events that close a chat, and which turns and items they end."""

    events: list[NewEvent]
    turns: list[str]
    items: list[str]


def close_crashed(
    turn: Turn | None,
    state: str,
    queue_waits: bool,
    pending: Sequence[RequestRecord] = (),
    recovered: Sequence[NewEvent] = (),
) -> Closure:
    """End the unfinished turn, its items and its requests; partial text is kept. Waiting prompts are paused.

    `recovered` are the patch events of changes that the turn made and did not record.
    """
    # In the order of a normal end: requests, items, the turn, and the state last.
    events = [end_event(request) for request in pending]
    events += recovered
    turns: list[str] = []
    items: list[str] = []
    if turn:
        open_items = [item for item in turn.items if item.status == "running"]
        events += [terminal_event(with_end(item, "interrupted")) for item in open_items]
        events.append(turn_ended_event(turn.id, "interrupted", turn.usage or Usage(), None))
        turns, items = [turn.id], [item.id for item in open_items]
    if queue_waits:
        events.append(NewEvent("queue.updated", {"paused": True, "reason": "restart"}))
    if state != "idle":
        events.append(NewEvent("chat.state", {"state": "idle"}))
    return Closure(events, turns, items)


def end_event(request: RequestRecord) -> NewEvent:
    """The event that ends a request to the user, a compaction or an import that was in progress."""
    if request.kind == "compaction":
        item = {
            "id": request.id,
            "turnId": "",
            "type": "compaction",
            "status": "interrupted",
            "startedAt": now(),
            "endedAt": now(),
            "title": "Not compacted",
        }
        return NewEvent("compaction.ended", {**request.data, "item": item})
    if request.kind == "import":
        return NewEvent("import.ended", {"importId": request.id, "outcome": "interrupted"})
    return NewEvent(
        f"{request.kind}.resolved", unanswered_outcome(request.kind, request.id, "restart"), request.turn_id
    )
