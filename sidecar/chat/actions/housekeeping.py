"""Purges without a request: chats that were idle for too long, blobs that nothing refers to, and old texts of
requests."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Set

import anyio.to_thread
import msgspec

from ...model.figures import PurgeCounts
from ...settings import MEMORY
from ...system.clock import DAY_MS, now
from ..sessions.chats import Chats
from . import agent_files, import_slices
from .agent_calls import AGENTS

logger = logging.getLogger(__name__)

SWEEP_INTERVAL_S = 24 * 3600.0
"""A process that an app runs for weeks sweeps as well."""


def removed_counts(removed: PurgeCounts) -> dict[str, int]:
    """What was removed, without zeros, with the names of the contract."""
    counts = msgspec.structs.asdict(removed)
    return {_camel(name): count for name, count in counts.items() if count}


async def sweep(
    chats: Chats, retention_days: int, sent_days: int, agent_days: Mapping[str, int] | None = None
) -> PurgeCounts:
    """Finish interrupted purges, then purge unreferenced blobs, the chats that were idle for so many days and are
    not open here, and the texts that were sent to models before so many days (0 keeps all). `agent_days` are those of
    the sessions of coding agents, by the agent's name.
    """
    await import_slices.sweep(chats.store)
    unfinished = await chats.store.retention.resume_removal()
    agent_days = agent_days or {}
    removed = PurgeCounts()
    if retention_days:
        # A longer time that is set for an agent counts as well as a shorter one.
        removed = await _purge_idle(chats, retention_days, spared=await _chats_of(chats, agent_days))
    for agent, days in agent_days.items():
        removed = removed.plus(await _purge_idle(chats, days, agent))
    if chats.store.data_dir != MEMORY:
        await anyio.to_thread.run_sync(agent_files.remove_stale, chats.store.data_dir)
    removed = removed.plus(PurgeCounts(blobs=await chats.store.retention.sweep_blobs()))
    expired = await chats.store.sent_requests.remove_before(now() - sent_days * DAY_MS) if sent_days else 0
    if unfinished or expired or removed != PurgeCounts():
        await chats.store.retention.shrink_files()
    return removed


async def _chats_of(chats: Chats, agents: Iterable[str]) -> set[int]:
    found: set[int] = set()
    for agent in agents:
        found.update(await chats.store.retention.idle_since(now(), (AGENTS, f"{agent}:")))
    return found


async def _purge_idle(
    chats: Chats, days: int, agent: str | None = None, spared: Set[int] = frozenset()
) -> PurgeCounts:
    stay = spared | {session.chat.id for session in chats.sessions}
    named = (AGENTS, f"{agent}:") if agent else None
    idle = await chats.store.retention.idle_since(now() - days * DAY_MS, named)
    removed, left = await chats.purge([id for id in idle if id not in stay])
    if left:
        logger.info("idle chats are in use elsewhere and stay", extra={"chats": len(left)})
    return removed


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
