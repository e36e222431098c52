"""Handlers of `prompt/*` and `turn/*`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Key
from sidecar_protocol.peer import Call

from ...chat import content
from ...chat.arrivals import Incoming, Sent
from ...chat.chats import Chats
from ...chat.session import Session
from ...model.content import Block
from ...model.failures import Failure, invalid
from ...rpc.dispatch import Handler
from .attachments import Attachments
from .wire import address_of, block_of, chat_ref, queue_to_wire, text_block

MAX_PROMPT_ID = 512


class PromptHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]], attachments: Attachments) -> None:
        self._ready = ready
        self._attachments = attachments

    def table(self) -> Mapping[str, Handler]:
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
        chats = await self._ready()
        text = params.text or ""
        if text.startswith("/") and params.commands == "auto":
            from ...chat import commands

            asked = commands.read(text)
            if not isinstance(asked, str):
                return await self._command(call, chats, params, asked)
            params = msgspec.structs.replace(params, text=asked)
        with anyio.CancelScope(shield=True):
            blocks = await _content(chats, params)
            session = await chats.for_prompt(address_of(params))
            prompt = Incoming(
                id=params.prompt_id,
                content=blocks,
                delivery=params.delivery,
                expect_turn_id=params.expect_turn_id,
                replace=params.replace.turn_id if params.replace else None,
                overrides={**overrides_of(params.overrides), **context_of(params.context)},
            )
            with self._following(call, session):
                sent = await session.send(prompt)
        return _sent(session, sent)

    async def _command(
        self, call: Call, chats: Chats, params: m.PromptSendParams, asked: Any
    ) -> m.PromptSendResult:
        from ...chat import commands

        with anyio.CancelScope(shield=True):
            session = await chats.for_prompt(address_of(params))
            with self._following(call, session):
                sent = await commands.run(chats, session, params.prompt_id, asked)
        return _sent(session, sent)

    async def _retry(self, call: Call, params: m.TurnRetryParams) -> m.PromptSendResult:
        _check_prompt_id(params.prompt_id)
        session = await (await self._ready()).known(address_of(params))
        with anyio.CancelScope(shield=True), self._following(call, session):
            sent = await session.retry(
                params.prompt_id, params.turn_id, params.from_ == "here", overrides_of(params.overrides)
            )
        return _sent(session, sent)

    async def _cancel(self, call: Call, params: m.TurnCancelParams) -> m.TurnCancelResult:
        session = await (await self._ready()).known(address_of(params))
        with anyio.CancelScope(shield=True):
            cancelled = await session.cancel(params.turn_id, params.queue)
        attachment = self._attachments.get(session)
        if attachment and cancelled.end_seq is not None:
            await attachment.reached(cancelled.end_seq)
        return m.TurnCancelResult(
            **chat_ref(session.chat.key), outcome=cancelled.outcome, end_seq=cancelled.end_seq
        )

    async def _list(self, call: Call, params: Key) -> m.QueueResult:
        session = await (await self._ready()).known(address_of(params))
        async with session.lock:
            await session.look()
        return _queue(session)

    async def _edit(self, call: Call, params: m.PromptEditParams) -> m.QueueResult:
        chats = await self._ready()
        session = await chats.known(address_of(params))
        with anyio.CancelScope(shield=True):
            blocks = await content.keep(chats.store, [block_of(block) for block in params.content])
            await session.edit(params.prompt_id, blocks, params.revision)
        return _queue(session)

    async def _remove(self, call: Call, params: m.PromptRemoveParams) -> m.QueueResult:
        session = await (await self._ready()).known(address_of(params))
        with anyio.CancelScope(shield=True):
            await session.remove(params.prompt_id, params.revision)
        return _queue(session)

    async def _resume(self, call: Call, params: Key) -> m.QueueResult:
        session = await (await self._ready()).known(address_of(params))
        with anyio.CancelScope(shield=True), self._following(call, session):
            await session.resume_queue()
        return _queue(session)

    @contextmanager
    def _following(self, call: Call, session: Session) -> Iterator[None]:
        """Follow the chat from here on, its events behind the answer of this call; not when the call is refused."""
        attachment = self._attachments.get(session)
        new = attachment is None
        if attachment is None:
            attachment = self._attachments.attach(session, session.chat.epoch, session.recorder.feed.last_seq)
        else:
            attachment.hold()
        call.after_answer(attachment.release)
        try:
            yield
        except Failure:
            if new:
                self._attachments.detach(session.chat.key.session_id)
            raise


async def _content(chats: Chats, params: m.PromptSendParams) -> list[Block]:
    if (params.text is None) == (params.content is None):
        raise invalid("text", "exactly one of `text` and `content`")
    if params.text is not None:
        return [text_block(params.text)]
    return await content.keep(chats.store, [block_of(block) for block in params.content or []])


def context_of(context: m.PromptContext | None) -> dict[str, Any]:
    """The prompt's switches for blocks of context, as they are kept with it."""
    given = msgspec.to_builtins(context) if context else {}
    kept = {key: value for key, value in given.items() if value not in (None, "auto", [])}
    return {"context": kept} if kept else {}


def overrides_of(overrides: m.PromptOverrides | None) -> dict[str, str]:
    given = msgspec.to_builtins(overrides) if overrides else {}
    return {key: value for key, value in given.items() if value is not None}


def _sent(session: Session, sent: Sent) -> m.PromptSendResult:
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
    if not 1 <= len(prompt_id.encode()) <= MAX_PROMPT_ID:
        raise invalid("promptId", f"1 to {MAX_PROMPT_ID} bytes")
