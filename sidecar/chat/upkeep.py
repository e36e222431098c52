"""When a chat is compacted by itself: beside it when its window fills, before a turn when it is full."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
import msgspec

from ..model.events import NewEvent
from ..model.failures import Failure
from ..providers.base import Provider
from .config import Compaction
from .running import RunningTurn

if TYPE_CHECKING:
    from .answering import Answering
    from .asking import Question
    from .session import Session

BESIDE_S = 120.0
"""How long a turn waits for a compaction that is under way beside it; then the newest turns must do."""

logger = logging.getLogger(__name__)


async def make_room(
    session: Session, turn: RunningTurn, question: Question, provider: Provider, model: str
) -> bool:
    """Compact before a turn whose chat would not fit; False when it fits, or nothing can be done."""
    wanted = _wanted(session)
    if not wanted.enabled or question.fill < wanted.blocking:
        return False
    if session.compacting:
        with anyio.move_on_after(BESIDE_S):
            await session.compacted.wait()
            return True
        return False
    from . import compacting

    async def record(event: NewEvent) -> None:
        await turn.record(event)

    scale = compacting.scale_of(question, provider, model)
    try:
        return await compacting.compact(session, scale, "blocking", record=record) is not None
    except Failure as failure:
        logger.warning("no compaction", extra={"error": failure.message})
        return False


async def after_turn(session: Session, answering: Answering) -> None:
    """Compact beside the chat when its window is nearly full; no turn waits for it."""
    question = answering.last
    wanted = _wanted(session)
    if question is None or not wanted.enabled or question.fill < wanted.background:
        return
    if session.compacting or session.chat.turns < (wanted.postponed_until or 0):
        return
    if await session.store.compaction_was_undone(session.chat.id):
        return  # the user wanted the turns back: then only a full window compacts again
    from . import compacting

    try:
        provider, name = await answering.resolve(str(session.config["model"]))
        scale = compacting.scale_of(question, provider, name)
        await compacting.compact(session, scale, "background")
        answering.compacted()
    except Failure as failure:
        logger.warning("no compaction", extra={"error": failure.message})


def _wanted(session: Session) -> Compaction:
    return msgspec.convert(session.config.get("compaction") or {}, Compaction)
