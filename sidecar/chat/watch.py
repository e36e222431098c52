"""Follows what other processes do to the chats of this database, and tells who follows them here."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

import anyio

from ..model.chats import Chat
from ..model.failures import Failure
from ..store import Store
from .chats import Chats

logger = logging.getLogger(__name__)

WATCH_S = 0.15
"""The contract gives readers live events within 250 ms; this leaves time to read and send them."""

RENEW_S = 5.0
"""A quarter of the time after which a lease ends."""

AGAIN_S = 1.0
"""How soon the database is asked again after it could not be read."""

Change = Literal["created", "updated", "deleted"]


class Watch:
    """`announce` is told of every chat that changed, by this process or another."""

    def __init__(self, chats: Chats, announce: Callable[[str, Change], None]) -> None:
        self._chats = chats
        self._store: Store = chats.store
        self._announce = announce
        self._known: set[int] = set()

    async def run(self) -> None:
        version = -1
        revision: int | None = None
        while True:
            try:
                if revision is None:
                    revision = await self._store.revision()
                await anyio.sleep(WATCH_S)
                seen, latest = await self._store.changed_elsewhere(), await self._store.revision()
                if seen != version or latest != revision:
                    changed = await self._store.changed_since(revision)
                    await self._follow(changed)
                    version, revision = seen, latest
            except Failure as failure:
                logger.warning("cannot look for changes", extra={"error": failure.message})
                await anyio.sleep(AGAIN_S)

    async def renew(self) -> None:
        """Keep the leases of this process alive."""
        while True:
            await anyio.sleep(RENEW_S)
            if any(session.holds_lease for session in self._chats.sessions):
                try:
                    await self._store.renew_leases()
                except Failure as failure:
                    logger.warning("cannot renew leases", extra={"error": failure.message})

    async def _follow(self, changed: list[Chat]) -> None:
        for chat in changed:
            if chat.deleted or self._chats.replaced(chat):
                self._chats.forget(chat.key.session_id)
            self._announce(chat.key.session_id, self._change(chat))
        await self._notice_losses()
        others = {session.chat.id: session for session in self._chats.sessions if not session.holds_lease}
        if others:
            for id, last_seq in (await self._store.last_seqs(list(others))).items():
                if not others[id].holds_lease:
                    others[id].recorder.feed.moved(max(last_seq, others[id].recorder.feed.last_seq))

    async def _notice_losses(self) -> None:
        """A process that was stopped for too long finds that another has its chats now."""
        holding = [
            session for session in self._chats.sessions if session.holds_lease and not session.recorder.busy
        ]
        held = await self._store.held_leases() if holding else {}
        for session in holding:
            if session.holds_lease and held.get(session.chat.id) != session.recorder.generation:
                session.dispossessed()

    def _change(self, chat: Chat) -> Change:
        if chat.deleted:
            return "deleted"
        new = chat.id not in self._known and chat.turns == 0
        self._known.add(chat.id)
        return "created" if new else "updated"
