"""Handlers of what the model is sent: `chat/context`, `chat/compact`, `chat/uncompact`, `rules/list`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Key
from sidecar_protocol.peer import Call

from ...chat import compacting, content, preview
from ...chat.chats import Chats
from ...model.content import Block
from ...model.failures import invalid
from ...rpc.dispatch import Handler
from .prompts import context_of, overrides_of
from .wire import address_of, as_wire, block_of, chat_ref, text_block


class ContextHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]]) -> None:
        self._ready = ready

    def table(self) -> Mapping[str, Handler]:
        return {
            "chat/context": self._context,
            "chat/compact": self._compact,
            "chat/uncompact": self._uncompact,
            "rules/list": self._rules,
        }

    async def _context(self, call: Call, params: m.ChatContextParams) -> m.ChatContextResult:
        if params.budget is not None and params.budget < 1:
            raise invalid("budget", "a positive number")
        chats = await self._ready()
        session = await chats.known(address_of(params))
        overrides = {**overrides_of(params.overrides), **context_of(params.context)}
        manifest = await preview.manifest(session, await _blocks(chats, params), overrides, params.budget)
        blocks: list[dict[str, Any]] = manifest.pop("blocks")
        if not params.include_text:
            blocks = [{key: value for key, value in block.items() if key != "text"} for block in blocks]
        return m.ChatContextResult(
            **chat_ref(session.chat.key),
            blocks=[as_wire(block, m.ContextBlock) for block in blocks],
            **manifest,
        )

    async def _compact(self, call: Call, params: m.ChatCompactParams) -> m.ChatCompactResult:
        session = await (await self._ready()).known(address_of(params))
        if params.postpone_turns is not None:
            if params.postpone_turns < 0:
                raise invalid("postponeTurns", "a number from 0")
            with anyio.CancelScope(shield=True):
                await preview.postpone(session, params.postpone_turns)
            return m.ChatCompactResult(**chat_ref(session.chat.key), compaction_id=None)
        planned = await preview.planned(session)
        ref = chat_ref(session.chat.key)
        if planned is None:
            return m.ChatCompactResult(**ref, compaction_id=None)
        id = None if params.dry_run else await preview.compact(session, params.instructions)
        return m.ChatCompactResult(
            **ref,
            compaction_id=id,
            turns=len(planned.oldest),
            tokens_before=planned.before,
            tokens_after=planned.after,
        )

    async def _uncompact(self, call: Call, params: Key) -> m.ChatUncompactResult:
        session = await (await self._ready()).known(address_of(params))
        with anyio.CancelScope(shield=True):
            id = await compacting.undo(session)
        return m.ChatUncompactResult(**chat_ref(session.chat.key), compaction_id=id)

    async def _rules(self, call: Call, params: Key) -> m.RulesListResult:
        chats = await self._ready()
        from ...chat import instructions

        listed = await instructions.listed(chats, address_of(params))
        return m.RulesListResult(items=[as_wire(rule, m.RuleInfo) for rule in listed])


async def _blocks(chats: Chats, params: m.ChatContextParams) -> list[Block]:
    if params.text is not None and params.content is not None:
        raise invalid("text", "at most one of `text` and `content`")
    if params.content is not None:
        return await content.keep(chats.store, [block_of(block) for block in params.content])
    return [text_block(params.text or "")]
