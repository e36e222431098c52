"""The prompts that wait in a chat: changes them, and starts the next one when a turn has ended.

Does not know how a prompt starts: the session implements `_start`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from contextlib import suppress

import anyio
import msgspec

from ...model.chats import Prompt
from ...model.content import Block, Turn
from ...model.events import NewEvent
from ...model.failures import Failure, Refused, StorageFailed
from ...store.tables.leases import LeaseHeld
from ..journal import event_factory
from .arrivals import PromptReceipt
from .handed import Handed, HandedEdit, HandedRemoval, HandedResume
from .journal_writer import JournalWriter

logger = logging.getLogger(__name__)

RETRY_STORAGE_S = 1.0
"""How often the end of a turn, or the start of a waiting prompt, is retried after a storage failure."""


class QueuedChat(JournalWriter, ABC):
    async def edit(self, prompt_id: str, content: list[Block], revision: int | None) -> None:
        async def change() -> None:
            await self.refresh_unless_owner()
            place, prompt = self._waiting(prompt_id, revision)
            edited = msgspec.structs.replace(prompt, content=content, revision=prompt.revision + 1)
            await self._record(event_factory.prompt_event("prompt.edited", edited, revision=edited.revision))
            self.queue[place] = edited

        await self._run_or_hand_over(change, Handed(HandedEdit(prompt_id, content, revision), None))

    async def remove(self, prompt_id: str, revision: int | None) -> None:
        async def change() -> None:
            await self.refresh_unless_owner()
            place, prompt = self._waiting(prompt_id, revision)
            await self._record(event_factory.removed_event(prompt))
            del self.queue[place]
            await self._release_if_idle()

        await self._run_or_hand_over(change, Handed(HandedRemoval(prompt_id, revision), None))

    async def resume_queue(self) -> None:
        async def change() -> None:
            await self.refresh_unless_owner()
            if self.chat.queue_paused:
                await self._record(event_factory.queue_event(False, "resumed"))
                self.chat = msgspec.structs.replace(self.chat, queue_paused=False)
            self._advance_soon()

        await self._run_or_hand_over(change, Handed(HandedResume(), None))

    @abstractmethod
    async def _start(
        self,
        prompt: Prompt,
        *,
        before: list[NewEvent],
        continued: Turn | None = None,
        engine_name: str | None = None,
    ) -> PromptReceipt:
        """Commit the prompt and its turn's start as one, then run the turn: with the engine of the chat, or another."""

    def _advance_soon(self) -> None:
        if not self._may_advance or self._advancing:
            return
        self._advancing = True
        self.run_in_background(self._advance)

    @property
    def _may_advance(self) -> bool:
        return bool(self.queue) and not self.chat.queue_paused and self.turn is None and not self.leaving

    async def _advance(self) -> None:
        """Start the next waiting prompt, once the disk accepts it. One that cannot start pauses the queue: otherwise
        it would wait forever, and no client would know.
        """
        try:
            while self._may_advance:
                if await self._advance_once():
                    return
                await anyio.sleep(RETRY_STORAGE_S)
        finally:
            # Even when cancelled, or the queue would never advance again.
            self._advancing = False

    async def _advance_once(self) -> bool:
        """Try to start the next prompt. False when the disk did not accept it, so that the caller tries again."""

        async def change() -> None:
            if self.turn is None and self.queue and not self.chat.queue_paused:
                prompt = self.queue[0]
                await self._start(prompt, before=[])
                # After the commit: when that fails, the prompt still waits.
                self.queue.remove(prompt)

        try:
            await self._run_change(change)
        except StorageFailed as failure:
            logger.error("a waiting prompt could not start", extra={"error": failure.message})
            return failure.reason == "schema_newer"  # permanent: the newer program takes the queue over
        except LeaseHeld:
            return True  # the other process owns the queue now
        except Failure as failure:
            logger.error("a waiting prompt could not start", extra={"error": failure.message})
            with suppress(Failure):
                await self._run_change(lambda: self._pause_queue("failed"))
        return True

    async def _clear_queue(self) -> None:
        if self.queue:
            await self._record(*[event_factory.removed_event(prompt) for prompt in self.queue])
            self.queue = []

    async def _pause_queue(self, reason: str) -> None:
        if self.queue and not self.chat.queue_paused:
            await self._record(event_factory.queue_event(True, reason))
            self.chat = msgspec.structs.replace(self.chat, queue_paused=True)

    def _waiting(self, prompt_id: str, revision: int | None) -> tuple[int, Prompt]:
        for place, prompt in enumerate(self.queue):
            if prompt.id == prompt_id:
                if revision is not None and revision != prompt.revision:
                    raise Refused(
                        "precondition_failed",
                        "`revision`: the prompt was changed since",
                        params={"revision": prompt.revision},
                    )
                return place, prompt
        raise Refused(
            "not_found",
            f"There is no queued prompt {prompt_id!r} in this chat",
            params={"promptId": prompt_id},
        )
