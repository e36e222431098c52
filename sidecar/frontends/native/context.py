"""Handlers of methods about the model's context: `chat/context`, `chat/compact`, `chat/uncompact`, `rules/list`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Key
from sidecar_protocol.peer import Call

from ...chat.actions import preview, rules, sent_context
from ...chat.compaction import compactor
from ...chat.services import content
from ...chat.sessions.chats import Chats
from ...chat.sessions.session import Session
from ...context.materials import ManifestBlock
from ...model.content import Block
from ...model.failures import invalid_param
from ...rpc.dispatch import Handler, run_to_end
from .prompts import overrides_of
from .wire import address_of, as_wire, block_of, chat_ref, session_of, text_block


class ContextHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]]) -> None:
        self._chats = ready

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "chat/context": self._context,
            "chat/compact": self._compact,
            "chat/uncompact": self._uncompact,
            "rules/list": self._rules,
        }

    async def _context(self, call: Call, params: m.ChatContextParams) -> m.ChatContextResult:
        if params.budget is not None and params.budget < 1:
            raise invalid_param("budget", "a positive number")
        chats = await self._chats()
        session = await chats.existing_session(address_of(params))
        if params.turn_id is not None:
            return _encode_sent(await _read_sent(session, params), session, params)
        if params.request is not None:
            raise invalid_param("request", "only together with `turnId`")
        overrides = overrides_of(params.overrides, params.context)
        session.turn_runner.check_model(overrides)
        manifest = await preview.preview_manifest(
            session, await _stored_blocks(chats, params), overrides, params.budget
        )
        return m.ChatContextResult(
            **chat_ref(session.chat.key),
            model=manifest.model,
            window=manifest.window,
            reserve=manifest.reserve,
            budget=manifest.budget,
            used=manifest.used,
            exact=manifest.exact,
            blocks=[_block_to_wire(block, bool(params.include_text)) for block in manifest.blocks],
        )

    async def _compact(self, call: Call, params: m.ChatCompactParams) -> m.ChatCompactResult:
        session = await session_of(self._chats, params)
        if params.postpone_turns is not None:
            if params.postpone_turns < 0:
                raise invalid_param("postponeTurns", "a number from 0")
            await run_to_end(preview.postpone_compaction(session, params.postpone_turns))
            return m.ChatCompactResult(**chat_ref(session.chat.key), compaction_id=None)
        planned = await preview.plan_compaction(session)
        ref = chat_ref(session.chat.key)
        if planned is None:
            return m.ChatCompactResult(**ref, compaction_id=None)
        id = None if params.dry_run else await preview.compact_chat(session, params.instructions)
        return m.ChatCompactResult(
            **ref,
            compaction_id=id,
            turns=len(planned.oldest),
            tokens_before=planned.before,
            tokens_after=planned.after,
        )

    async def _uncompact(self, call: Call, params: Key) -> m.ChatUncompactResult:
        session = await session_of(self._chats, params)
        id = await run_to_end(compactor.undo_compaction(session))
        return m.ChatUncompactResult(**chat_ref(session.chat.key), compaction_id=id)

    async def _rules(self, call: Call, params: Key) -> m.RulesListResult:
        chats = await self._chats()
        listed = await rules.list_rules(chats, address_of(params))
        return m.RulesListResult(items=[as_wire(rule, m.RuleInfo) for rule in listed])


_OF_A_PROMPT = ("text", "content", "context", "overrides", "budget")


async def _read_sent(session: Session, params: m.ChatContextParams) -> sent_context.SentContext:
    assert params.turn_id is not None
    for name in _OF_A_PROMPT:
        if getattr(params, name) is not None:
            raise invalid_param(name, "not together with `turnId`: the turn has its own prompt")
    return await sent_context.read_sent(session, params.turn_id, params.request)


def _encode_sent(
    sent: sent_context.SentContext, session: Session, params: m.ChatContextParams
) -> m.ChatContextResult:
    manifest = sent.manifest
    with_text = params.include_text is not False and sent.texts_gone is None
    return m.ChatContextResult(
        **chat_ref(session.chat.key),
        model=manifest.model if manifest else sent.turn.model,
        window=manifest.window if manifest else None,
        reserve=manifest.reserve if manifest else None,
        budget=manifest.budget if manifest else None,
        used=manifest.used if manifest else None,
        exact=manifest is not None and manifest.exact,
        blocks=[_block_to_wire(block, with_text) for block in manifest.blocks] if manifest else [],
        turn_id=sent.turn.id,
        request=sent.number or None,
        requests=sent.of,
        text_gone=sent.texts_gone,
    )


async def _stored_blocks(chats: Chats, params: m.ChatContextParams) -> list[Block]:
    if params.text is not None and params.content is not None:
        raise invalid_param("text", "at most one of `text` and `content`")
    if params.content is not None:
        return await content.store_content(chats.store, [block_of(block) for block in params.content])
    return [text_block(params.text or "")]


def _block_to_wire(block: ManifestBlock, with_text: bool) -> m.ContextBlock:
    return m.ContextBlock(
        id=block.id,
        kind=block.kind,
        label=block.label,
        tokens=block.tokens,
        included=block.included,
        gate=block.gate,
        text=block.text if with_text else None,
    )
