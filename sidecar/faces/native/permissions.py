"""Handlers of what waits for a person, and of the rules that decide without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from sidecar_protocol import messages as m
from sidecar_protocol.peer import Call

from ...chat import rulebook
from ...chat.chats import Chats
from ...chat.permits import checked_answer
from ...model.failures import invalid
from ...policy.rules import to_text
from ...rpc.dispatch import Handler
from .wire import address_of


class PermissionHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]]) -> None:
        self._ready = ready

    def table(self) -> Mapping[str, Handler]:
        return {
            "permission/answer": self._answer,
            "input/answer": self._answer_input,
            "permissionRules/list": self._list,
            "permissionRules/set": self._set,
            "permissionRules/remove": self._remove,
        }

    async def _answer(self, call: Call, params: m.PermissionAnswerParams) -> m.PermissionOutcome:
        requests = (await self._ready()).workshop.requests
        then = params.then if params.then == "stop" else None
        answer = checked_answer(params.decision, params.feedback, then)
        recorded = await requests.answer("permission", params.permission_id, answer)
        return m.PermissionOutcome(
            permission_id=params.permission_id,
            decision=recorded["decision"],
            by=recorded["by"],
            rule_id=recorded.get("ruleId"),
            feedback=recorded.get("feedback"),
        )

    async def _answer_input(self, call: Call, params: m.InputAnswerParams) -> m.InputOutcome:
        requests = (await self._ready()).workshop.requests
        answer: dict[str, Any] = {"action": params.action}
        if params.values:
            answer["values"] = params.values
        recorded = await requests.answer("input", params.input_id, answer)
        return m.InputOutcome(
            input_id=params.input_id,
            action=recorded["action"],
            by=recorded["by"],
            values=recorded.get("values") or {},
        )

    async def _list(self, call: Call, params: m.PermissionRulesListParams) -> m.PermissionRulesResult:
        place = await self._place(params)
        return await _rules(place, params.scope)

    async def _set(self, call: Call, params: m.PermissionRulesSetParams) -> m.PermissionRulesResult:
        place = await self._place(params)
        text = params.rule
        if (text is None) == (params.kind is None and params.pattern is None):
            raise invalid("rule", "either `rule` or `kind` and `pattern`")
        if text is None:
            text = to_text(params.kind or "*", params.pattern or "*")
        with anyio.CancelScope(shield=True):
            id = await rulebook.put(place, params.scope, params.effect, text)
        return await _rules(place, params.scope, id)

    async def _remove(self, call: Call, params: m.PermissionRulesRemoveParams) -> m.PermissionRulesResult:
        place = await self._place(params)
        with anyio.CancelScope(shield=True):
            await rulebook.remove(place, params.id)
        return await _rules(place, None, params.id)

    async def _place(self, params: Any) -> rulebook.Place:
        return await rulebook.place(await self._ready(), address_of(params))


async def _rules(place: rulebook.Place, scope: str | None, id: str | None = None) -> m.PermissionRulesResult:
    items = [
        m.PermissionRule(
            id=rule.id,
            scope=rule.scope,
            effect=rule.effect,
            kind=rule.kind,
            pattern=rule.pattern,
            rule=to_text(rule.kind, rule.pattern),
            source=rule.source,
            folder=rule.folder,
            created_at=created,
        )
        for rule, created in await rulebook.listed(place)
        if scope is None or rule.scope == scope
    ]
    return m.PermissionRulesResult(items=items, rule_id=id)
