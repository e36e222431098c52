"""Hooks before a compaction: they may add to what is asked of the summary, and refuse one that nobody asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..model.events import NewEvent
from ..policy.denials import denial
from .hook_words import notices
from .hooking import Occasion
from .session import Session


async def asked(
    session: Session, trigger: str, instructions: str | None, keep: Callable[[NewEvent], Awaitable[None]]
) -> str | None:
    """The instructions with what hooks add to them; None when they refuse. One by hand is not refused."""

    async def record(*events: NewEvent) -> None:
        for event in events:
            await keep(event)

    kind = "manual" if trigger == "manual" else "auto"
    fields = {"trigger": kind, "custom_instructions": instructions or ""}
    verdict = await session.desk.hooking.ask(Occasion("PreCompact", (kind,), fields), record)
    await record(*notices(verdict, None))
    if kind == "auto" and (verdict.effect == "deny" or verdict.stop):
        told = denial("compaction_blocked", verdict.reason, verdict.hook)
        await keep(NewEvent("notice", {"code": "compaction_blocked", "params": told}))
        return None
    added = [text for _, text in verdict.context]
    return "\n".join(filter(None, [instructions, *added]))
