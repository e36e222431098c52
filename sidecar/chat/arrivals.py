"""A prompt as it arrives at a chat, and what becomes of it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..model.content import Block

Delivery = Literal["queue", "steer", "interrupt", "reject"]


class Incoming(msgspec.Struct, frozen=True):
    """A prompt as it comes in. `content` is kept already; `replace` names the turn that it stands in for."""

    id: str
    content: list[Block]
    delivery: Delivery = "queue"
    expect_turn_id: str | None = None
    replace: str | None = None
    overrides: dict[str, Any] = {}


class Sent(msgspec.Struct, frozen=True):
    disposition: Literal["started", "queued", "steered", "duplicate", "command"]
    turn_id: str | None
    seq: int
    position: int | None = None


class Cancelled(msgspec.Struct, frozen=True):
    outcome: Literal["cancelled", "already_ended", "nothing_running"]
    end_seq: int | None = None
