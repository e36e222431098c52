"""Leave for what a tool wants to do: decided by rules and mode, else asked of a person, and always journalled.

Fails closed: what cannot be decided is asked, and what nobody can be asked is denied.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import anyio
import msgspec

from ..model.content import Item
from ..model.events import NewEvent
from ..model.failures import Failure
from ..model.files import Change
from ..policy.decide import Decision, HookWord, Subject, Suggestion, safe_decide, suggestions
from ..policy.denials import denial
from ..policy.rules import Rule
from ..store.store import Store
from ..store.work import RuleRow
from ..tools.base import Need, Verdict
from .apps import App
from .requests import Requests, Waiting
from .running import RunningTurn, new_id, now

logger = logging.getLogger(__name__)

MAX_REASON = 300
"""Characters of why is asked: one sentence of a rule or two."""

DECISIONS = ("allow_once", "allow_chat", "allow_always", "deny_once", "deny_always")

_LABELS = {
    "allow_once": "Allow this once",
    "allow_chat": "Allow in this chat",
    "allow_always": "Always allow in this project",
    "deny_once": "Deny",
    "deny_always": "Never allow in this project",
}


class Ground(msgspec.Struct, frozen=True):
    """What a decision stands on: the chat, its mode and project, and the rules of its files."""

    chat: int
    session_id: str
    chat_id: str | None
    mode: str
    project: str | None
    folders: Sequence[str]
    file_rules: Sequence[Rule]
    expiry_s: float | None
    hook: HookWord | None = None
    """What a hook has said of the call."""


class _Case(msgspec.Struct, frozen=True):
    """One call that asks for leave, and what the policy said."""

    ground: Ground
    turn: RunningTurn
    item: Item
    subject: Subject
    decision: Decision
    changes: Sequence[Change]


class Permits:
    def __init__(self, store: Store, app: App, requests: Requests) -> None:
        self._store = store
        self._app = app
        self._requests = requests

    async def leave(
        self, ground: Ground, turn: RunningTurn, item: Item, need: Need, changes: Sequence[Change]
    ) -> list[Verdict]:
        """Whether the call may be carried out, or each part of it; waits for a person where only one can say."""
        rules = [*ground.file_rules, *map(rule_of, await self._store.rules(ground.chat, ground.project))]
        cases = [
            _Case(ground, turn, item, subject, _decided(ground, rules, subject), changes)
            for subject in _subjects(need)
        ]
        known = [await self._known(case) for case in cases]
        asking = [case for case, verdict in zip(cases, known, strict=True) if verdict is None]
        answer = await self._ask(_together(asking, need)) if asking else Verdict(True)
        return [verdict or answer for verdict in known]

    async def _known(self, case: _Case) -> Verdict | None:
        """The verdict for which nobody is asked; None when somebody must be."""
        decision = case.decision
        if decision.effect == "allow":
            if case.subject.kind != "read" or decision.by == "rule":
                await case.turn.note_permission(_audit(case))
            return Verdict(True)
        if decision.effect == "ask" and self._app.can("permissions"):
            return None
        denied = _denial(decision)
        await self._deny_at_once(case, denied)
        if decision.effect == "deny":
            return Verdict(False, f"Denied: {decision.reason}. Do not try the same again.", denied)
        return Verdict(
            False,
            "Denied: this needs the user's permission, and the app cannot ask for it. Go on without it.",
            denied,
        )

    async def _deny_at_once(self, case: _Case, denied: dict[str, str]) -> None:
        request = _request(case)
        rule = case.decision.rule if case.decision.effect == "deny" else None
        outcome = {
            "permissionId": request["permissionId"],
            "decision": "deny_once",
            "by": "rule" if rule else "policy",
            "itemId": case.item.id,
            "reason": case.decision.reason,
            "code": denied["code"],
            **({"ruleId": rule.id} if rule else {}),
        }
        turn = case.turn.id
        await case.turn.record(
            NewEvent("permission.requested", request, turn), NewEvent("permission.resolved", outcome, turn)
        )

    async def _ask(self, case: _Case) -> Verdict:
        request = _request(case)
        id = request["permissionId"]
        waiting = self._requests.open(id)
        await case.turn.request_opened("permission", id, request)
        answer = await self._answer(waiting, request, case.ground.expiry_s)
        with anyio.CancelScope(shield=True):
            recorded = await self._resolve(case, id, answer)
        self._requests.close(id, recorded)
        return _verdict(case.turn, recorded)

    async def _answer(
        self, waiting: Waiting, request: dict[str, Any], expiry_s: float | None
    ) -> dict[str, Any]:
        async def deliver() -> None:
            try:
                waiting.answer(_checked(await self._app.ask_permission(request)))
            except Failure as failure:
                logger.warning("the app did not answer a permission", extra={"error": failure.message})
                feedback = f"The app failed to ask: {failure.message}"
                waiting.answer({"decision": "deny_once", "by": "policy", "feedback": feedback})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliver)
            with anyio.move_on_after(expiry_s):
                await waiting.answered()
            waiting.answer({"decision": "deny_once", "by": "expiry"})
            tasks.cancel_scope.cancel()
        return await waiting.answered()

    async def _resolve(self, case: _Case, id: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Journal the answer, after the rule that it makes."""
        ground = case.ground
        outcome = {"permissionId": id, "itemId": case.item.id, "by": "user", **answer}
        if answer["decision"].startswith("deny"):
            outcome["code"] = _code_of(outcome["by"])
        standing = _standing(case.subject, answer["decision"])
        rows = _rows(standing, "chat" if ground.project is None else standing.scope) if standing else []
        for row in rows:
            await self._store.put_rule(row, ground.chat, ground.project)
            outcome["ruleId"] = row.id
        await case.turn.request_closed("permission", id, outcome)
        return outcome


def rule_of(row: RuleRow) -> Rule:
    return msgspec.convert(row, Rule, from_attributes=True)


def rule_row(
    scope: str, effect: str, kind: str, pattern: str, source: str, folder: str | None = None
) -> RuleRow:
    """A rule as it is kept, under an id of its own."""
    return RuleRow(new_id("r"), scope, effect, kind, pattern, folder, source, now())


def _standing(subject: Subject, decision: str) -> Suggestion | None:
    """The standing answer that a decision makes; None for one that counts once."""
    return next((found for found in suggestions(subject) if found.decision == decision), None)


def _rows(standing: Suggestion, scope: str) -> list[RuleRow]:
    return [
        rule_row(scope, standing.effect, standing.kind, pattern, "answer", standing.folder)
        for pattern in standing.patterns
    ]


def _decided(ground: Ground, rules: Sequence[Rule], subject: Subject) -> Decision:
    return safe_decide(subject, ground.mode, rules, ground.folders, ground.hook)


def _subjects(need: Need) -> list[Subject]:
    """What is decided by itself: each part of a need, or all of it."""
    whole = Subject(
        kind=need.kind,
        text=need.subject,
        paths=tuple(edit.path for edit in need.edits),
        folder=need.folder,
        reads_only=need.reads_only,
        after=need.after,
        language=need.language,
    )
    return [msgspec.structs.replace(whole, text=command) for _, command in need.parts] or [whole]


def _together(cases: Sequence[_Case], need: Need) -> _Case:
    """One question for all that must be asked; a rule that asks for one of them speaks in it."""
    if len(cases) == 1:
        return cases[0]
    commands = tuple(case.subject.text for case in cases)
    shown = "\n".join(f"# {label}\n{command}" for label, command in need.parts if command in commands)
    subject = msgspec.structs.replace(cases[0].subject, text=shown, commands=commands)
    decisions = [case.decision for case in cases]
    first = next((decision for decision in decisions if decision.rule), decisions[0])
    reason = "; ".join(dict.fromkeys(decision.reason for decision in decisions))[:MAX_REASON]
    decision = msgspec.structs.replace(first, reason=reason)
    return msgspec.structs.replace(cases[0], subject=subject, decision=decision)


def _request(case: _Case) -> dict[str, Any]:
    ground, item, subject, decision = case.ground, case.item, case.subject, case.decision
    standing = {
        found.decision: {"rule": found.text}
        for found in suggestions(subject)
        # A rule or a hook that asks outweighs a rule that allows.
        if found.effect == "deny" or (decision.rule is None and decision.by != "hook")
    }
    options = [
        {"decision": name, "label": label, **standing.get(name, {})}  # type: ignore[call-overload]
        for name, label in _LABELS.items()
        if name.endswith("once") or name in standing
    ]
    expires = {"expiresAt": now() + int(ground.expiry_s * 1000)} if ground.expiry_s else {}
    return {
        "permissionId": new_id("pe"),
        "sessionId": ground.session_id,
        "chatId": ground.chat_id,
        "turnId": case.turn.id,
        "itemId": item.id,
        "kind": subject.kind,
        "title": item.title or item.name or "",
        "subject": subject.text,
        "reason": decision.reason,
        "changes": list(case.changes),
        "options": options,
        **({"folder": subject.folder} if subject.folder is not None else {}),
        **({"language": subject.language} if subject.language is not None else {}),
        **({"rewritten": item.rewritten} if item.rewritten else {}),
        **({"hook": ground.hook.hook} if ground.hook and decision.by == "hook" else {}),
        **expires,
    }


def _audit(case: _Case) -> dict[str, Any]:
    """What was allowed without asking, and why."""
    item, subject, decision, hook = case.item, case.subject, case.decision, case.ground.hook
    outcome: dict[str, Any] = {
        "permissionId": new_id("pe"),
        "itemId": item.id,
        "kind": subject.kind,
        "subject": subject.text,
        "decision": "allow_once",
        "by": "rule" if decision.rule else "policy",
        "reason": decision.reason,
        **({"hook": hook.hook} if hook and decision.by == "hook" else {}),
    }
    return {**outcome, "ruleId": decision.rule.id} if decision.rule else outcome


def checked_answer(decision: str, feedback: str | None, then: str | None) -> dict[str, Any]:
    """A person's answer, without what it leaves out."""
    answer = {"decision": decision, "feedback": feedback, "then": then}
    return {key: value for key, value in answer.items() if value is not None}


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    """What an app answered, if it is an answer."""
    decision = answer.get("decision")
    if decision not in DECISIONS:
        raise Failure(
            "invalid_params", f"`decision`: {str(decision)[:80]!r} is none of {', '.join(DECISIONS)}"
        )
    feedback, then = answer.get("feedback"), answer.get("then")
    return checked_answer(
        decision, feedback if isinstance(feedback, str) else None, "stop" if then == "stop" else None
    )


def _verdict(turn: RunningTurn, outcome: dict[str, Any]) -> Verdict:
    feedback = outcome.get("feedback")
    if outcome["decision"].startswith("allow"):
        return Verdict(True, feedback or "")
    if outcome.get("then") == "stop":
        turn.stop()
    why = "Nobody answered in time." if outcome["by"] == "expiry" else "The user denied this."
    denied = denial(_code_of(outcome["by"]), feedback or why, outcome["by"])
    return Verdict(False, f"{why} {feedback}" if feedback else f"{why} Do not try the same again.", denied)


def _denial(decision: Decision) -> dict[str, str]:
    """Why something is denied that nobody was asked about."""
    if decision.effect == "ask":
        return denial("cannot_ask", decision.reason)
    return denial("rule_denied" if decision.rule else "read_only", decision.reason)


def _code_of(by: str) -> str:
    return {"user": "user_denied", "expiry": "nobody_answered"}.get(by, "cannot_ask")
