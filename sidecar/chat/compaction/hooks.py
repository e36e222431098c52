"""Runs the hooks before a compaction: they may add instructions for the summary, and refuse an automatic compaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...model.events import NewEvent
from ...policy.denials import denial
from ..hooks.messages import notice_events
from ..hooks.runner import HookEvent
from .chat import CompactableChat


async def ask_hooks(
    chat: CompactableChat, trigger: str, instructions: str | None, keep: Callable[[NewEvent], Awaitable[None]]
) -> str | None:
    """The instructions with what hooks add to them; None when they refuse. A compaction on request is not refused."""

    async def record(*events: NewEvent) -> None:
        for event in events:
            await keep(event)

    kind = "manual" if trigger == "manual" else "auto"
    fields = {"trigger": kind, "custom_instructions": instructions or ""}
    decision = await chat.environment.hook_runner.ask(HookEvent("PreCompact", (kind,), fields), record)
    await record(*notice_events(decision, None))
    if kind == "auto" and (decision.effect == "deny" or decision.stop):
        told = denial("compaction_blocked", decision.reason, decision.hook)
        await keep(NewEvent("notice", {"code": "compaction_blocked", "params": told}))
        return None
    added = [text for _, text in decision.context]
    return "\n".join(filter(None, [instructions, *added]))
