"""What hooks have said, as model and user are told it: outcomes, notes, items of a turn. Pure, but for new ids."""

from __future__ import annotations

import json

import msgspec

from ..context.fences import fenced
from ..model.content import Block, Item
from ..model.events import NewEvent
from ..policy.decide import HookWord
from ..policy.denials import denial
from ..policy.hooks import Verdict
from ..tools.base import Outcome
from .running import new_id, now

MAX_SHOWN = 1000
"""Characters of a changed input that the model is told of."""


def refused(verdict: Verdict) -> Outcome:
    """The outcome of a call that a hook has denied."""
    code = "hook_stopped" if verdict.stop else "hook_denied"
    words = f"Denied by a hook of the user ({verdict.hook}): {verdict.reason}"
    return Outcome(words, denied=True, not_run=denial(code, verdict.reason, verdict.hook))


def word(verdict: Verdict) -> HookWord | None:
    """What the policy is told of a call that was not denied."""
    if verdict.effect not in ("allow", "ask"):
        return None
    return HookWord(verdict.effect, verdict.reason or "it gives no reason", verdict.hook)


def rewritten(item: Item, verdict: Verdict, title: str) -> Item:
    """The call's item with the changed input; what the model had given stays with it."""
    return msgspec.structs.replace(
        item,
        input=verdict.updated,
        title=title,
        rewritten={"by": verdict.updated_by, "input": item.input},
    )


def note_of_change(verdict: Verdict) -> str:
    shown = json.dumps(verdict.updated, ensure_ascii=False)
    cut = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
    return f"A hook of the user ({verdict.updated_by}) changed the input of this call to {cut}"


def context(verdict: Verdict, secret: str, id: str) -> str:
    """What hooks add to what the model is sent, fenced as data."""
    return "\n".join(
        fenced(secret, f"{id}.hook{number}", f"hook {name}", text)
        for number, (name, text) in enumerate(verdict.context)
    )


def with_feedback(outcome: Outcome, verdict: Verdict, secret: str, id: str) -> Outcome:
    """The outcome of a tool with what hooks say to it."""
    said = [f"A hook of the user ({verdict.hook}) says: {verdict.reason}"] if verdict.effect == "deny" else []
    if added := context(verdict, secret, id):
        said.append(added)
    return msgspec.structs.replace(outcome, text="\n\n".join([outcome.text, *said])) if said else outcome


def notices(verdict: Verdict, turn_id: str | None) -> list[NewEvent]:
    """What hooks want the user to read."""
    return [
        NewEvent("notice", {"code": "hook_message", "params": {"message": message}}, turn_id)
        for message in verdict.messages
    ]


def item(turn_id: str, title: str, text: str, told: str) -> Item:
    """Words of a hook as an item of a turn: `text` is for people, `told` what the model is sent."""
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
