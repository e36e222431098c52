"""Translates the events of a chat to the updates of a session in version 1 of the protocol.

Knows what it has said of an item that is not finished. While it replays, pieces of a text are collected, and the
text is said once. Does no IO: `stored` are the texts and bytes that the events name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...model import JsonObject
from ...model.content import Block, Item, stored_error, stored_item
from ...model.events import EventData, StoredEvent
from . import notices, tool_updates
from .content import text_block, written_block
from .messages import AcpResult, Update
from .tool_updates import MAX_SHOWN, Stored

NO_STORED = Stored()


class Audience(msgspec.Struct, frozen=True):
    """What the client shows, by its capabilities, and the prompts that it has sent itself: their texts by their ids."""

    shows_notices: bool
    shows_compactions: bool
    sent: dict[str, str]


class Updates:
    """The updates of one session. `project` is its folder; `options` returns all that can be chosen, for the
    configuration of an event.
    """

    version = 1

    def __init__(
        self, audience: Audience, project: str | None, options: Callable[[JsonObject], Sequence[AcpResult]]
    ) -> None:
        self._audience = audience
        self._project = project
        self._options = options
        self._replays = False
        self._said: dict[str, int] = {}
        """How much of the text of each running message or thought was said."""
        self._held: dict[str, tuple[str, list[str]]] = {}
        """The texts that a replay collects, by the items that are not finished."""
        self._printed: dict[str, str] = {}
        """What each running call has printed."""
        self._window: int | None = None
        self._mode: str | None = None
        self._usage: Update | None = None

    def begin_replay(self) -> None:
        self._replays = True

    def skip(self, event: StoredEvent, data: EventData) -> None:
        """Take an event that the client has seen, and say nothing."""
        self._replays = False
        self.of(event, data)
        self._replays = True

    def end_replay(self) -> list[Update]:
        """The texts so far of what is not finished, and how full the window is."""
        self._replays = False
        updates: list[Update] = []
        for id, (kind, pieces) in self._held.items():
            text = "".join(pieces)
            self._said[id] = self._said.get(id, 0) + len(text)
            updates += [self._chunk(kind, id, text)] if text else []
        self._held = {}
        return updates + ([self._usage] if self._usage else [])

    def answered(self, id: str, text: str) -> list[Update]:
        """The answer to a prompt that is not stored, such as a misspelt command."""
        return [self._chunk("message", id, text)]

    def notice(self, words: notices.Words) -> list[Update]:
        """A notice, if the client shows them."""
        severity, title, description = words
        update: Update = {"sessionUpdate": "notice", "severity": severity, "title": title}
        update |= {"description": description} if description else {}
        return [update] if self._audience.shows_notices else []

    def of(self, event: StoredEvent, data: EventData, stored: Stored = NO_STORED) -> list[Update]:
        """The updates that an event becomes."""
        family, _, moment = event.type.partition(".")
        match family:
            case "message" | "thought":
                return self._text(family, moment, data)
            case "tool":
                return self._tool(moment, data, stored)
            case "plan":
                return self._plan(stored_item(data["item"]))
            case "compaction":
                return self._compaction(moment, data)
        match event.type:
            case "prompt.accepted":
                return self._prompt(data, stored)
            case "command.result":
                return self._command(data)
            case "context.assembled":
                self._window = data.get("window")
            case "usage.updated":
                return self._usage_now(data)
            case "turn.ended":
                return self._turn_ended(event, data)
        return [] if self._replays else self._chat_event(event, data)

    def _chat_event(self, event: StoredEvent, data: EventData) -> list[Update]:
        """Updates about the session itself, which no replay has."""
        match event.type:
            case "chat.renamed":
                return [session_info(data.get("title"), event.ts)]
            case "config.updated":
                return self._configured(data.get("config") or {})
            case "notice":
                return self._notice(event, notices.notice_words(data["code"], data.get("params") or {}))
            case "error":
                words = notices.retry_words(data["error"], data.get("attempt") or 1)
                return self._notice(event, words)
            case "chat.state":
                return self._state(data["state"])
        return []

    def _text(self, kind: str, moment: str, data: EventData) -> list[Update]:
        if moment == "started":
            id = data["item"]["id"]
            self._held[id] = (kind, [])
            self._said[id] = 0
            return []
        if moment == "delta":
            id, text = data["itemId"], data["text"]
            if self._replays:
                self._held.setdefault(id, (kind, []))[1].append(text)
                return []
            if id in self._said:
                self._said[id] += len(text)
            return [self._chunk(kind, id, text)]
        item = stored_item(data["item"])
        self._held.pop(item.id, None)
        # A message whose start was not seen is followed from its middle: what is before was shown elsewhere.
        said = self._said.pop(item.id, 0 if self._replays else None)
        rest = (item.text or "")[said:] if said is not None else ""
        return [self._chunk(kind, item.id, rest)] if rest else []

    def _chunk(self, kind: str, id: str, text: str) -> Update:
        role = {"message": "agent_message_chunk", "thought": "agent_thought_chunk"}[kind]
        return {"sessionUpdate": role, "messageId": id, "content": text_block(text)}

    def _prompt(self, data: EventData, stored: Stored) -> list[Update]:
        """The user's message. The client shows what it has sent itself."""
        if not data.get("item") or self._is_shown(data):
            return []
        return self._user_message(stored_item(data["item"]), stored)

    def _is_shown(self, data: EventData) -> bool:
        """Whether the client shows a prompt already, because it has sent it."""
        return data["promptId"] in self._audience.sent and not self._replays

    def _user_message(self, item: Item, stored: Stored) -> list[Update]:
        return [self._user_chunk(item.id, block) for block in self._blocks(item.content or [], stored)]

    def _user_chunk(self, id: str, block: JsonObject) -> Update:
        return {"sessionUpdate": "user_message_chunk", "messageId": id, "content": block}

    def _blocks(self, content: Sequence[Block], stored: Stored) -> list[JsonObject]:
        return [written_block(block, stored.media) for block in content]

    def _tool(self, moment: str, data: EventData, stored: Stored) -> list[Update]:
        if moment == "output":
            return self._output(data["itemId"], data["text"])
        item = stored_item(data["item"])
        if moment == "started":
            started = tool_updates.started(item, self._project, self.version)
            return [{"sessionUpdate": self._first_tool_update(), **started}]
        if moment == "ended":
            self._printed.pop(item.id, None)
            update = tool_updates.ended(item, self._project, self.version, stored)
        else:
            update = tool_updates.changed(item, self._project, self.version, stored)
        return [{"sessionUpdate": "tool_call_update", **update}]

    def _first_tool_update(self) -> str:
        return "tool_call"

    def _output(self, id: str, text: str) -> list[Update]:
        shown = self._printed[id] = (self._printed.get(id, "") + text)[-2 * MAX_SHOWN :]
        if self._replays:
            return []
        return [{"sessionUpdate": "tool_call_update", **tool_updates.printed(id, shown)}]

    def _plan(self, item: Item) -> list[Update]:
        return [{"sessionUpdate": "plan", "entries": plan_entries(item)}]

    def _command(self, data: EventData) -> list[Update]:
        """The answer of a command, after its name where the client has not sent it: no more of it is stored."""
        asked = text_block(f"/{data['command']}")
        return [
            *([] if self._is_shown(data) else [self._user_chunk(f"{data['promptId']}-command", asked)]),
            self._chunk("message", data["promptId"], data["markdown"]),
        ]

    def _compaction(self, moment: str, data: EventData) -> list[Update]:
        id = data.get("compactionId")
        if id is None or moment == "undone" or not self._audience.shows_compactions:
            return []
        about: Update = {"compactionId": id}
        update = {"sessionUpdate": "compaction_update", **about}
        if moment == "started":
            # Empty, as a client that loads the session again has the summary already.
            return [{**update, "status": "in_progress", "summary": []}]
        item = stored_item(data["item"])
        if item.error:
            return [{**update, "status": "failed", "error": item.error.message}]
        summary = {
            "sessionUpdate": "compaction_summary_chunk",
            **about,
            "content": text_block(item.text or ""),
        }
        return [*([summary] if item.text else []), {**update, "status": "completed"}]

    def _usage_now(self, data: EventData) -> list[Update]:
        window = data.get("window") or {}
        size = self._window or window.get("budget")
        if window.get("used") is None or not size:
            return []
        update: Update = {"sessionUpdate": "usage_update", "used": window["used"], "size": size}
        cost = (data.get("total") or {}).get("cost")
        self._usage = update | ({"cost": {"amount": cost, "currency": "USD"}} if cost is not None else {})
        return [] if self._replays else [self._usage]

    def _turn_ended(self, event: StoredEvent, data: EventData) -> list[Update]:
        """A turn that failed, in a replay: live, the answer to its prompt has the error."""
        if not self._replays or data["reason"] != "error":
            return []
        error = stored_error(data.get("error"))
        text = notices.quoted(("error", error.message or "The turn failed", None))
        return [self._chunk("message", f"{event.turn_id}-error", text)]

    def _configured(self, config: EventData) -> list[Update]:
        mode, before = config.get("mode"), self._mode
        self._mode = mode
        updates: list[Update] = [
            {"sessionUpdate": "config_option_update", "configOptions": list(self._options(config))}
        ]
        if mode is not None and mode != before:
            updates.append({"sessionUpdate": "current_mode_update", "currentModeId": mode})
        return updates

    def _notice(self, event: StoredEvent, words: notices.Words | None) -> list[Update]:
        if words is None:
            return []
        if not self._audience.shows_notices:
            return [self._chunk("message", f"notice-{event.seq}", notices.quoted(words))]
        return self.notice(words)

    def _state(self, state: str) -> list[Update]:
        return []


def session_info(title: str | None, ts: int) -> Update:
    return {"sessionUpdate": "session_info_update", "title": title, "updatedAt": iso_time(ts)}


def iso_time(ts: int) -> str:
    """A time of the journal as ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ts / 1000)) + f".{ts % 1000:03d}Z"


def plan_entries(item: Item) -> list[Any]:
    """The steps of a plan; ours have no priorities."""
    return [
        {"content": entry.get("content", ""), "priority": "medium", "status": entry.get("status", "pending")}
        for entry in item.entries or []
    ]
