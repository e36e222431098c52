"""Handlers of `session/prompt` and `session/cancel`: a prompt is answered when its turn has ended."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from sidecar_protocol.errors import RpcError
from sidecar_protocol.peer import Call

from ...chat.services import content as stored_content
from ...chat.sessions.arrivals import IncomingPrompt, PromptReceipt
from ...chat.sessions.session import Session
from ...model.content import GivenBlock
from ...model.failures import Failure, Refused, invalid_param
from ...model.limits import check_text
from ...rpc.dispatch import Handler
from ...system.lazy import lazy_module
from . import content, errors
from .messages import AcpResult, PromptParams
from .sessions import Sessions
from .sink import AcpAttachment, PromptWatch, TurnEnd
from .updates_v2 import STOP_REASONS

if TYPE_CHECKING:
    from ...chat.actions import commands
else:
    commands = lazy_module("sidecar.chat.actions.commands")

logger = logging.getLogger(__name__)

MAX_ID = 200
"""Characters of a prompt's id that a client gives."""


class PromptHandlers:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def handlers(self) -> Mapping[str, Handler]:
        return {"session/prompt": self._prompt}

    async def cancel(self, session_id: str) -> None:
        """End what runs in a session and remove what waits; every prompt of it is answered as cancelled."""
        attachment = self._sessions.attachments.find(session_id)
        if attachment is None:
            return
        for watch in attachment.sink.watches:
            watch.is_cancelled = True
        try:
            with anyio.CancelScope(shield=True):
                await attachment.session.cancel(None, "clear")
        except Failure as failure:
            logger.warning("a turn could not be cancelled", extra={"error": failure.message})

    async def _prompt(self, call: Call, params: PromptParams) -> AcpResult:
        blocks = content.read_blocks(params.prompt)
        if not any(block.type != "text" or (block.text or "").strip() for block in blocks):
            raise invalid_param("prompt", "a prompt that is not empty")
        watch = PromptWatch(_prompt_id(params))
        # Before anything is awaited: a cancel may be the next frame.
        attachment = self._sessions.attachments.find(params.session_id)
        attachment = attachment or await self._sessions.followed(params.session_id)
        attachment.sink.watches.append(watch)
        try:
            return await self._send(attachment, watch, blocks)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await _withdraw(attachment.session, watch)
            raise
        finally:
            attachment.sink.watches.remove(watch)
            self._sessions.prompts_sent.pop(watch.prompt_id, None)

    async def _send(
        self, attachment: AcpAttachment, watch: PromptWatch, blocks: list[GivenBlock]
    ) -> AcpResult:
        session = attachment.session
        line = content.command_line(blocks)
        self._sessions.prompts_sent[watch.prompt_id] = line or ""
        # Events wait until it is known which turn they are of.
        attachment.hold()
        try:
            with anyio.CancelScope(shield=True):
                ran = await self._run_command(attachment, watch, line) if line else None
                sent = ran or await session.send(await self._incoming(session, watch, blocks))
            watch.turn_id = sent.turn_id
        finally:
            attachment.release()
        if sent.disposition == "duplicate":
            await self._find_end(session, attachment, watch, sent)
        if watch.is_cancelled:
            with anyio.CancelScope(shield=True):
                await _withdraw(session, watch)
        if self._sessions.version == 2:
            return await _accepted(watch)
        return _answer(await watch.wait_ended(), watch)

    async def _incoming(
        self, session: Session, watch: PromptWatch, blocks: list[GivenBlock]
    ) -> IncomingPrompt:
        first = blocks[0]
        if first.type == "text" and (first.text or "").startswith("//"):
            blocks = [GivenBlock(type="text", text=(first.text or "")[1:]), *blocks[1:]]
        given = [block for block in blocks if block.type != "text" or block.text]
        for block in given:
            check_text("prompt", block.text or "")
        return IncomingPrompt(watch.prompt_id, await stored_content.store_content(session.store, given))

    async def _run_command(
        self, attachment: AcpAttachment, watch: PromptWatch, line: str
    ) -> PromptReceipt | None:
        """Run a slash command; None when the text is none. An error in it is sent as a message."""
        try:
            asked = commands.parse_command(line)
            if isinstance(asked, str):
                return None
            return await commands.execute(
                await self._sessions.chats(), attachment.session, watch.prompt_id, asked
            )
        except Refused as refused:
            if refused.name not in ("invalid_params", "not_found", "precondition_failed", "turn_in_progress"):
                raise
            message = refused.message.replace("`text`: ", "")
            attachment.sink.send_answer(watch.prompt_id, message)
            watch.accept(watch.prompt_id)
            watch.finish(TurnEnd("end_turn", attachment.cursor))
            return PromptReceipt("command", None, attachment.cursor)

    async def _find_end(
        self, session: Session, attachment: AcpAttachment, watch: PromptWatch, sent: PromptReceipt
    ) -> None:
        """A prompt that was sent before: it may have ended."""
        turn = await session.store.turns.get(session.chat.id, sent.turn_id) if sent.turn_id else None
        if sent.turn_id is None:
            watch.finish(TurnEnd("end_turn", sent.seq))
        elif turn is not None:
            item = next((item for item in turn.items if item.type == "user"), None)
            watch.accept(item.id if item else None)
            if turn.reason is not None:
                seq = await session.store.turns.end_seq(session.chat.id, turn.id)
                await attachment.wait_sent(seq or 0)
                watch.finish(TurnEnd(turn.reason, seq or 0, turn.error))


async def _withdraw(session: Session, watch: PromptWatch) -> None:
    """End the turn of a prompt, or remove the prompt if it waits for one."""
    if watch.turn_id is None or watch.end:
        return
    try:
        await session.remove(watch.prompt_id, None)
    except Refused:
        # It does not wait, and never will again. What another cancel has removed has no turn.
        with suppress(Refused):
            await session.cancel(watch.turn_id, "keep")


async def _accepted(watch: PromptWatch) -> AcpResult:
    """The answer of version 2: the message that the prompt has become."""
    await watch.wait_accepted()
    if watch.message_id is None:
        raise RpcError.named("request_cancelled", "The prompt was removed before its turn")
    return {"messageId": watch.message_id, **_about(watch)}


def _answer(end: TurnEnd, watch: PromptWatch) -> AcpResult:
    """The answer of version 1: how the turn ended. A prompt that was cancelled is no error, however it ended."""
    if watch.is_cancelled and end.reason in ("error", "interrupted"):
        return {"stopReason": "cancelled", **_about(watch)}
    if end.reason not in STOP_REASONS:
        raise errors.turn_error(end.error)
    return {"stopReason": STOP_REASONS[end.reason], **_about(watch)}


def _about(watch: PromptWatch) -> AcpResult:
    about: dict[str, object] = {"promptId": watch.prompt_id}
    if watch.turn_id:
        about["turnId"] = watch.turn_id
    if watch.end:
        about["seq"] = watch.end.seq
    return {"_meta": {"sidecar": about}}


def _prompt_id(params: PromptParams) -> str:
    given = params.own.get("promptId")
    if given is None:
        return f"acp-{secrets.token_hex(8)}"
    if not isinstance(given, str) or not 1 <= len(given) <= MAX_ID:
        raise invalid_param("_meta.sidecar.promptId", f"a text of 1 to {MAX_ID} characters")
    return given
