"""Translates the events of a chat to the updates of a session in version 2 of the protocol.

What differs from version 1: messages are named by an id and replaced as a whole, tool calls have one kind of update,
pieces of output are appended, and the state of the session is an update of its own.
"""

from __future__ import annotations

from typing import Any

from ...model.content import Item, stored_error, stored_item
from ...model.events import EventData, StoredEvent
from . import errors, tool_updates
from .content import text_block
from .messages import Update
from .tool_updates import Stored
from .updates import NO_STORED, Updates, plan_entries

STOP_REASONS = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "max_steps": "max_turn_requests",
    "refusal": "refusal",
    "cancelled": "cancelled",
    "interrupted": "cancelled",
}


class UpdatesV2(Updates):
    version = 2

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._ended: Update = {}

    def of(self, event: StoredEvent, data: EventData, stored: Stored = NO_STORED) -> list[Update]:
        if event.type == "turn.ended":
            self._ended = _stop(data)
        return super().of(event, data, stored)

    def snapshot(self, state: str) -> Update:
        """The state of the session as it is now."""
        return {"sessionUpdate": "state_update", **self._state_members(state)}

    def _prompt(self, data: EventData, stored: Stored) -> list[Update]:
        """Every client gets every message: the answer to the prompt only names it."""
        return self._user_message(stored_item(data["item"]), stored) if data.get("item") else []

    def _user_message(self, item: Item, stored: Stored) -> list[Update]:
        content = self._blocks(item.content or [], stored)
        return [{"sessionUpdate": "user_message", "messageId": item.id, "content": content}]

    def _first_tool_update(self) -> str:
        return "tool_call_update"

    def _output(self, id: str, text: str) -> list[Update]:
        content = {"type": "content", "content": text_block(tool_updates.fenced(text))}
        return [{"sessionUpdate": "tool_call_content_chunk", "toolCallId": id, "content": content}]

    def _plan(self, item: Item) -> list[Update]:
        plan = {"type": "items", "planId": item.id, "entries": plan_entries(item)}
        return [{"sessionUpdate": "plan_update", "plan": plan}]

    def answered(self, id: str, text: str) -> list[Update]:
        return self._local(id, self._audience.sent.get(id, ""), text)

    def _command(self, data: EventData) -> list[Update]:
        id = data["promptId"]
        return self._local(id, self._audience.sent.get(id) or f"/{data['command']}", data["markdown"])

    def _local(self, id: str, asked: str, said: str) -> list[Update]:
        """What was answered without a turn: it has the same states as one."""
        message: Update = {
            "sessionUpdate": "user_message",
            "messageId": id,
            "content": [text_block(asked)],
        }
        answer = self._chunk("message", id, said)
        if self._replays:
            return [message, answer]
        state = {"sessionUpdate": "state_update"}
        return [
            message,
            {**state, "state": "running"},
            answer,
            {**state, "state": "idle", "stopReason": "end_turn"},
        ]

    def _configured(self, config: EventData) -> list[Update]:
        return [{"sessionUpdate": "config_option_update", "configOptions": list(self._options(config))}]

    def _state(self, state: str) -> list[Update]:
        return [self.snapshot(state)]

    def _state_members(self, state: str) -> Update:
        if state == "idle":
            return {"state": "idle", **self._ended}
        return {"state": "requires_action" if state == "requires_action" else "running"}


def _stop(data: EventData) -> Update:
    if data["reason"] in STOP_REASONS:
        return {"stopReason": STOP_REASONS[data["reason"]]}
    error = errors.turn_error(stored_error(data["error"]) if data.get("error") else None)
    return {"stopReason": "error", "error": error.to_wire()}
