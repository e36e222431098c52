"""One prompt and the events of the turn that answers it. Knows neither processes nor the order of events.

A prompt on its way (`Delivery`) outlives the `Answer` that an app iterates: a task of the app sends it, so
that cancelling whoever waits cannot leave it half sent, and it is withdrawn when its answer is left.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol, Self

import anyio
from sidecar_protocol import messages as m
from sidecar_protocol.errors import RpcError

from .errors import ChatReplaced, SidecarError, TurnFailed
from .events import Event
from .feed import Feed, Subscription
from .link import Link

WITHDRAW_SECONDS = 2.0
"""How long leaving an answer may wait for the sidecar to confirm the cancellation."""


class Delivery:
    """A prompt from the moment it is sent: how it was taken, and how to take it back."""

    def __init__(self, link: Link, method: str, params: m.PromptSendParams | m.TurnRetryParams) -> None:
        self.prompt_id = params.prompt_id
        self.taken: m.PromptSendResult | None = None
        self.running = False
        self.over = False
        self.done = anyio.Event()
        self._error: RpcError | SidecarError | None = None
        self._link = link
        self._method = method
        self._params = params

    async def send(self) -> None:
        try:
            self.taken = await self._link.ask(self._method, self._params, m.PromptSendResult)
        except (RpcError, SidecarError) as error:
            self._error = error
            self.over = True
        finally:
            self.done.set()

    async def accepted(self) -> m.PromptSendResult:
        await self.done.wait()
        if self._error is not None:
            raise self._error
        assert self.taken is not None
        return self.taken

    async def withdraw(self) -> None:
        """Take a waiting prompt out of the queue; cancel a running turn, unless it is another prompt's."""
        await self.done.wait()
        taken = self.taken
        if self.over or taken is None or taken.disposition in ("steered", "command"):
            return
        with suppress(RpcError, SidecarError):
            if not (taken.disposition == "queued" and not self.running and await self._unqueue(taken)):
                await self._cancel(taken)

    async def _unqueue(self, taken: m.PromptSendResult) -> bool:
        """False when it is in the queue no longer."""
        params = m.PromptRemoveParams(session_id=taken.session_id, prompt_id=self.prompt_id)
        try:
            await self._link.request("prompt/remove", params)
        except RpcError:
            return False
        return True

    async def _cancel(self, taken: m.PromptSendResult) -> None:
        params = m.TurnCancelParams(session_id=taken.session_id, turn_id=taken.turn_id, queue="keep")
        await self._link.request("turn/cancel", params)


class DeliveryQueue(Protocol):
    """What an answer needs of the app."""

    def dispatch(self, delivery: Delivery) -> None:
        """Send it, in a task of the app."""

    def abandon(self, delivery: Delivery) -> None:
        """Withdraw it, some time soon. May be called from a finalizer, in any thread."""


class Answer:
    """The events of one turn, up to and including its `turn.ended`; of a command, its `command.result`.

    The prompt is sent by the first step of the iteration. Leaving the loop, or cancelling the task in it,
    cancels the turn; `async with chat.prompt(…) as answer:` waits until that has happened, a bare `async for`
    lets the app do it in the background.
    """

    def __init__(self, environment: DeliveryQueue, delivery: Delivery, feed: Feed) -> None:
        self.prompt_id = delivery.prompt_id
        self.turn_id: str | None = None
        self.ended: Event | None = None
        self._environment = environment
        self._delivery = delivery
        self._feed = feed
        self._subscription: Subscription | None = None
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._closed:
            raise StopAsyncIteration
        try:
            event = await self._next()
        except BaseException as error:
            self._delivery.over = self._delivery.over or isinstance(error, ChatReplaced)
            # A cancellation is one of them: the turn is cancelled before the exception goes on.
            await self.aclose()
            raise
        if self._delivery.over:
            await self.aclose()
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave: the turn is cancelled unless it is over. Bounded, and not cut short by a cancellation."""
        if self._closed:
            return
        self._closed = True
        if self._subscription is None:
            return
        self._subscription.close()
        with anyio.move_on_after(WITHDRAW_SECONDS, shield=True) as bound:
            await self._delivery.withdraw()
        if bound.cancelled_caught:
            self._environment.abandon(self._delivery)

    async def cancel(self) -> None:
        """Cancel the turn and stay: the iteration goes on to its `turn.ended`."""
        await self._delivery.withdraw()

    async def text(self) -> str:
        """The whole answer, once it has ended. Raises TurnFailed when it ended with an error."""
        parts = [event.text async for event in self if event.type in ("message.delta", "command.result")]
        if self.ended is not None and self.ended.error is not None:
            raise TurnFailed(self.ended.error, "".join(parts))
        return "".join(parts)

    @property
    def reason(self) -> str | None:
        """Why the turn ended; None while it has not."""
        return None if self.ended is None else self.ended.reason

    async def _next(self) -> Event:
        events = self._subscription or self._send()
        if self.turn_id is None:
            events = await self._accepted(events)
        while not self._concerns(event := await anext(events)):
            pass
        self._note(event)
        return event

    def _send(self) -> Subscription:
        self._subscription = self._feed.subscribe()
        self._environment.dispatch(self._delivery)
        return self._subscription

    async def _accepted(self, events: Subscription) -> Subscription:
        """The events from where the prompt's own begin."""
        taken = await self._delivery.accepted()
        self.turn_id = taken.turn_id
        if taken.disposition == "duplicate":
            events.rewind(taken.seq - 1)
        if taken.epoch != events.epoch:
            # Sent to a process that died with its memory, then accepted by the next one, in a new journal.
            events = self._subscription = self._feed.subscribe(after=taken.seq - 1)
        return events

    def _concerns(self, event: Event) -> bool:
        if self.turn_id is not None and event.belongs_to(self.turn_id):
            return True
        if event.type in ("chat.deleted", "command.result"):
            return event.data.get("promptId") in (None, self.prompt_id)
        return event.type == "queue.updated" and not self._delivery.running

    def _note(self, event: Event) -> None:
        if event.type == "turn.started":
            self._delivery.running = True
        if event.type in ("turn.ended", "command.result"):
            self.ended = event
        mine = event.data.get("promptId") == self.prompt_id
        if event.type in ("turn.ended", "chat.deleted", "command.result") or (
            event.type == "prompt.removed" and mine
        ):
            self._delivery.over = True

    def __del__(self) -> None:
        if self._subscription is not None and not self._closed:
            self._environment.abandon(self._delivery)
