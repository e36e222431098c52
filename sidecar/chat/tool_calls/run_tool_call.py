"""Runs one tool call of a turn. Read `_run` downwards: redirect, hooks, plan, permission, write, run, hooks; then the
output is stored and cut to what the model gets.

Whatever goes wrong is an answer for the model, never the end of the turn.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from ...model.failures import Failure
from ...providers.base import ToolCall
from ...text.surrogates import well_formed
from ...tools.base import ToolError, ToolInput, ToolOutcome
from ...tools.toolbox import CallResult, Toolbox
from ..journal.running_turn import RunningTurn
from .call_context import CallContext
from .environment import ToolEnvironment

if TYPE_CHECKING:
    from ..services.direct_calls import DirectCall

logger = logging.getLogger(__name__)

INLINE_CHARACTERS = 32 * 1024
"""The most that the model gets of one output; all of it is stored and can be read by its reference."""

TAIL_CHARACTERS = 4 * 1024
"""Of that, the end: the last lines of a command say how it ended."""


async def run_tool_call(
    environment: ToolEnvironment,
    turn: RunningTurn,
    tools: Toolbox,
    call: ToolCall,
    direct: DirectCall | None = None,
) -> CallResult:
    """Run a call of the model, or a `direct` one of the client."""
    context = CallContext(environment, turn, call, direct)
    try:
        return await _store_output(await _run(tools, call, context), context)
    except Failure as failure:
        return CallResult(ToolOutcome(well_formed(failure.message), failed=True))
    except Exception:
        logger.exception("a tool failed", extra={"tool": call.name})
        return CallResult(ToolOutcome("The tool failed inside the sidecar.", failed=True))


async def _run(tools: Toolbox, call: ToolCall, context: CallContext) -> ToolOutcome:
    tool = tools.find(call.name)
    if call.problem or tool is None:
        return ToolOutcome(call.problem or tools.explain_unknown(call.name), failed=True)
    redirected = await context.redirect(call, tools.names)
    if redirected is not None:
        return redirected
    hooked = await context.ask_hooks_before(call, tool)
    if hooked.outcome is not None:
        return hooked.outcome
    try:
        # With the input that hooks may have changed: permission is asked for what will run, not for what the
        # model wrote.
        planned = await tool.prepare(ToolInput(hooked.input), context)
        permission = await context.request_permission(planned.intent)
        if not permission.allowed:
            denied = ToolOutcome(permission.words, denied=True, not_run=permission.denial)
            return _append(denied, hooked.note)
        if planned.intent.edits:
            # The tool does not write: what permission was given for is what is written, byte for byte.
            await context.write_edits(planned.intent.edits)
        outcome = await context.ask_hooks_after(await planned.run())
    except ToolError as error:
        return _append(ToolOutcome(str(error), failed=True), hooked.note)
    if permission.words:
        outcome = _append(outcome, f"The user adds: {permission.words}")
    return _append(outcome, hooked.note)


def _append(outcome: ToolOutcome, note: str) -> ToolOutcome:
    return msgspec.structs.replace(outcome, text=f"{outcome.text}\n\n{note}") if note else outcome


async def _store_output(outcome: ToolOutcome, context: CallContext) -> CallResult:
    """Store the whole output, and give the model well-formed text of a bounded length."""
    media = await context.store_media(outcome)
    outcome = _append(outcome, "\n".join(one.line for one in media.refused))
    text, whole = well_formed(outcome.text), well_formed(outcome.whole or "")
    # Stored whole before it is cut: the reference that the model gets must lead to all of it.
    short = _cut(text)
    cut = short != (whole or text)
    stored = await context.store_output(whole or text, shown=outcome.shown, cut=cut, source=outcome.source)
    sent = short if stored.preview is None else well_formed(stored.preview)
    paths, matched = tuple(map(well_formed, outcome.paths)), tuple(map(well_formed, outcome.matched))
    measured = outcome.measured or stored.measured
    made = msgspec.structs.replace(
        outcome, text=sent, whole=None, paths=paths, matched=matched, measured=measured, media=()
    )
    truncated = cut or stored.preview is not None
    return CallResult(made, stored.ref, stored.source, truncated, media.content)


def _cut(text: str) -> str:
    if len(text) <= INLINE_CHARACTERS:
        return text
    head = INLINE_CHARACTERS - TAIL_CHARACTERS
    hidden = len(text) - INLINE_CHARACTERS
    return f"{text[:head]}\n… {hidden} characters left out …\n{text[-TAIL_CHARACTERS:]}"
