"""An event as an app meets it: the contract's, with its parts at hand. Knows nothing of order or delivery."""

from __future__ import annotations

from typing import Any

import msgspec
from sidecar_protocol import messages as m


class Event(m.Event, kw_only=True, frozen=True):
    """A journalled fact of a chat. `type` says what `data` holds: `sidecar_protocol.messages.EVENT_TYPES`."""

    @property
    def first(self) -> int:
        """The first seq that this event stands for: a coalesced run of deltas has several."""
        return self.seq if self.from_ is None else self.from_

    @property
    def text(self) -> str:
        """What a delta or a tool's output adds, and a command's result as Markdown; empty for every other type."""
        if self.type == "command.result":
            return str(self.data.get("markdown", ""))
        if not self.type.endswith((".delta", ".output")):
            return ""
        return str(self.data.get("text", ""))

    @property
    def item(self) -> m.Item | None:
        """The whole item, where the event carries one."""
        raw = self.data.get("item")
        return None if raw is None else msgspec.convert(raw, m.Item)

    @property
    def reason(self) -> str | None:
        """Why the turn ended: `end_turn`, `cancelled`, `error`, `interrupted`, …"""
        return self.data.get("reason") if self.type == "turn.ended" else None

    @property
    def error(self) -> m.ErrorObject | None:
        """The error of `turn.ended` or `error`, if there is one."""
        raw = self.data if self.type == "error" else self.data.get("error")
        return None if raw is None else msgspec.convert(raw, m.ErrorObject)

    def belongs_to(self, turn_id: str) -> bool:
        return self.turn_id == turn_id or self.data.get("turnId") == turn_id


def decode(params: Any) -> Event:
    """An event from the wire. Raises msgspec.ValidationError for what is none."""
    return msgspec.convert(params, Event)


def decode_page(result: Any) -> list[Event]:
    """The events of an `events/read` result."""
    return msgspec.convert(result["events"], list[Event])
