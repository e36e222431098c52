"""Handlers of `prompt/*` and `turn/*`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.limits import MAX_ID_BYTES
from sidecar_protocol.messages.base import Key
from sidecar_protocol.peer import Call

from ...chat.services import content
from ...chat.sessions.arrivals import IncomingPrompt, PromptReceipt
from ...chat.sessions.chats import Chats
from ...chat.sessions.session import Session
from ...model.chats import ContextSwitches, PromptOverrides
from ...model.content import Block
from ...model.failures import Failure, invalid_param
from ...rpc.dispatch import Handler, run_to_end
from ...system.lazy import lazy_module
from .events import NativeAttachments
from .wire import address_of, block_of, chat_ref, queue_to_wire, session_of, text_block

if TYPE_CHECKING:
    from ...chat.actions import commands
else:
    commands = lazy_module("sidecar.chat.actions.commands")


class PromptHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]], attachments: NativeAttachments) -> None:
        self._chats = ready
        self._attachments = attachments

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "prompt/send": self._send,
            "prompt/list": self._list,
            "prompt/edit": self._edit,
            "prompt/remove": self._remove,
            "prompt/resume": self._resume,
            "turn/cancel": self._cancel,
            "turn/retry": self._retry,
        }

    async def _send(self, call: Call, params: m.PromptSendParams) -> m.PromptSendResult:
        _check_prompt_id(params.prompt_id)
        chats = await self._chats()
        text = params.text or ""
        if text.startswith("/") and params.commands == "auto":
            asked = commands.parse_command(text)
            if not isinstance(asked, str):
                return await self._command(call, chats, params, asked)
            params = msgspec.structs.replace(params, text=asked)
        with anyio.CancelScope(shield=True):
            blocks = await _stored_content(chats, params)
            session = await chats.session_for_prompt(address_of(params))
            prompt = IncomingPrompt(
                id=params.prompt_id,
                content=blocks,
                delivery=params.delivery,
                expect_turn_id=params.expect_turn_id,
                replace=params.replace.turn_id if params.replace else None,
                overrides=overrides_of(params.overrides, params.context),
            )
            with self._following(call, session):
                sent = await session.send(prompt)
        return _prompt_result(session, sent)

    async def _command(
        self, call: Call, chats: Chats, params: m.PromptSendParams, asked: Any
    ) -> m.PromptSendResult:
        with anyio.CancelScope(shield=True):
            session = await chats.session_for_prompt(address_of(params))
            with self._following(call, session):
                sent = await commands.execute(chats, session, params.prompt_id, asked)
        return _prompt_result(session, sent)

    async def _retry(self, call: Call, params: m.TurnRetryParams) -> m.PromptSendResult:
        _check_prompt_id(params.prompt_id)
        session = await session_of(self._chats, params)
        with anyio.CancelScope(shield=True), self._following(call, session):
            sent = await session.retry(
                params.prompt_id, params.turn_id, params.from_ == "here", overrides_of(params.overrides)
            )
        return _prompt_result(session, sent)

    async def _cancel(self, call: Call, params: m.TurnCancelParams) -> m.TurnCancelResult:
        session = await session_of(self._chats, params)
        cancelled = await run_to_end(session.cancel(params.turn_id, params.queue))
        attachment = self._attachments.get(session)
        # The contract promises that the end of the turn is on the wire before this answer.
        if attachment and cancelled.end_seq is not None:
            await attachment.wait_sent(cancelled.end_seq)
        return m.TurnCancelResult(
            **chat_ref(session.chat.key), outcome=cancelled.outcome, end_seq=cancelled.end_seq
        )

    async def _list(self, call: Call, params: Key) -> m.QueueResult:
        session = await session_of(self._chats, params)
        async with session.lock:
            await session.refresh_unless_owner()
        return _queue(session)

    async def _edit(self, call: Call, params: m.PromptEditParams) -> m.QueueResult:
        _check_content(params)
        chats = await self._chats()
        session = await chats.existing_session(address_of(params))
        with anyio.CancelScope(shield=True):
            blocks = await _stored_content(chats, params)
            await session.edit(params.prompt_id, blocks, params.revision)
        return _queue(session)

    async def _remove(self, call: Call, params: m.PromptRemoveParams) -> m.QueueResult:
        session = await session_of(self._chats, params)
        await run_to_end(session.remove(params.prompt_id, params.revision))
        return _queue(session)

    async def _resume(self, call: Call, params: Key) -> m.QueueResult:
        session = await session_of(self._chats, params)
        with anyio.CancelScope(shield=True), self._following(call, session):
            await session.resume_queue()
        return _queue(session)

    @contextmanager
    def _following(self, call: Call, session: Session) -> Iterator[None]:
        """Attach to the chat, with its events after the answer of this call; detach again when the call is refused."""
        attachment = self._attachments.get(session)
        new = attachment is None
        if attachment is None:
            attachment = self._attachments.attach(session, session.chat.epoch, session.recorder.feed.last_seq)
        else:
            attachment.hold()
        # Events wait until the answer is written: a client must know its turn id before it sees the turn's
        # events.
        call.after_answer(attachment.release)
        try:
            yield
        # A refused call changes nothing, and so does not attach either.
        except Failure:
            if new:
                self._attachments.detach(session.chat.key.session_id)
            raise


_EMPTY = "a prompt that is not empty: some text, or an attachment"


def _check_content(params: m.PromptSendParams | m.PromptEditParams) -> None:
    if (params.text is None) == (params.content is None):
        raise invalid_param("text", "exactly one of `text` and `content`")


async def _stored_content(chats: Chats, params: m.PromptSendParams | m.PromptEditParams) -> list[Block]:
    _check_content(params)
    if params.text is not None:
        if not params.text.strip():
            raise invalid_param("text", _EMPTY)
        return [text_block(params.text)]
    return await _stored_blocks(chats, params.content or [])


async def _stored_blocks(chats: Chats, blocks: list[m.ContentBlock]) -> list[Block]:
    if all(block.type == "text" and not (block.text or "").strip() for block in blocks):
        raise invalid_param("content", _EMPTY)
    return await content.store_content(chats.store, [block_of(block) for block in blocks])


def overrides_of(
    overrides: m.PromptOverrides | None, context: m.PromptContext | None = None
) -> PromptOverrides:
    """What a prompt decides for itself, as it is stored with it."""
    switches = msgspec.convert(context, ContextSwitches, from_attributes=True) if context else None
    return PromptOverrides(
        model=overrides.model if overrides else None,
        effort=overrides.effort if overrides else None,
        context=switches if switches != ContextSwitches() else None,
    )


def _prompt_result(session: Session, sent: PromptReceipt) -> m.PromptSendResult:
    return m.PromptSendResult(
        **chat_ref(session.chat.key),
        disposition=sent.disposition,
        epoch=session.chat.epoch,
        seq=sent.seq,
        turn_id=sent.turn_id,
        position=sent.position,
    )


def _queue(session: Session) -> m.QueueResult:
    return m.QueueResult(**chat_ref(session.chat.key), queue=queue_to_wire(session))


def _check_prompt_id(prompt_id: str) -> None:
    if not 1 <= len(prompt_id.encode()) <= MAX_ID_BYTES:
        raise invalid_param("promptId", f"1 to {MAX_ID_BYTES} bytes")
