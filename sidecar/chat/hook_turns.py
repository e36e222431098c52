"""Hooks around a turn: when a session begins and ends, when a prompt comes, when the model would stop.

A session begins, as hooks see it, with the first turn of a chat in this process, and anew after a compaction; it ends
when the chat is closed or purged, or the sidecar leaves. Hooks of calls are asked by `hands`, those of a compaction by
`compacting`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from ..model.chats import Prompt
from ..model.content import Block, Turn
from ..model.events import NewEvent
from ..model.failures import Failure, Refused
from ..policy.denials import denial
from ..policy.hooks import Verdict
from ..providers.base import UserMessage
from . import hook_words
from .hooking import Occasion, replays
from .running import RunningTurn

if TYPE_CHECKING:
    from .arrivals import Incoming
    from .desk import Desk
    from .leased import LeasedChat
    from .session import Session

logger = logging.getLogger(__name__)

MAX_STOPS = 3
"""How often hooks may keep a model from stopping in one turn: one that is never content must not go on for ever."""

CLOSE_S = 1.5
LEAVE_S = 0.5
"""For hooks of a session's end, when its chat is closed, and when the sidecar leaves: its way out has two seconds."""


class TurnHooks:
    """One turn's."""

    def __init__(self, desk: Desk, turn: RunningTurn) -> None:
        self._desk = desk
        self._turn = turn
        self._stops = 0

    async def begin(self, prompt: Prompt, goes_on: Turn | None) -> list[Block]:
        """Ask about the session and the prompt; what they add for the model. Raises when the prompt is refused."""
        hooking = self._desk.hooking
        before = await self._before(goes_on)
        interrupted = [item.id for item in goes_on.items if item.status == "interrupted"] if goes_on else []
        hooking.gone_on_with(replays(before, interrupted))
        source = hooking.begins(first=self._desk.chat.turns <= 1)
        added: list[Block] = []
        if source:
            verdict = await self._ask("SessionStart", (source,), source=source)
            added += await self._add(verdict, "SessionStart")
        if prompt.overrides.get("hooked"):
            return added
        asked = [data for type, data in before if data["event"] == "UserPromptSubmit"]
        if any(data.get("decision") == "deny" for data in asked):
            raise _blocked(Verdict("deny", _reason(asked)))
        if not asked:
            content = prompt.content if goes_on is None else _said(goes_on)
            verdict = await self._ask("UserPromptSubmit", (), prompt=text_of(content))
            added += await self._add(verdict, "UserPromptSubmit")
        return added

    async def stopping(self, said: str) -> list[UserMessage]:
        """The model would stop: what hooks want it to do first; nothing lets it."""
        if self._stops == MAX_STOPS:
            await self._turn.record(_notice("hook_stop_limit", self._turn.id, limit=MAX_STOPS))
            return []
        active = self._stops > 0
        verdict = await self._ask("Stop", (), stop_hook_active=active, last_assistant_message=said)
        if verdict.effect != "deny" or verdict.stop:
            return []
        self._stops += 1
        told = f"A hook of the user ({verdict.hook}) asks you not to stop yet: {verdict.reason}"
        return [UserMessage(await self._item(f"Hook {verdict.hook}", verdict.reason, told, "Stop"))]

    async def _before(self, goes_on: Turn | None) -> list[tuple[str, dict[str, Any]]]:
        """What the journal says of hooks since the prompt that is gone on with."""
        if goes_on is None:
            return []
        return await self._desk.workshop.store.hook_events(self._desk.chat.id, goes_on.id)

    async def _ask(self, event: Any, names: tuple[str, ...], **fields: Any) -> Verdict:
        occasion = Occasion(event, names, fields, turn_id=self._turn.id)
        verdict = await self._desk.hooking.ask(occasion, self._turn.record)
        if verdict.messages:
            await self._turn.record(*hook_words.notices(verdict, self._turn.id))
        return verdict

    async def _add(self, verdict: Verdict, event: str) -> list[Block]:
        if verdict.stop or (verdict.effect == "deny" and event == "UserPromptSubmit"):
            raise _blocked(verdict)
        told = hook_words.context(verdict, self._desk.chat.epoch, f"{self._turn.id}.{event}")
        if not told:
            return []
        text = "\n".join(text for _, text in verdict.context)
        return await self._item(f"Context from hooks ({event})", text, told, event)

    async def _item(self, title: str, text: str, told: str, event: str) -> list[Block]:
        """Keep words of hooks as an item of the turn, so that they stay in the chat as they were sent."""
        item = hook_words.item(self._turn.id, title, text, told)
        data = {"code": "hook_context", "params": {"event": event}, "item": item}
        await self._turn.record(NewEvent("notice", data, self._turn.id))
        return item.content or []


async def on_steer(session: Session, prompt: Incoming) -> Incoming:
    """A prompt that joins a running turn: refused, or with what hooks add to it. Not asked about again."""
    if await session.store.prompt(session.chat.id, prompt.id):
        return prompt
    occasion = Occasion("UserPromptSubmit", (), {"prompt": text_of(prompt.content)})
    verdict = await session.desk.hooking.ask(occasion, session.keep)
    if verdict.effect == "deny" or verdict.stop:
        raise _blocked(verdict)
    told = hook_words.context(verdict, session.chat.epoch, prompt.id)
    added = [Block(type="resource", uri="hook:UserPromptSubmit", text=told)] if told else []
    return msgspec.structs.replace(
        prompt, content=[*prompt.content, *added], overrides={**prompt.overrides, "hooked": True}
    )


async def end(session: LeasedChat, reason: str) -> None:
    """The session is over, as hooks see it. Whatever goes wrong is no reason to stay."""
    hooking = session.desk.hooking
    if not hooking.ends():
        return
    limit_s = LEAVE_S if session.leaving else CLOSE_S
    occasion = Occasion("SessionEnd", (reason,), {"reason": reason}, limit_s=limit_s)
    try:
        with anyio.move_on_after(limit_s + LEAVE_S):
            await hooking.ask(occasion, session.keep)
    except Failure as failure:
        logger.warning("the end of a session was not told", extra={"error": failure.message})


def text_of(content: list[Block]) -> str:
    return "\n".join(block.text or "" for block in content if block.type == "text")


def _said(turn: Turn) -> list[Block]:
    return next((item.content for item in turn.items if item.type == "user" and item.content), [])


def _reason(asked: list[dict[str, Any]]) -> str:
    return next(
        ((data.get("answer") or {}).get("reason", "") for data in asked if data.get("decision") == "deny"), ""
    )


def _blocked(verdict: Verdict) -> Refused:
    told = denial("prompt_blocked", verdict.reason, verdict.hook)
    return Refused(
        "denied",
        f"A hook refused the prompt: {verdict.reason}",
        reason="prompt_blocked",
        params=told,
        action="edit_prompt",
    )


def _notice(code: str, turn_id: str | None, **params: Any) -> NewEvent:
    return NewEvent("notice", {"code": code, "params": params}, turn_id)
