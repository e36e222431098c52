"""What the exit code and output of a hook mean, by Claude Code's rules, and how several are combined. Pure.

Exit code 0 is an answer (JSON or text), 2 denies what is about to happen with stderr as the reason, and any other is
a failure that denies nothing. A hook that could not be started, timed out or wrote something unreadable is `broken`:
before a tool call that asks the user, since it might have been a denial.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ...model import JsonObject
from ...text.surrogates import well_formed

HookEffect = Literal["none", "allow", "ask", "deny"]

MAX_REASON = 2_000
"""Characters of a reason: it is shown in a dialog and sent to the model."""

MAX_CONTEXT = 10_000
"""Characters that all hooks of one event may add to the context: some 2,500 tokens."""

NOT_STARTED_EXIT_CODES = (126, 127)
"""A shell's exit codes for a command that is missing or cannot be run."""

BLOCK_EXIT_CODE = 2
_SIGNALS = 128
_CONTEXT_EVENTS = ("UserPromptSubmit", "SessionStart", "PreCompact")
"""Events whose plain output goes to the model; that of the others is ignored."""


class HookOutput(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one hook. `effect` deny also means a block: of a prompt, of a stop, of a compaction.

    `context` is for the model, `message` for the user. `stop` ends the turn.
    """

    effect: HookEffect = "none"
    reason: str = ""
    context: str = ""
    updated: JsonObject | None = None
    stop: bool = False
    message: str = ""
    problem: str | None = None
    broken: bool = False


class HookDecision(msgspec.Struct, frozen=True):
    """The combined result of all hooks of one event; `hook` is the command that decided."""

    effect: HookEffect = "none"
    reason: str = ""
    hook: str = ""
    context: tuple[tuple[str, str], ...] = ()
    """Context for the model, each part with its command."""
    updated: JsonObject | None = None
    updated_by: str = ""
    stop: bool = False
    messages: tuple[str, ...] = ()


NO_DECISION = HookDecision()


def broken(problem: str) -> HookOutput:
    """Return the result of a hook that gave no answer."""
    return HookOutput(problem=problem, broken=True)


def parse_output(event: str, code: int | None, said: bytes, complaint: bytes) -> HookOutput:
    """Return the result of a hook that exited, by its output on both streams."""
    errors = _decoded_output(complaint)
    # A guard that was killed has not said yes: broken hooks ask, they never allow.
    if code is None or code >= _SIGNALS:
        return broken("it was killed")
    if code in NOT_STARTED_EXIT_CODES:
        return broken(
            _truncate(f"it could not be started: {errors}") if errors else "it could not be started"
        )
    if code == BLOCK_EXIT_CODE:
        return HookOutput("deny", _truncate(errors) or "it gave no reason")
    # As Claude Code does: another exit code is a problem to report, and decides nothing.
    if code:
        return HookOutput(problem=_truncate(f"it failed with exit code {code}: {errors}".rstrip(": ")))
    text = _decoded_output(said)
    if text.startswith("{"):
        return _parse_json(event, text)
    return HookOutput(context=text) if event in _CONTEXT_EVENTS else HookOutput()


def combine_outputs(answers: Sequence[tuple[str, HookOutput]], event: str) -> HookDecision:
    """Combine results by the strictest one: deny before ask before allow. `answers` are paired with their commands."""
    decisive = _strictest(answers, event)
    changes = [(name, answer.updated) for name, answer in answers if answer.updated is not None]
    effect, reason, hook = decisive
    if effect in ("none", "allow") and any(change[1] != changes[0][1] for change in changes):
        effect, reason, hook = "ask", "two hooks want to change the call in different ways", changes[0][0]
    updated = changes[0] if changes and effect != "deny" else ("", None)
    return HookDecision(
        effect=effect,
        reason=reason,
        hook=hook,
        context=_bounded_context([(name, answer.context) for name, answer in answers if answer.context]),
        updated=updated[1],
        updated_by=updated[0],
        stop=any(answer.stop for _, answer in answers),
        messages=tuple(answer.message for _, answer in answers if answer.message),
    )


def _strictest(answers: Sequence[tuple[str, HookOutput]], event: str) -> tuple[HookEffect, str, str]:
    found: dict[HookEffect, tuple[str, str]] = {}
    for name, answer in answers:
        effect, reason = answer.effect, answer.reason
        if answer.broken and event == "PreToolUse":
            effect, reason = "ask", f"the hook {name} gave no answer: {answer.problem}"
        if answer.stop and effect != "deny":
            effect, reason = "deny", answer.reason or "a hook ends the turn"
        found.setdefault(effect, (reason, name))
    for effect in ("deny", "ask", "allow"):
        if effect in found:
            return effect, *found[effect]
    return "none", "", ""


def _bounded_context(parts: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the parts that fit, in order."""
    kept: list[tuple[str, str]] = []
    space = MAX_CONTEXT
    for name, text in parts:
        if space <= 0:
            break
        cut = text if len(text) <= space else f"{text[:space]}\n[… {len(text) - space} characters left out]"
        kept.append((name, cut))
        space -= len(text)
    return tuple(kept)


def _parse_json(event: str, text: str) -> HookOutput:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        if event in _CONTEXT_EVENTS:
            return HookOutput(context=text)
        return broken(f"what it said is no JSON: {error}"[:200])
    specific = given.get("hookSpecificOutput") or {}
    if not isinstance(specific, dict):
        return broken("`hookSpecificOutput` must be an object")
    effect, reason, problem = _effect(given, specific)
    if problem:
        return broken(problem)
    updated = specific.get("updatedInput")
    if updated is not None and not isinstance(updated, dict):
        return broken("`updatedInput` must be an object")
    stop = given.get("continue") is False
    return HookOutput(
        effect=effect,
        reason=_truncate(_well_formed_text(given.get("stopReason")) or reason) if stop else _truncate(reason),
        context=_well_formed_text(specific.get("additionalContext")),
        updated=updated if event == "PreToolUse" else None,
        stop=stop,
        message=_truncate(_well_formed_text(given.get("systemMessage"))),
    )


_OLD_DECISIONS: Mapping[str, HookEffect] = {
    "approve": "allow",
    "allow": "allow",
    "block": "deny",
    "deny": "deny",
}
_NEW_DECISIONS: Mapping[str, HookEffect] = {"allow": "allow", "deny": "deny", "ask": "ask"}


def _effect(given: JsonObject, specific: JsonObject) -> tuple[HookEffect, str, str | None]:
    """Return the decision, its reason, or the error in it. The newer format takes precedence over the older one."""
    wanted = specific.get("permissionDecision")
    if wanted is not None:
        effect = _NEW_DECISIONS.get(wanted) if isinstance(wanted, str) else None
        if effect is None:
            return "none", "", f"`permissionDecision` must be allow, deny or ask, not {str(wanted)[:40]!r}"
        return effect, _well_formed_text(specific.get("permissionDecisionReason")), None
    old = given.get("decision")
    if old is None:
        return "none", _well_formed_text(given.get("reason")), None
    effect = _OLD_DECISIONS.get(old) if isinstance(old, str) else None
    if effect is None:
        return "none", "", f"`decision` must be block or approve, not {str(old)[:40]!r}"
    return effect, _well_formed_text(given.get("reason")), None


def _well_formed_text(value: object) -> str:
    """Replace lone surrogates, which JSON can contain."""
    return well_formed(value).strip() if isinstance(value, str) else ""


def _decoded_output(data: bytes) -> str:
    return data.decode(errors="replace").replace("\0", "\ufffd").replace("\r\n", "\n").strip()


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}…"
