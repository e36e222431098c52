"""Watches the database for changes by other processes, and notifies the followers of those chats in this one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import anyio

from ...model.chats import Chat, Lease
from ...model.failures import Failure
from ...store import Store
from ...system.lazy import lazy_module
from .chats import Chats
from .session import Session

if TYPE_CHECKING:
    from . import handover
else:
    handover = lazy_module("sidecar.chat.sessions.handover")

logger = logging.getLogger(__name__)

WATCH_INTERVAL_S = 0.15
"""The contract gives readers live events within 250 ms; this leaves time to read and send them."""

RENEW_INTERVAL_S = 5.0
"""A quarter of the time after which a lease expires."""

RETRY_S = 1.0
"""How soon the database is read again after it could not be read."""

FileEvent = Literal["created", "updated", "deleted"]


class ChangeWatcher:
    """Calls `announce` for every chat that changed, in this process or another, and `announce_access` for every chat
    that another process begins or ceases to write to. Executes what other processes hand to this one.
    """

    def __init__(
        self,
        chats: Chats,
        announce: Callable[[str, FileEvent], None],
        announce_access: Callable[[Session], None],
    ) -> None:
        self._chats = chats
        self._store: Store = chats.store
        self._announce = announce
        self._announce_access = announce_access
        self._known: set[int] = set()

    async def run(self) -> None:
        version = -1
        revision: int | None = None
        while True:
            try:
                if revision is None:
                    # The first look only sets the starting point: what is there already is no change.
                    revision = await self._store.chats.revision()
                await anyio.sleep(WATCH_INTERVAL_S)
                seen, latest = await self._store.changed_elsewhere(), await self._store.chats.revision()
                if is_changed := seen != version or latest != revision:
                    changed = await self._store.chats.changed_since(revision)
                    await self._announce_changes(changed)
                    await self._serve_others()
                await self._check_access(is_changed)
                if is_changed:
                    # After the announcements: when one fails, the next round announces again.
                    version, revision = seen, latest
            except Failure as failure:
                logger.warning("cannot read changes of other processes", extra={"error": failure.message})
                await anyio.sleep(RETRY_S)

    async def renew(self) -> None:
        """Renew the leases of this process."""
        while True:
            await anyio.sleep(RENEW_INTERVAL_S)
            if any(session.holds_lease for session in self._chats.sessions):
                try:
                    await self._store.leases.renew()
                except Failure as failure:
                    # Tried again at the next interval: a lease lasts for several (`LEASE_MS`).
                    logger.warning("cannot renew leases", extra={"error": failure.message})

    async def _announce_changes(self, changed: list[Chat]) -> None:
        for chat in changed:
            if chat.deleted or self._chats.is_replaced(chat):
                self._chats.forget(chat.key.session_id)
            self._announce(chat.key.session_id, self._change_kind(chat))
        await self._drop_lost_leases()
        others = {session.chat.id: session for session in self._chats.sessions if not session.holds_lease}
        if others:
            for id, last_seq in (await self._store.chats.last_seqs(list(others))).items():
                # Asked again: a turn may have begun here while the seqs were read, and its own commits publish
                # themselves.
                if not others[id].holds_lease:
                    others[id].recorder.feed.catch_up(max(last_seq, others[id].recorder.feed.last_seq))

    async def _serve_others(self) -> None:
        """Execute the requests of other processes for chats that this one writes to."""
        own = {session.chat.id: session for session in self._chats.sessions if session.holds_lease}
        if not own:
            return
        services = self._chats.services
        for row in await self._store.handed.take(list(own)):
            services.tasks.start_soon(handover.serve, own[row.chat], self._store, services.requests, row)

    async def _check_access(self, is_changed: bool) -> None:
        """Announce chats that another process begins or ceases to write to. One that is killed changes nothing in the
        database, so what is known to be held is looked at each time.
        """
        looked = {session: session.holder for session in self._chats.sessions}
        if not (is_changed or any(looked.values())):
            return
        leases = await self._store.leases.of([session.chat.id for session in looked])
        for session, known in looked.items():
            # A `chat/open` may have looked later than this, and its answer says what it saw.
            if session.holder is known:
                lease = leases.get(session.chat.id)
                held = not session.holds_lease and self._store.leases.other_holder(lease) is not None
                session.holder = lease if held else None
                if _owner(session.holder) != _owner(known):
                    self._announce_access(session)

    async def _drop_lost_leases(self) -> None:
        """End turns of chats whose lease another process took while this process was stopped for too long."""
        holding = [
            session for session in self._chats.sessions if session.holds_lease and not session.recorder.busy
        ]
        held = await self._store.leases.held() if holding else {}
        for session in holding:
            # The lease may have been released while the store was asked.
            if session.holds_lease and held.get(session.chat.id) != session.recorder.generation:
                session.lose_lease()

    def _change_kind(self, chat: Chat) -> FileEvent:
        if chat.deleted:
            return "deleted"
        new = chat.id not in self._known and chat.turns == 0
        self._known.add(chat.id)
        return "created" if new else "updated"


def _owner(lease: Lease | None) -> str | None:
    return lease.owner.instance if lease and lease.owner else None
