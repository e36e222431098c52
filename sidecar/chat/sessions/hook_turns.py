"""Runs the hooks around a turn: at the start and end of a session, on a prompt, and when the model stops.

For hooks, a session starts with the first turn of a chat in this process, and again after a compaction. It ends when
the chat is closed or purged, or the sidecar shuts down. `tool_calls/tool_call` runs the hooks of tool calls,
`compaction/hooks` those of a compaction.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from ...model.chats import Prompt
from ...model.content import Block, Turn
from ...model.events import NewEvent
from ...model.failures import Failure, Refused
from ...policy.denials import denial
from ...policy.hooks import HookDecision
from ...providers.base import UserMessage
from ...store.tables.hooks import HookRecord
from ..hooks import messages
from ..hooks.runner import HookEvent, recorded_answers
from ..journal.running_turn import RunningTurn

if TYPE_CHECKING:
    from ..tool_calls.environment import ToolEnvironment
    from .arrivals import IncomingPrompt
    from .journal_writer import JournalWriter
    from .session import Session

logger = logging.getLogger(__name__)

MAX_STOPS = 3
"""How often hooks may prevent the model from stopping in one turn: a hook that always does must not loop forever."""

CLOSE_S = 1.5
EXIT_S = 0.5
"""The time for hooks at the end of a session, on close and on shutdown: shutdown has two seconds in all."""


class TurnHooks:
    """The hooks of one turn."""

    def __init__(self, environment: ToolEnvironment, turn: RunningTurn) -> None:
        self._environment = environment
        self._turn = turn
        self._stops = 0

    async def run_start_hooks(self, prompt: Prompt, continued: Turn | None) -> list[Block]:
        """Run the hooks of session start and prompt; return what they add. Raises when they refuse the prompt."""
        hook_runner = self._environment.hook_runner
        before = await self._recorded_hooks(continued)
        interrupted = (
            [item.id for item in continued.items if item.status == "interrupted"] if continued else []
        )
        hook_runner.replay_answers(recorded_answers(before, interrupted))
        source = hook_runner.begin_session(first=self._environment.chat.turns <= 1)
        added: list[Block] = []
        if source:
            decision = await self._ask("SessionStart", (source,), source=source)
            added += await self._context_blocks(decision, "SessionStart")
        if prompt.overrides.hooked:
            return added
        asked = [record for record in before if record.event == "UserPromptSubmit"]
        # A turn that is continued after a crash: its hooks ran once, and what they decided stands. Running
        # them again could have side effects twice.
        if any(record.decision == "deny" for record in asked):
            raise _prompt_blocked(HookDecision("deny", _denial_reason(asked)))
        if not asked:
            content = prompt.content if continued is None else _prompt_content(continued)
            decision = await self._ask("UserPromptSubmit", (), prompt=text_of(content))
            added += await self._context_blocks(decision, "UserPromptSubmit")
        return added

    async def before_stop(self, said: str) -> list[UserMessage]:
        """Run the hooks before the model stops; what they want the model to do first. Empty lets it stop."""
        # A hook that always objects would keep the model running, and costing money, for ever.
        if self._stops == MAX_STOPS:
            await self._turn.record(_notice("hook_stop_limit", self._turn.id, limit=MAX_STOPS))
            return []
        active = self._stops > 0
        decision = await self._ask("Stop", (), stop_hook_active=active, last_assistant_message=said)
        if decision.effect != "deny" or decision.stop:
            return []
        self._stops += 1
        model_text = f"A hook of the user ({decision.hook}) asks you not to stop yet: {decision.reason}"
        return [
            UserMessage(await self._record_item(f"Hook {decision.hook}", decision.reason, model_text, "Stop"))
        ]

    async def _recorded_hooks(self, continued: Turn | None) -> list[HookRecord]:
        """The journalled hook runs since the prompt of the turn that is continued."""
        if continued is None:
            return []
        return await self._environment.services.store.hooks.events(self._environment.chat.id, continued.id)

    async def _ask(self, event: Any, names: tuple[str, ...], **fields: Any) -> HookDecision:
        hook_event = HookEvent(event, names, fields, turn_id=self._turn.id)
        decision = await self._environment.hook_runner.ask(hook_event, self._turn.record)
        if decision.messages:
            await self._turn.record(*messages.notice_events(decision, self._turn.id))
        return decision

    async def _context_blocks(self, decision: HookDecision, event: str) -> list[Block]:
        if decision.stop or (decision.effect == "deny" and event == "UserPromptSubmit"):
            raise _prompt_blocked(decision)
        model_text = messages.context(decision, self._environment.chat.epoch, f"{self._turn.id}.{event}")
        if not model_text:
            return []
        text = "\n".join(text for _, text in decision.context)
        return await self._record_item(f"Context from hooks ({event})", text, model_text, event)

    async def _record_item(self, title: str, text: str, model_text: str, event: str) -> list[Block]:
        """Record a hook's text as an item of the turn, so that it stays in the chat as it was sent."""
        item = messages.item(self._turn.id, title, text, model_text)
        data = {"code": "hook_context", "params": {"event": event}, "item": item}
        await self._turn.record(NewEvent("notice", data, self._turn.id))
        return item.content or []


async def on_steer(session: Session, prompt: IncomingPrompt) -> IncomingPrompt:
    """Run the hooks for a prompt that steers a running turn: refuse it, or return it with what they add.

    The override `hooked` keeps them from running again when the prompt starts a turn after all.
    """
    if await session.store.turns.prompt(session.chat.id, prompt.id):
        return prompt
    hook_event = HookEvent("UserPromptSubmit", (), {"prompt": text_of(prompt.content)})
    decision = await session.environment.hook_runner.ask(hook_event, session.record_events)
    if decision.effect == "deny" or decision.stop:
        raise _prompt_blocked(decision)
    model_text = messages.context(decision, session.chat.epoch, prompt.id)
    added = [Block(type="resource", uri="hook:UserPromptSubmit", text=model_text)] if model_text else []
    return msgspec.structs.replace(
        prompt,
        content=[*prompt.content, *added],
        overrides=msgspec.structs.replace(prompt.overrides, hooked=True),
    )


async def run_end_hooks(session: JournalWriter, reason: str) -> None:
    """Run the hooks for the end of the session. A failure is logged and does not delay the end."""
    hook_runner = session.environment.hook_runner
    if not hook_runner.end_session():
        return
    limit_s = EXIT_S if session.leaving else CLOSE_S
    hook_event = HookEvent("SessionEnd", (reason,), {"reason": reason}, limit_s=limit_s)
    try:
        with anyio.move_on_after(limit_s + EXIT_S):
            await hook_runner.ask(hook_event, session.record_events)
    except Failure as failure:
        logger.warning("the hooks of a session's end failed", extra={"error": failure.message})


def text_of(content: list[Block]) -> str:
    return "\n".join(block.text or "" for block in content if block.type == "text")


def _prompt_content(turn: Turn) -> list[Block]:
    return next((item.content for item in turn.items if item.type == "user" and item.content), [])


def _denial_reason(asked: list[HookRecord]) -> str:
    reasons = ((record.answer or {}).get("reason") for record in asked if record.decision == "deny")
    return str(next(reasons, None) or "")


def _prompt_blocked(decision: HookDecision) -> Refused:
    model_text = denial("prompt_blocked", decision.reason, decision.hook)
    return Refused(
        "denied",
        f"A hook refused the prompt: {decision.reason}",
        reason="prompt_blocked",
        params=model_text,
        action="edit_prompt",
    )


def _notice(code: str, turn_id: str | None, **params: Any) -> NewEvent:
    return NewEvent("notice", {"code": code, "params": params}, turn_id)
