"""What waits for a person in this process: permissions and questions, each answered once.

The journal holds what was asked and how it ended; here is only who waits for it. Whoever answers first decides,
and is told what was recorded; a late answer is told the same.
"""

from __future__ import annotations

from typing import Any, Literal

import anyio

from ..model.failures import Failure, Refused
from ..store.leases import LeaseHeld
from ..store.store import Store

Kind = Literal["permission", "input"]


class Waiting:
    """A request under way. `outcome` is what was answered; it is `recorded` once that is committed."""

    def __init__(self) -> None:
        self.outcome: dict[str, Any] | None = None
        self.recorded: dict[str, Any] | None = None
        self._answered = anyio.Event()
        self._done = anyio.Event()

    def answer(self, outcome: dict[str, Any]) -> bool:
        """Take the first answer; False for one that comes too late."""
        if self.outcome is not None:
            return False
        self.outcome = outcome
        self._answered.set()
        return True

    def close(self, recorded: dict[str, Any] | None) -> None:
        """It is over: what the journal says, or None when it never got there."""
        self.recorded = recorded
        self._done.set()

    async def answered(self) -> dict[str, Any]:
        await self._answered.wait()
        assert self.outcome is not None
        return self.outcome

    async def closed(self) -> dict[str, Any] | None:
        await self._done.wait()
        return self.recorded


class Requests:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, Waiting] = {}

    def open(self, id: str) -> Waiting:
        waiting = self._waiting[id] = Waiting()
        return waiting

    def close(self, id: str, recorded: dict[str, Any] | None) -> None:
        waiting = self._waiting.pop(id, None)
        if waiting:
            waiting.close(recorded)

    async def answer(self, kind: Kind, id: str, outcome: dict[str, Any]) -> dict[str, Any]:
        """Answer a request; returns what was recorded, or refuses because it is over."""
        waiting = self._waiting.get(id)
        if waiting:
            first = waiting.answer(outcome)
            recorded = await waiting.closed()
            if first and recorded is not None and recorded.get("by") == "user":
                return recorded
        raise await self._why_not(kind, id)

    async def _why_not(self, kind: Kind, id: str) -> Failure:
        found = await self._store.request(id)
        if found is None or found[0].kind != kind:
            return Refused("not_found", f"There is no {kind} {id[:80]!r}", params={"field": f"{kind}Id"})
        record, chat = found
        lease = (await self._store.snapshot(chat.id, 0, 0)).lease
        if record.outcome is None and lease and self._store.other_holder(lease):
            return LeaseHeld(lease)
        # Its owner is dead, and whoever opens the chat for writing will close it so.
        outcome = record.outcome or {f"{kind}Id": id, "by": "restart"}
        return Refused(
            "request_closed",
            f"The {kind} {id[:80]!r} has ended already",
            params={"field": f"{kind}Id"},
            facts={"outcome": outcome, "sessionId": chat.key.session_id, "chatId": chat.key.chat_id},
        )
