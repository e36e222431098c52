"""Tool calls that an outside agent makes: each is journalled in the chat of the agent's session, like a model's."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import anyio

from ...engines import direct as direct_engine
from ...model import JsonObject
from ...model.content import Block
from ...model.failures import Failure
from ...providers.base import ToolCall
from ...store.tables.leases import LeaseHeld
from ...tools.base import ShowOutput
from ...tools.toolbox import CallResult
from ..journal.identity import ChatAddress
from ..journal.running_turn import new_id
from ..services.client_app import ClientApp
from ..services.direct_calls import DirectCall
from ..sessions.arrivals import IncomingPrompt
from ..sessions.chats import Chats
from ..sessions.session import Session

AGENTS = "agents"
"""The namespace of the chats of outside agents: the lists of an app do not fill with them."""

LEASE_WAIT_S = 30.0
"""How long a call waits while another process runs one of the same session."""

LEASE_POLL_S = 0.05


async def open_agent_chat(chats: Chats, chat_id: str, project: str | None, title: str) -> Session:
    """The chat of an agent's session, created when there is none."""
    opened = await chats.open(ChatAddress(chat_id, project, AGENTS), create=True)
    if opened.session.chat.title is None:
        with suppress(LeaseHeld):  # a process of the same session was faster, and names it
            await opened.session.rename(title, by="sidecar")
    return opened.session


async def run_agent_call(
    chats: Chats,
    session: Session,
    tool: str,
    arguments: JsonObject,
    app: ClientApp,
    show: ShowOutput,
    *,
    found_by_search: bool = True,
) -> CallResult:
    """Run a call to its end; it is cancelled with the waiting task. Returns once its result is on disk.

    `found_by_search`: a search in the chats finds the call. A call that only looks something up is no find.
    """
    call = DirectCall(ToolCall(new_id("call"), tool, arguments), app, show)
    calls = chats.services.direct_calls
    calls[call.call.id] = call
    try:
        result = await _run(session, call, "text" if found_by_search else "resource")
        await session.recorder.wait_flushed()
        return result
    finally:
        call.cancel()
        del calls[call.call.id]


async def _run(session: Session, call: DirectCall, kind: Literal["text", "resource"]) -> CallResult:
    text = direct_engine.call_text(call.call)
    prompt = IncomingPrompt(call.call.id, [Block(type=kind, text=text)], "steer")
    await _send(session, prompt)

    async def wait_for_turn() -> None:
        """End the wait when the call's turn ends without it, for example because the disk is full."""
        while session.turn:
            await session.turn.done.wait()
        waiting.cancel_scope.cancel()

    async with anyio.create_task_group() as waiting:
        waiting.start_soon(wait_for_turn)
        await call.wait()
        waiting.cancel_scope.cancel()
    if call.result is None:
        raise Failure("internal_error", "The call did not run; the sidecar's log says why")
    return call.result


async def _send(session: Session, prompt: IncomingPrompt) -> None:
    """Start the call, once no other turn runs in the chat and no other process writes to it."""
    with anyio.move_on_after(LEASE_WAIT_S):
        while True:
            try:
                if await session.send_call(prompt):
                    return
            except LeaseHeld:
                await anyio.sleep(LEASE_POLL_S)
            turn = session.turn
            if turn:
                await turn.done.wait()
    raise Failure(
        "locked", "Another call of this session is still running in another process", retryable=True
    )
