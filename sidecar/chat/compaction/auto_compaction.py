"""Compacts a chat automatically: in the background when its window fills, before a turn when it is full."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from ...model.events import NewEvent
from ...model.failures import Failure
from ...providers.base import Provider
from ...system.lazy import lazy_module
from ..journal.running_turn import RunningTurn
from .chat import CompactableChat, LastRequest

if TYPE_CHECKING:
    from ..request.build import BuiltRequest
    from . import compactor
else:
    compactor = lazy_module("sidecar.chat.compaction.compactor")

BACKGROUND_WAIT_S = 120.0
"""How long a turn waits for a compaction in the background; then it is sent with the newest turns that fit."""

logger = logging.getLogger(__name__)


async def compact_if_full(
    chat: CompactableChat, turn: RunningTurn, built: BuiltRequest, provider: Provider, model: str
) -> bool:
    """Compact before a turn whose chat would not fit; False when it fits, or nothing can be done."""
    wanted = chat.config.compaction
    if not wanted.enabled or built.fill < wanted.blocking:
        return False
    if chat.compacting:
        with anyio.move_on_after(BACKGROUND_WAIT_S):
            await chat.compaction_ended.wait()
            return True
        return False

    async def record(event: NewEvent) -> None:
        await turn.record(event)

    budget = compactor.compaction_budget(built, provider, model)
    try:
        return await compactor.compact(chat, budget, "blocking", record=record) is not None
    except Failure as failure:
        logger.warning("no compaction", extra={"error": failure.message})
        return False


async def compact_after_turn(chat: CompactableChat, request: LastRequest) -> None:
    """Compact in the background when the context window is nearly full; no turn waits for it."""
    built = request.last_request
    wanted = chat.config.compaction
    if built is None or not wanted.enabled or built.fill < wanted.background:
        return
    if chat.compacting or chat.chat.turns < (wanted.postponed_until or 0):
        return
    if await chat.store.compactions.was_undone(chat.chat.id):
        return  # the user has undone one: then only a full window compacts again
    try:
        provider, name = await request.resolve(chat.config.model)
        budget = compactor.compaction_budget(built, provider, name)
        await compactor.compact(chat, budget, "background")
        request.compaction_ended()
    except Failure as failure:
        logger.warning("no compaction", extra={"error": failure.message})
