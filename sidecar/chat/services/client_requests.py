"""Requests that wait for the user in this process: permissions and questions, each answered once.

The journal stores the request and its outcome; this module only knows who waits. The first answer decides, and gets
the recorded outcome; a late answer gets the same.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

from ...model.content import InputOutcome, PermissionOutcome
from ...model.failures import Failure, Refused, StorageFailed
from ...store.store import Store
from ...store.tables.leases import LeaseHeld
from ..journal.running_turn import RequestKind
from .client_app import InputAnswer, PermissionAnswer

logger = logging.getLogger(__name__)

RETRY_S = 1.0
"""How soon the user is asked again when the answer could not be stored."""


AnyAnswer = TypeVar("AnyAnswer", PermissionAnswer, InputAnswer)
AnyOutcome = TypeVar("AnyOutcome", PermissionOutcome, InputOutcome)


class PendingRequest(Generic[AnyAnswer, AnyOutcome]):
    """A request in progress. `given` is the answer; it is `recorded` once it is committed."""

    def __init__(self) -> None:
        self.given: AnyAnswer | None = None
        self.recorded: AnyOutcome | None = None
        self._failure: StorageFailed | None = None
        self._answered = anyio.Event()
        self._done = anyio.Event()

    def answer(self, answer: AnyAnswer) -> bool:
        """Take the first answer; False for a later one."""
        # The app's reply and `permission/answer` of another client may come at the same time.
        if self.given is not None:
            return False
        self.given = answer
        self._answered.set()
        return True

    def close(self, recorded: AnyOutcome | None) -> None:
        """End the request: with what the journal says, or None when nothing was recorded."""
        self.recorded = recorded
        self._done.set()

    def refuse(self, failure: StorageFailed) -> None:
        """Report that the answer could not be stored: the sender gets the failure, and may answer again."""
        # The old event is set last and the new ones exist before: who waited gets the failure, who answers
        # now waits for the new outcome.
        refused, self._failure = self._done, failure
        self.given, self._answered, self._done = None, anyio.Event(), anyio.Event()
        refused.set()

    async def keep(
        self, ask: Callable[[], Awaitable[AnyAnswer]], record: Callable[[AnyAnswer], Awaitable[AnyOutcome]]
    ) -> AnyOutcome:
        """Ask until an answer is recorded. One that the disk does not accept is refused, and the request stays open."""
        while True:
            answer = await ask()
            try:
                # An answer that the user has given is stored, even if the turn is cancelled at this moment.
                with anyio.CancelScope(shield=True):
                    return await record(answer)
            except StorageFailed as failure:
                logger.warning("an answer could not be stored", extra={"error": failure.message})
                self.refuse(failure)
            except Exception:
                self.close(None)  # a sender must not wait for an outcome that will not come
                raise
            await anyio.sleep(RETRY_S)

    async def wait_answered(self) -> AnyAnswer:
        await self._answered.wait()
        assert self.given is not None
        return self.given

    async def wait_closed(self) -> AnyOutcome | None:
        # Kept: `refuse` replaces the event, which distinguishes a refusal from an end.
        done = self._done
        await done.wait()
        if done is not self._done and self._failure:
            raise self._failure
        return self.recorded


class OpenRequests(Generic[AnyAnswer, AnyOutcome]):
    """The requests of one kind, by their ids."""

    def __init__(self, store: Store, kind: RequestKind) -> None:
        self._store = store
        self._kind = kind
        self._pending: dict[str, PendingRequest[AnyAnswer, AnyOutcome]] = {}

    def open(self, id: str) -> PendingRequest[AnyAnswer, AnyOutcome]:
        pending = self._pending[id] = PendingRequest[AnyAnswer, AnyOutcome]()
        return pending

    def close(self, id: str, recorded: AnyOutcome | None) -> None:
        pending = self._pending.pop(id, None)
        if pending:
            pending.close(recorded)

    async def answer(self, id: str, answer: AnyAnswer, chat: int | None = None) -> AnyOutcome:
        """Answer a request, of this chat if one is given; return what was recorded, or refuse because it has ended."""
        if chat is not None and not await self._is_of(id, chat):
            raise self._unknown(id)
        pending = self._pending.get(id)
        if pending:
            first = pending.answer(answer)
            recorded = await pending.wait_closed()
            if first and recorded is not None and recorded.by == "user":
                return recorded
        raise await self._refusal(id)

    async def _is_of(self, id: str, chat: int) -> bool:
        found = await self._store.requests.find(id)
        return found is not None and found[1].id == chat

    def _unknown(self, id: str) -> Failure:
        return Refused(
            "not_found", f"There is no {self._kind} {id[:80]!r}", params={"field": f"{self._kind}Id"}
        )

    async def _refusal(self, id: str) -> Failure:
        kind = self._kind
        found = await self._store.requests.find(id)
        if found is None or found[0].kind != kind:
            return self._unknown(id)
        record, chat = found
        lease = (await self._store.chats.snapshot(chat.id, 0, 0)).lease
        if record.outcome is None and lease and self._store.leases.other_holder(lease):
            return LeaseHeld(lease)
        # Its owner is dead, and the next process that opens the chat for writing closes it like this.
        outcome = record.outcome or {f"{kind}Id": id, "by": "restart"}
        return Refused(
            "request_closed",
            f"The {kind} {id[:80]!r} has ended already",
            params={"field": f"{kind}Id"},
            facts={"outcome": outcome, "sessionId": chat.key.session_id, "chatId": chat.key.chat_id},
        )


class Requests:
    """All requests that wait for the user; a permission cannot be answered as a question, nor the reverse."""

    def __init__(self, store: Store) -> None:
        self.permissions = OpenRequests[PermissionAnswer, PermissionOutcome](store, "permission")
        self.inputs = OpenRequests[InputAnswer, InputOutcome](store, "input")

    def close(self, id: str, recorded: PermissionOutcome | InputOutcome) -> None:
        if isinstance(recorded, PermissionOutcome):
            self.permissions.close(id, recorded)
        else:
            self.inputs.close(id, recorded)
