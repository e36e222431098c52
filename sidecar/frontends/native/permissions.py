"""Handlers of requests that wait for the user, and of permission rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Key
from sidecar_protocol.peer import Call

from ...chat.actions import permission_rules
from ...chat.journal.identity import ChatAddress
from ...chat.services.client_app import InputAnswer, PermissionAnswer
from ...chat.services.client_requests import AnyAnswer, AnyOutcome, OpenRequests
from ...chat.sessions.chats import Chats
from ...chat.sessions.handed import Handed, HandedInput, HandedPermission
from ...model.content import InputOutcome, PermissionOutcome
from ...model.failures import invalid_param
from ...policy.rules import rule_text
from ...rpc.dispatch import Handler, run_to_end
from ...store.tables.leases import LeaseHeld
from ...system.lazy import lazy_module
from .wire import address_of

if TYPE_CHECKING:
    from ...chat.sessions import handover
else:
    handover = lazy_module("sidecar.chat.sessions.handover")


class PermissionHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]]) -> None:
        self._chats = ready

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "permission/answer": self._answer,
            "input/answer": self._answer_input,
            "permissionRules/list": self._list,
            "permissionRules/set": self._set,
            "permissionRules/remove": self._remove,
        }

    async def _answer(self, call: Call, params: m.PermissionAnswerParams) -> m.PermissionOutcome:
        then: Literal["stop"] | None = "stop" if params.then == "stop" else None
        answer = PermissionAnswer(params.decision, params.feedback, then)
        requests = (await self._chats()).services.requests.permissions
        chat = await self._named_chat(params)
        handed = Handed[PermissionOutcome](HandedPermission(params.permission_id, answer), PermissionOutcome)
        recorded = await self._answered(requests, params.permission_id, answer, chat, handed)
        return m.PermissionOutcome(
            permission_id=params.permission_id,
            decision=recorded.decision,
            by=recorded.by,
            rule_id=recorded.rule_id,
            feedback=recorded.feedback,
        )

    async def _answer_input(self, call: Call, params: m.InputAnswerParams) -> m.InputOutcome:
        answer = InputAnswer(params.action, params.values or None)
        requests = (await self._chats()).services.requests.inputs
        chat = await self._named_chat(params)
        handed = Handed[InputOutcome](HandedInput(params.input_id, answer), InputOutcome)
        recorded = await self._answered(requests, params.input_id, answer, chat, handed)
        return m.InputOutcome(
            input_id=params.input_id,
            action=recorded.action,
            by=recorded.by,
            values=recorded.values or {},
        )

    async def _answered(
        self,
        requests: OpenRequests[AnyAnswer, AnyOutcome],
        id: str,
        answer: AnyAnswer,
        chat: int | None,
        handed: Handed[AnyOutcome],
    ) -> AnyOutcome:
        """Answer a request to the user, also one of a turn that another process runs."""
        try:
            return await requests.answer(id, answer, chat)
        except LeaseHeld as held:
            return await handover.answer_elsewhere(
                (await self._chats()).store, requests, handed, answer, held
            )

    async def _named_chat(self, params: Key) -> int | None:
        """The chat that the key names; None without a key, as the id of a request is enough."""
        address = address_of(params)
        if address == ChatAddress():
            return None
        return (await (await self._chats()).existing_session(address)).chat.id

    async def _list(self, call: Call, params: m.PermissionRulesListParams) -> m.PermissionRulesResult:
        place = await self._place(params)
        return await _rules(place, params.scope)

    async def _set(self, call: Call, params: m.PermissionRulesSetParams) -> m.PermissionRulesResult:
        place = await self._place(params)
        text = params.rule
        if (text is None) == (params.kind is None and params.pattern is None):
            raise invalid_param("rule", "either `rule` or `kind` and `pattern`")
        if text is None:
            text = rule_text(params.kind or "*", params.pattern or "*")
        id = await run_to_end(permission_rules.put_rule(place, params.scope, params.effect, text))
        return await _rules(place, params.scope, id)

    async def _remove(self, call: Call, params: m.PermissionRulesRemoveParams) -> m.PermissionRulesResult:
        place = await self._place(params)
        await run_to_end(permission_rules.remove_rule(place, params.id))
        return await _rules(place, None, params.id)

    async def _place(self, params: Any) -> permission_rules.RuleTarget:
        return await permission_rules.rule_scope(await self._chats(), address_of(params))


async def _rules(
    place: permission_rules.RuleTarget, scope: str | None, id: str | None = None
) -> m.PermissionRulesResult:
    items = [
        m.PermissionRule(
            id=rule.id,
            scope=rule.scope,
            effect=rule.effect,
            kind=rule.kind,
            pattern=rule.pattern,
            rule=rule_text(rule.kind, rule.pattern),
            source=rule.source,
            folder=rule.folder,
            created_at=created,
        )
        for rule, created in await permission_rules.list_rules(place)
        if scope is None or rule.scope == scope
    ]
    return m.PermissionRulesResult(items=items, rule_id=id)
