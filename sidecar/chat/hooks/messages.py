"""Converts what hooks say for the model and the user: outcomes, notes, items of a turn. Pure, except for new ids."""

from __future__ import annotations

import json

import msgspec

from ...context.fences import fence_text
from ...model.content import Block, Item, Rewritten
from ...model.events import NewEvent
from ...policy.decide import HookAdvice
from ...policy.denials import denial
from ...policy.hooks import HookDecision
from ...system.clock import now
from ...tools.base import ToolOutcome
from ..journal.running_turn import new_id

MAX_SHOWN = 1000
"""Characters of a changed input that the model gets."""


def denied_outcome(decision: HookDecision) -> ToolOutcome:
    """The outcome of a call that a hook has denied."""
    code = "hook_stopped" if decision.stop else "hook_denied"
    words = f"Denied by a hook of the user ({decision.hook}): {decision.reason}"
    return ToolOutcome(words, denied=True, not_run=denial(code, decision.reason, decision.hook))


def hook_advice(decision: HookDecision) -> HookAdvice | None:
    """The hook's advice for the policy, about a call that was not denied."""
    if decision.effect not in ("allow", "ask"):
        return None
    return HookAdvice(decision.effect, decision.reason or "it gives no reason", decision.hook)


def rewritten_item(item: Item, decision: HookDecision, title: str) -> Item:
    """The call's item with the changed input; the model's original input stays in it."""
    return msgspec.structs.replace(
        item,
        input=decision.updated,
        title=title,
        rewritten=Rewritten(by=decision.updated_by, input=item.input),
    )


def input_change_note(decision: HookDecision) -> str:
    shown = json.dumps(decision.updated, ensure_ascii=False)
    cut = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
    return f"A hook of the user ({decision.updated_by}) changed the input of this call to {cut}"


def context(decision: HookDecision, secret: str, id: str) -> str:
    """What hooks add to the request, fenced as data."""
    return "\n".join(
        fence_text(secret, f"{id}.hook{number}", f"hook {name}", text)
        for number, (name, text) in enumerate(decision.context)
    )


def with_feedback(outcome: ToolOutcome, decision: HookDecision, secret: str, id: str) -> ToolOutcome:
    """A tool's outcome with the hooks' feedback."""
    said = (
        [f"A hook of the user ({decision.hook}) says: {decision.reason}"] if decision.effect == "deny" else []
    )
    if added := context(decision, secret, id):
        said.append(added)
    return msgspec.structs.replace(outcome, text="\n\n".join([outcome.text, *said])) if said else outcome


def notice_events(decision: HookDecision, turn_id: str | None) -> list[NewEvent]:
    """Notices by hooks for the user."""
    return [
        NewEvent("notice", {"code": "hook_message", "params": {"message": message}}, turn_id)
        for message in decision.messages
    ]


def item(turn_id: str, title: str, text: str, told: str) -> Item:
    """A hook's text as an item of a turn: `text` is for people, `told` for the model."""
    at = now()
    return Item(
        id=new_id("i"),
        turn_id=turn_id,
        type="notice",
        kind="hook",
        status="completed",
        started_at=at,
        ended_at=at,
        title=title,
        text=text,
        content=[Block(type="text", text=told)],
    )
