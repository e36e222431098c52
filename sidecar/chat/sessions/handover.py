"""Requests for a chat that another process writes to: handed to it through the database, and its outcome returned.

Both sides are here. The sender waits until the owner of the chat has taken the request, then for the outcome. An owner
that has not taken it after three seconds is silent, and the request is refused; one that ends meanwhile leaves the
request to the sender. Each of these requests may be executed again: prompts by their id, the others by their nature.
"""

from __future__ import annotations

import logging
import secrets
from typing import Protocol

import anyio
import msgspec

from ...model.chats import Lease
from ...model.content import Block
from ...model.failures import Failure
from ...store.store import Store
from ...store.tables.handed import SILENT_MS, HandedRow
from ...store.tables.leases import LeaseHeld
from ..services.client_requests import AnyAnswer, AnyOutcome, OpenRequests, Requests
from .arrivals import CancelResult, IncomingPrompt, PromptReceipt, QueueFate
from .handed import (
    Handed,
    HandedCancel,
    HandedEdit,
    HandedInput,
    HandedOutcome,
    HandedPermission,
    HandedPrompt,
    HandedRemoval,
    HandedRequest,
    HandedResume,
)

logger = logging.getLogger(__name__)

SILENT_S = SILENT_MS / 1000

LOOK_S = 0.02
"""How often a waiting sender looks how far its request is: less than a person notices."""


class Taken(Exception):
    """The owner has taken a request; its outcome is waited for without holding up what comes after it."""

    def __init__(self, row: HandedRow, held: LeaseHeld) -> None:
        super().__init__(row.id)
        self.row = row
        self.held = held


class HandedTo(Protocol):
    """A chat that this process writes to, as far as other processes may ask something of it."""

    async def send(self, prompt: IncomingPrompt) -> PromptReceipt: ...
    async def edit(self, prompt_id: str, content: list[Block], revision: int | None) -> None: ...
    async def remove(self, prompt_id: str, revision: int | None) -> None: ...
    async def resume_queue(self) -> None: ...
    async def cancel(self, turn_id: str | None, queue: QueueFate) -> CancelResult: ...


async def hand_over(store: Store, chat: int, request: HandedRequest, held: LeaseHeld) -> HandedRow | None:
    """Hand a request to the owner of the chat, and return it once it was taken; None when the chat has no owner any
    more.

    Raises `held` when the owner is silent. One that is about to exit is given nothing, but is waited for.
    """
    row = HandedRow(secrets.token_hex(8), chat, msgspec.json.encode(request).decode())
    is_put = not held.lease.closing
    if is_put:
        await store.handed.put(row)
    patience = anyio.current_time() + SILENT_S
    while True:
        state = await store.handed.state(row)
        if state.taken:
            return row
        is_free = store.leases.other_holder(state.lease) is None
        if not is_free and anyio.current_time() < patience:
            await anyio.sleep(LOOK_S)
        # What was taken at this moment is not withdrawn: the next look finds it.
        elif not is_put or await store.handed.withdraw(row):
            if is_free:
                return None
            raise held


async def wait_outcome(store: Store, taken: Taken) -> HandedOutcome | None:
    """Wait for the outcome of a request that was taken; None when its owner ended without one."""
    row, held = taken.row, taken.held
    released_at: float | None = None
    while True:
        state = await store.handed.state(row)
        if state.outcome is not None or not state.known:
            break
        if _is_owner(store, state.lease, held):
            released_at = None
        else:
            # An owner that has released the chat is about to store the outcome.
            released_at = released_at or anyio.current_time()
            if _is_left(state.lease, held) or anyio.current_time() - released_at > SILENT_S:
                break
        await anyio.sleep(LOOK_S)
    if state.known:
        await store.handed.remove(row)
    if state.outcome is None:
        return None
    outcome = msgspec.json.decode(state.outcome, type=HandedOutcome)
    # The owner takes nothing any more: the sender takes over the chat once it is free.
    is_exiting = outcome.failure is not None and outcome.failure.name == "shutting_down"
    return None if is_exiting else outcome


async def answer_elsewhere(
    store: Store,
    requests: OpenRequests[AnyAnswer, AnyOutcome],
    handed: Handed[AnyOutcome],
    answer: AnyAnswer,
    held: LeaseHeld,
) -> AnyOutcome:
    """Answer a request to the user of a turn that another process runs."""
    assert isinstance(handed.request, HandedPermission | HandedInput)
    id, outcome = handed.request.id, None
    while outcome is None:
        found = await store.requests.find(id)
        if found is None:
            raise held
        # Shielded: the owner may have taken it, and then its outcome is the answer, also to a cancelled request.
        with anyio.CancelScope(shield=True):
            row = await hand_over(store, found[1].id, handed.request, held)
            outcome = await wait_outcome(store, Taken(row, held)) if row else None
        if outcome is None:
            try:
                return await requests.answer(id, answer)
            except LeaseHeld as another:
                # Another process has taken the chat over meanwhile; it is asked next.
                held = another
    return outcome.read(handed)


async def serve(chat: HandedTo, store: Store, requests: Requests, row: HandedRow) -> None:
    """Execute a request of another process, and store its outcome."""
    try:
        request = msgspec.json.decode(row.request, type=HandedRequest)
        done = await _execute(chat, requests, request)
        outcome = HandedOutcome(result=msgspec.Raw(msgspec.json.encode(done)))
    except Failure as failure:
        outcome = HandedOutcome.of(failure)
    except Exception:
        logger.exception("a request of another process failed")
        text = "The request failed in the process that writes to the chat; its log says why"
        outcome = HandedOutcome.of(Failure("internal_error", text))
    try:
        with anyio.CancelScope(shield=True):
            # Also at shutdown: the sender waits for this row, and cannot know otherwise whether the request
            # was executed.
            await store.handed.finish(row.id, msgspec.json.encode(outcome).decode())
    except Failure as failure:  # its sender finds the chat as it is, and asks again
        logger.error("an outcome could not be stored", extra={"error": failure.message})


async def _execute(chat: HandedTo, requests: Requests, request: HandedRequest) -> object:
    match request:
        case HandedPrompt():
            return await chat.send(request.prompt)
        case HandedEdit():
            await chat.edit(request.prompt_id, request.content, request.revision)
        case HandedRemoval():
            await chat.remove(request.prompt_id, request.revision)
        case HandedResume():
            await chat.resume_queue()
        case HandedCancel():
            return await chat.cancel(request.turn_id, request.queue)
        case HandedPermission():
            return await requests.permissions.answer(request.id, request.answer)
        case HandedInput():
            return await requests.inputs.answer(request.id, request.answer)
    return None


def _is_owner(store: Store, lease: Lease | None, held: LeaseHeld) -> bool:
    holder, owner = store.leases.other_holder(lease), held.lease.owner
    return holder is not None and owner is not None and holder.instance == owner.instance


def _is_left(lease: Lease | None, held: LeaseHeld) -> bool:
    """Whether the owner has died, or was stopped for too long, without releasing the chat."""
    owner, now = held.lease.owner, lease.owner if lease else None
    return owner is not None and now is not None and now.instance == owner.instance
