"""Permission checks for tool calls: decided by rules and mode, otherwise by asking the user. Every decision is
journalled.

Fails closed: what the policy cannot decide is asked, and when the app cannot ask, it is denied.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio
import anyio.to_thread
import msgspec

from ...model.content import Item, PermissionOutcome, ResolvedBy, UserDecision
from ...model.events import NewEvent
from ...model.failures import Failure
from ...model.files import Change
from ...policy.decide import (
    HookAdvice,
    PathNames,
    PolicyDecision,
    Subject,
    safe_decide,
)
from ...policy.denials import denial
from ...policy.rules import Rule
from ...policy.suggestions import Suggestion, suggestions
from ...store.store import Store
from ...store.tables.work import RuleRow
from ...system.clock import now
from ...tools.base import Confinement, Intent, Permission
from ..journal.running_turn import MAX_TITLE, RunningTurn, new_id
from ..services.client_app import CannotAsk, ClientApp, PermissionAnswer, PermissionOption, PermissionRequest
from ..services.client_requests import OpenRequests, PendingRequest

logger = logging.getLogger(__name__)

MAX_REASON = 300
"""Characters of the reason in a request: one or two sentences of a rule."""


Permissions = OpenRequests[PermissionAnswer, PermissionOutcome]
PendingPermission = PendingRequest[PermissionAnswer, PermissionOutcome]

_LABELS: dict[UserDecision, str] = {
    "allow_once": "Allow this once",
    "allow_chat": "Allow in this chat",
    "allow_always": "Always allow in this project",
    "deny_once": "Deny",
    "deny_always": "Never allow in this project",
}


class PermissionContext(msgspec.Struct, frozen=True):
    """What a decision depends on: the chat, its mode and project, and the rules of the settings."""

    chat: int
    session_id: str
    chat_id: str | None
    mode: str
    project: str | None
    folders: Sequence[str]
    file_rules: Sequence[Rule]
    expiry_s: float | None
    hook: HookAdvice | None = None
    """What a hook decided about the call."""
    names: PathNames | None = None
    """Resolves the other names of a path, such as links; None for a chat without a project."""
    unhidden: str | None = None
    """Why a command could read what read rules withhold; None when the sandbox hides it."""


class _PermissionCase(msgspec.Struct, frozen=True):
    """One subject that needs permission, with the policy's decision."""

    context: PermissionContext
    turn: RunningTurn
    item: Item
    subject: Subject
    decision: PolicyDecision
    changes: Sequence[Change]
    sandbox: Confinement | None = None


class PermissionChecker:
    def __init__(self, store: Store, app: ClientApp, requests: Permissions) -> None:
        self._store = store
        self._app = app
        self._requests = requests

    async def check(
        self,
        context: PermissionContext,
        turn: RunningTurn,
        item: Item,
        intent: Intent,
        changes: Sequence[Change],
    ) -> list[Permission]:
        """Decide whether the call, or each part of it, may run; wait for the user where the policy says to ask."""
        # Read for each call: a rule that the user has just removed must not allow the next one.
        rules = [
            *context.file_rules,
            *map(rule_of, await self._store.permission_rules.of(context.chat, context.project)),
        ]
        subjects = _subjects(intent, context)
        # In a thread: names are looked up on disk. They are cached for the text of the request.
        decisions = await anyio.to_thread.run_sync(
            lambda: [_decide(context, rules, subject) for subject in subjects]
        )
        cases = [
            _PermissionCase(context, turn, item, subject, decision, changes, intent.sandbox)
            for subject, decision in zip(subjects, decisions, strict=True)
        ]
        # What the policy decides is recorded first, so that the user is asked once, about the rest.
        known = [await self._decide_unasked(case) for case in cases]
        asking = [case for case, permission in zip(cases, known, strict=True) if permission is None]
        answer = await self._ask(_merge_cases(asking, intent)) if asking else Permission(True)
        return [permission or answer for permission in known]

    async def _decide_unasked(self, case: _PermissionCase) -> Permission | None:
        """The permission, when it needs no question; None when the user must be asked."""
        decision = case.decision
        if decision.effect == "allow":
            if case.subject.kind != "read" or decision.by == "rule":
                await case.turn.note_permission(_audit_record(case))
            # A rule for exactly this comes from the user's answer.
            return Permission(True, by_user=decision.rule is not None and decision.rule.exact is not None)
        if decision.effect == "ask" and self._app.can("permissions"):
            return None
        denied = _denial(decision)
        await self._record_denial(case, denied)
        if decision.effect == "deny":
            return Permission(False, f"Denied: {_model_reason(decision)}. Do not try the same again.", denied)
        return Permission(
            False,
            "Denied: this needs the user's permission, and the app cannot ask for it. Go on without it.",
            denied,
        )

    async def _record_denial(self, case: _PermissionCase, denied: dict[str, str]) -> None:
        request = _request(case)
        rule = case.decision.rule if case.decision.effect == "deny" else None
        outcome = PermissionOutcome(
            permission_id=request.permission_id,
            item_id=case.item.id,
            decision="deny_once",
            by="rule" if rule else "policy",
            reason=case.decision.reason,
            code=denied["code"],
            rule_id=rule.id if rule else None,
        )
        turn = case.turn.id
        await case.turn.record(
            NewEvent("permission.requested", request, turn), NewEvent("permission.resolved", outcome, turn)
        )

    async def _ask(self, case: _PermissionCase) -> Permission:
        request = _request(case)
        id = request.permission_id
        pending = self._requests.open(id)
        await case.turn.request_opened("permission", id, request)
        recorded = await pending.keep(
            lambda: self._wait_for_answer(pending, request, case.context.expiry_s),
            lambda answer: self._record_answer(case, id, answer),
        )
        self._requests.close(id, recorded)
        return _to_permission(case.turn, recorded)

    async def _wait_for_answer(
        self, pending: PendingPermission, request: PermissionRequest, expiry_s: float | None
    ) -> PermissionAnswer:
        async def deliver() -> None:
            try:
                pending.answer(await self._app.ask_permission(request))
            except CannotAsk as failure:
                pending.answer(PermissionAnswer("deny_once", failure.message, by="policy"))
            except Failure as failure:
                logger.warning("the app did not answer a permission", extra={"error": failure.message})
                feedback = f"The app failed to ask: {failure.message}"
                pending.answer(PermissionAnswer("deny_once", feedback, by="policy"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliver)
            with anyio.move_on_after(expiry_s):
                await pending.wait_answered()
            # Without effect when there is an answer already: the first one counts.
            pending.answer(PermissionAnswer("deny_once", by="expiry"))
            tasks.cancel_scope.cancel()
        return await pending.wait_answered()

    async def _record_answer(
        self, case: _PermissionCase, id: str, answer: PermissionAnswer
    ) -> PermissionOutcome:
        """Journal the answer, after storing the rule that it creates."""
        context = case.context
        standing = _standing_rule(case.subject, answer.decision)
        rows = _rule_rows(standing, "chat" if context.project is None else standing.scope) if standing else []
        # The rule before the outcome: if the process dies in between, a rule is stored whose answer is not,
        # never the reverse.
        for row in rows:
            await self._store.permission_rules.put(row, context.chat, context.project)
        outcome = PermissionOutcome(
            permission_id=id,
            item_id=case.item.id,
            decision=answer.decision,
            by=answer.by,
            feedback=answer.feedback,
            then=answer.then,
            code=_code_of(answer.by) if answer.decision.startswith("deny") else None,
            rule_id=rows[-1].id if rows else None,
        )
        await case.turn.request_closed("permission", id, outcome)
        return outcome


def rule_of(row: RuleRow) -> Rule:
    return msgspec.convert(row, Rule, from_attributes=True)


def rule_row(
    scope: str, effect: str, kind: str, pattern: str, source: str, folder: str | None = None
) -> RuleRow:
    """Return a permission rule as it is stored, with a new id."""
    return RuleRow(new_id("r"), scope, effect, kind, pattern, folder, source, now())


def _standing_rule(subject: Subject, decision: str) -> Suggestion | None:
    """The rule that a decision creates; None for a decision that counts once."""
    return next((found for found in suggestions(subject) if found.decision == decision), None)


def _rule_rows(standing: Suggestion, scope: str) -> list[RuleRow]:
    return [
        rule_row(scope, standing.effect, standing.kind, pattern, "answer", standing.folder)
        for pattern in standing.patterns
    ]


def _decide(context: PermissionContext, rules: Sequence[Rule], subject: Subject) -> PolicyDecision:
    return safe_decide(subject, context.mode, rules, context.folders, context.hook)


def _subjects(intent: Intent, context: PermissionContext) -> list[Subject]:
    """What is decided separately: each part of an intent, or the whole of it."""
    whole = Subject(
        kind=intent.kind,
        text=intent.subject,
        paths=tuple(edit.path for edit in intent.edits),
        folder=intent.folder,
        reads_only=intent.reads_only,
        after=intent.after,
        language=intent.language,
        real=context.names,
        always_asks=intent.always_asks,
        unhidden=context.unhidden,
    )
    return [msgspec.structs.replace(whole, text=command) for _, command in intent.parts] or [whole]


def _merge_cases(cases: Sequence[_PermissionCase], intent: Intent) -> _PermissionCase:
    """Merge all subjects that need an answer into one question; the reason of an asking rule is part of it."""
    if len(cases) == 1:
        return cases[0]
    commands = tuple(case.subject.text for case in cases)
    shown = "\n".join(f"# {label}\n{command}" for label, command in intent.parts if command in commands)
    subject = msgspec.structs.replace(cases[0].subject, text=shown, commands=commands)
    decisions = [case.decision for case in cases]
    first = next((decision for decision in decisions if decision.rule), decisions[0])
    reason = "; ".join(dict.fromkeys(decision.reason for decision in decisions))[:MAX_REASON]
    decision = msgspec.structs.replace(first, reason=reason)
    return msgspec.structs.replace(cases[0], subject=subject, decision=decision)


def _request(case: _PermissionCase) -> PermissionRequest:
    context, item, subject, decision = case.context, case.item, case.subject, case.decision
    standing: dict[UserDecision, str] = {
        found.decision: found.text
        for found in suggestions(subject)
        # A rule or a hook that asks outweighs a rule that allows.
        if found.effect == "deny" or (decision.rule is None and decision.by != "hook")
    }
    options = [
        PermissionOption(decision=name, label=label, rule=standing.get(name))
        for name, label in _LABELS.items()
        if name.endswith("once") or name in standing
    ]
    return PermissionRequest(
        permission_id=new_id("pe"),
        session_id=context.session_id,
        chat_id=context.chat_id,
        turn_id=case.turn.id,
        item_id=item.id,
        kind=subject.kind,
        title=_title(item, subject),
        subject=_resolved_subject(subject),
        reason=decision.reason,
        reason_code=decision.code or (decision.by if decision.by != "policy" else "no_rule"),
        changes=list(case.changes),
        options=options,
        folder=subject.folder,
        language=subject.language,
        sandbox=case.sandbox,
        rewritten=item.rewritten,
        hook=_asking_hook(case),
        expires_at=now() + int(context.expiry_s * 1000) if context.expiry_s else None,
    )


def _asking_hook(case: _PermissionCase) -> str | None:
    """The hook that the decision comes from."""
    hook = case.context.hook
    return hook.hook if hook and case.decision.by == "hook" else None


def _resolved_subject(subject: Subject) -> str:
    """The subject; for a path that is or contains a link, the file that it resolves to."""
    if subject.kind not in ("read", "edit"):
        return subject.text
    return next(iter(subject.names(subject.text)[1:]), subject.text)


def _title(item: Item, subject: Subject) -> str:
    title, shown = item.title or item.name or "", _resolved_subject(subject)
    return title if shown == subject.text else f"{title} ({subject.text} leads to {shown})"[:MAX_TITLE]


def _audit_record(case: _PermissionCase) -> PermissionOutcome:
    """The journal entry for what was allowed without asking, with the reason."""
    decision = case.decision
    return PermissionOutcome(
        permission_id=new_id("pe"),
        item_id=case.item.id,
        kind=case.subject.kind,
        subject=_resolved_subject(case.subject),
        decision="allow_once",
        by="rule" if decision.rule else "policy",
        reason=decision.reason,
        hook=_asking_hook(case),
        rule_id=decision.rule.id if decision.rule else None,
    )


_WHY_DENIED: dict[ResolvedBy, str] = {
    "expiry": "Nobody answered in time.",
    "policy": "Denied: the user could not be asked.",
}


def _to_permission(turn: RunningTurn, outcome: PermissionOutcome) -> Permission:
    feedback = outcome.feedback
    if outcome.is_allowed:
        return Permission(True, feedback or "", by_user=True)
    if outcome.then == "stop":
        turn.stop()
    why = _WHY_DENIED.get(outcome.by, "The user denied this.")
    denied = denial(_code_of(outcome.by), feedback or why, outcome.by)
    return Permission(False, f"{why} {feedback}" if feedback else f"{why} Do not try the same again.", denied)


def _model_reason(decision: PolicyDecision) -> str:
    """The reason of a denial as the model gets it, which is not fenced: without words from the project's file."""
    rule = decision.rule
    # The file belongs to the project: its words could instruct the model outside of any fence.
    if rule is not None and rule.source == "file" and rule.scope == "project":
        return f"a rule of the project denies this {rule.kind}" if rule.kind != "*" else "a rule denies this"
    return decision.reason


def _denial(decision: PolicyDecision) -> dict[str, str]:
    """The denial of a call about which the user was not asked."""
    if decision.effect == "ask":
        return denial("cannot_ask", decision.reason)
    return denial("rule_denied" if decision.rule else "read_only", decision.reason)


def _code_of(by: ResolvedBy) -> str:
    return {"user": "user_denied", "expiry": "nobody_answered"}.get(by, "cannot_ask")
