"""What is purged without anybody asking: chats that were idle for too long, and blobs that nobody ever named."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from ..model.figures import Removed
from .chats import Chats
from .running import now

logger = logging.getLogger(__name__)

EVERY_S = 24 * 3600.0
"""A process that an app keeps running for weeks sweeps as well."""

DAY_MS = 24 * 3600 * 1000


def told(removed: Removed) -> dict[str, Any]:
    """What was removed, without zeros, in the words of the contract."""
    counts = msgspec.structs.asdict(removed)
    return {_camel(name): count for name, count in counts.items() if count}


async def sweep(chats: Chats, retention_days: int) -> Removed:
    """Purge the chats in which nothing has happened for so many days and that nobody has open here (0 keeps all), and
    forgotten blobs."""
    removed = await _purge_idle(chats, retention_days) if retention_days else Removed()
    removed = removed.plus(Removed(blobs=await chats.store.custody.sweep_blobs()))
    if removed != Removed():
        await chats.store.custody.give_back()
    return removed


async def _purge_idle(chats: Chats, days: int) -> Removed:
    open_here = {session.chat.id for session in chats.sessions}
    idle = await chats.store.custody.idle_since(now() - days * DAY_MS)
    removed, left = await chats.purge([id for id in idle if id not in open_here])
    if left:
        logger.info("idle chats are in use elsewhere and stay", extra={"chats": len(left)})
    return removed


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
