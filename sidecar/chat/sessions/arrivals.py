"""A prompt as a client sends it, and the receipt for it."""

from __future__ import annotations

from typing import Literal

import msgspec

from ...model.chats import PromptOverrides
from ...model.content import Block

Delivery = Literal["queue", "steer", "interrupt", "reject"]

QueueFate = Literal["pause", "keep", "clear"]
"""What becomes of waiting prompts when the turn before them is cancelled."""


class IncomingPrompt(msgspec.Struct, frozen=True):
    """A prompt as a client sends it. Its `content` is stored already; `replace` names the turn that it replaces."""

    id: str
    content: list[Block]
    delivery: Delivery = "queue"
    expect_turn_id: str | None = None
    replace: str | None = None
    overrides: PromptOverrides = PromptOverrides()


class PromptReceipt(msgspec.Struct, frozen=True):
    disposition: Literal["started", "queued", "steered", "duplicate", "command"]
    turn_id: str | None
    seq: int
    position: int | None = None


class CancelResult(msgspec.Struct, frozen=True):
    outcome: Literal["cancelled", "already_ended", "nothing_running"]
    end_seq: int | None = None
