"""What a hook's exit code and output mean, by Claude Code's rules, and what several of them mean together. Pure.

Exit code 0 is an answer (JSON, or words), 2 stops what is about to happen with the error stream as its reason, and any
other is a failure that stops nothing. What could not be started, took too long or said what nobody understands is
`broken`: before a tool that counts as a question to the user, since it might have been a denial.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

Effect = Literal["none", "allow", "ask", "deny"]

MAX_REASON = 2_000
"""Characters of a reason: it is shown in a dialog and told to the model."""

MAX_CONTEXT = 10_000
"""Characters that all hooks of one occasion may add to what the model is sent: some 2,500 tokens."""

NOT_STARTED = (126, 127)
"""A shell's exit codes for a command that is not there, or cannot be run."""

STOPPED = 2
_SIGNALS = 128
_SPEAKING = ("UserPromptSubmit", "SessionStart", "PreCompact")
"""Events whose plain words are for the model; those of the others are for nobody."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one hook said. `effect` deny also stands for a block: of a prompt, of a stop, of a compaction.

    `context` is for the model, `message` for the user. `stop` ends the turn.
    """

    effect: Effect = "none"
    reason: str = ""
    context: str = ""
    updated: dict[str, Any] | None = None
    stop: bool = False
    message: str = ""
    problem: str | None = None
    broken: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """What all hooks of one occasion said together; `hook` is the command that decided."""

    effect: Effect = "none"
    reason: str = ""
    hook: str = ""
    context: tuple[tuple[str, str], ...] = ()
    """What they add for the model, each with its command."""
    updated: dict[str, Any] | None = None
    updated_by: str = ""
    stop: bool = False
    messages: tuple[str, ...] = ()


NOTHING = Verdict()


def broken(problem: str) -> Answer:
    """Of a hook that gave no answer."""
    return Answer(problem=problem, broken=True)


def answer_of(event: str, code: int | None, said: bytes, complaint: bytes) -> Answer:
    """What a hook means that has ended by itself, by what it said on both streams."""
    errors = _clean(complaint)
    if code is None or code >= _SIGNALS:
        return broken("it was killed")
    if code in NOT_STARTED:
        return broken(_short(f"it could not be started: {errors}") if errors else "it could not be started")
    if code == STOPPED:
        return Answer("deny", _short(errors) or "it gave no reason")
    if code:
        return Answer(problem=_short(f"it failed with exit code {code}: {errors}".rstrip(": ")))
    text = _clean(said)
    if text.startswith("{"):
        return _structured(event, text)
    return Answer(context=text) if event in _SPEAKING else Answer()


def joined(answers: Sequence[tuple[str, Answer]], event: str) -> Verdict:
    """The strictest word counts: deny before ask before allow. `answers` come with the command of each."""
    decisive = _decisive(answers, event)
    changes = [(name, answer.updated) for name, answer in answers if answer.updated is not None]
    effect, reason, hook = decisive
    if effect in ("none", "allow") and any(change[1] != changes[0][1] for change in changes):
        effect, reason, hook = "ask", "two hooks want to change the call in different ways", changes[0][0]
    updated = changes[0] if changes and effect != "deny" else ("", None)
    return Verdict(
        effect=effect,
        reason=reason,
        hook=hook,
        context=_within([(name, answer.context) for name, answer in answers if answer.context]),
        updated=updated[1],
        updated_by=updated[0],
        stop=any(answer.stop for _, answer in answers),
        messages=tuple(answer.message for _, answer in answers if answer.message),
    )


def _decisive(answers: Sequence[tuple[str, Answer]], event: str) -> tuple[Effect, str, str]:
    found: dict[Effect, tuple[str, str]] = {}
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


def _within(parts: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The parts as far as the bound reaches, the first ones first."""
    kept: list[tuple[str, str]] = []
    room = MAX_CONTEXT
    for name, text in parts:
        if room <= 0:
            break
        cut = text if len(text) <= room else f"{text[:room]}\n[… {len(text) - room} characters left out]"
        kept.append((name, cut))
        room -= len(text)
    return tuple(kept)


def _structured(event: str, text: str) -> Answer:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        if event in _SPEAKING:
            return Answer(context=text)
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
    return Answer(
        effect=effect,
        reason=_short(_words(given.get("stopReason")) or reason) if stop else _short(reason),
        context=_words(specific.get("additionalContext")),
        updated=updated if event == "PreToolUse" else None,
        stop=stop,
        message=_short(_words(given.get("systemMessage"))),
    )


_OLD: Mapping[str, Effect] = {"approve": "allow", "allow": "allow", "block": "deny", "deny": "deny"}
_NEW: Mapping[str, Effect] = {"allow": "allow", "deny": "deny", "ask": "ask"}


def _effect(given: dict[str, Any], specific: dict[str, Any]) -> tuple[Effect, str, str | None]:
    """The decision, its reason, or what is wrong with it. The newer spelling goes before the older one."""
    wanted = specific.get("permissionDecision")
    if wanted is not None:
        effect = _NEW.get(wanted) if isinstance(wanted, str) else None
        if effect is None:
            return "none", "", f"`permissionDecision` must be allow, deny or ask, not {str(wanted)[:40]!r}"
        return effect, _words(specific.get("permissionDecisionReason")), None
    old = given.get("decision")
    if old is None:
        return "none", _words(given.get("reason")), None
    effect = _OLD.get(old) if isinstance(old, str) else None
    if effect is None:
        return "none", "", f"`decision` must be block or approve, not {str(old)[:40]!r}"
    return effect, _words(given.get("reason")), None


def _words(value: object) -> str:
    """Well-formed text: JSON can spell half a character."""
    return value.encode(errors="replace").decode().strip() if isinstance(value, str) else ""


def _clean(data: bytes) -> str:
    return data.decode(errors="replace").replace("\0", "\ufffd").replace("\r\n", "\n").strip()


def _short(text: str) -> str:
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}…"
