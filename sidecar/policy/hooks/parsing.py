"""Parse the text of a file into hooks. An error in one entry is reported in it, and the others apply. Pure.

The format is that of Claude Code's settings: `{"hooks": {EVENT: [{"matcher", "hooks": [{"type": "command", "command",
"timeout"}]}]}}`. Other keys of a settings file are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from ...model import FileScope, JsonObject
from ...text.suggest import did_you_mean
from ...text.surrogates import is_well_formed
from ..tables import word_set
from .hook import DEFAULT_TIMEOUT_S, EVENTS, MAX_TIMEOUT_S, Hook, ProblemCode

MAX_HOOKS = 200
"""Hooks of one file: each may run at every tool call."""

MAX_COMMAND = 16 * 1024
"""Characters: a longer script belongs in a file."""

MAX_MATCHER = 500

UNSUPPORTED_EVENTS = word_set(
    """
    Notification SubagentStart SubagentStop PermissionRequest PermissionDenied PostToolUseFailure PostToolBatch
    PostCompact Setup StopFailure TeammateIdle TaskCreated TaskCompleted ConfigChange CwdChanged FileChanged
    InstructionsLoaded WorktreeCreate WorktreeRemove Elicitation ElicitationResult UserPromptExpansion
    """
)
"""Events of Claude Code that do not exist here; their entries are listed and ignored."""

_PLACEHOLDERS = ("CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT")
"""A command that uses these was written for Claude Code, whichever file it is in."""


class MalformedHook(Exception):
    """An entry, or the file, is malformed; the message says what is expected."""


def parse_hooks(text: str, file: str, scope: FileScope, *, claude: bool, trusted: bool = True) -> list[Hook]:
    """Return the hooks of a file in order; broken ones carry the error. `claude` marks a settings file of Claude
    Code.
    """
    blank = Hook(file=file, scope=scope, event="", claude=claude, trusted=trusted)
    try:
        events = _events(text, claude)
    except MalformedHook as malformed:
        return [_broken(blank, str(malformed))]
    found: list[Hook] = []
    for hook in _entries(events, blank):
        if len(found) == MAX_HOOKS:
            problem = f"it has more than {MAX_HOOKS} hooks; the others are ignored"
            return [*found, _broken(blank, problem, "too_many")]
        found.append(hook)
    return found


def _events(text: str, claude: bool) -> JsonObject:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedHook(f"it is no JSON: {error}"[:200]) from error
    if not isinstance(whole, dict):
        raise MalformedHook('it must be an object, {"hooks": {…}}')
    if whole.get("disableAllHooks") is True:
        return {}
    events = whole.get("hooks", {} if claude else None)
    if not isinstance(events, dict):
        raise MalformedHook("`hooks` must be an object with a list for each event")
    return events


def _entries(events: JsonObject, blank: Hook) -> Iterator[Hook]:
    for event, groups in events.items():
        of_event = msgspec.structs.replace(blank, event=str(event)[:80])
        if event not in EVENTS:
            near = did_you_mean(event, EVENTS)
            # A guard whose name is misspelled still asks.
            meant = near[0] if near == ["PreToolUse"] and event not in UNSUPPORTED_EVENTS else of_event.event
            code: ProblemCode = "unsupported_event" if event in UNSUPPORTED_EVENTS else "unknown_event"
            asked = msgspec.structs.replace(of_event, event=meant)
            yield _broken(asked, _unknown_event(event, near), code)
        elif not isinstance(groups, list):
            yield _broken(of_event, f"`{event}` must be a list")
        else:
            for group in groups:
                yield from _group_hooks(group, of_event)


def _broken(hook: Hook, words: str, code: ProblemCode = "malformed") -> Hook:
    return msgspec.structs.replace(hook, problem=words, problem_code=code)


def _unknown_event(event: str, near: list[str]) -> str:
    if event in UNSUPPORTED_EVENTS:
        return f"the event {event} does not happen here"
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(EVENTS)}"
    return f"there is no event {event[:40]}: {hint}"


def _group_hooks(group: object, of_event: Hook) -> Iterator[Hook]:
    try:
        matcher, hooks = _parse_group(group)
    except MalformedHook as malformed:
        yield _broken(of_event, str(malformed))
        return
    of_group = msgspec.structs.replace(of_event, matcher=matcher)
    for entry in hooks:
        try:
            yield _parse_hook(entry, of_group)
        except MalformedHook as malformed:
            command = entry.get("command") if isinstance(entry, dict) else ""
            shown = command[:MAX_COMMAND] if isinstance(command, str) else ""
            yield _broken(msgspec.structs.replace(of_group, command=shown), str(malformed))


def _parse_group(group: object) -> tuple[str, list[Any]]:
    if not isinstance(group, dict):
        raise MalformedHook("each entry of an event must be an object with `hooks`")
    matcher, hooks = group.get("matcher"), group.get("hooks")
    if matcher is not None and not isinstance(matcher, str):
        raise MalformedHook("`matcher` must be text")
    if matcher and len(matcher) > MAX_MATCHER:
        raise MalformedHook(f"`matcher` has more than {MAX_MATCHER} characters")
    if not isinstance(hooks, list) or not hooks:
        raise MalformedHook("`hooks` must be a list of commands")
    return "" if matcher is None or matcher == "*" else matcher, hooks


def _parse_hook(entry: object, of_group: Hook) -> Hook:
    if not isinstance(entry, dict):
        raise MalformedHook('each hook must be an object, {"type": "command", "command": …}')
    if entry.get("type") != "command":
        raise MalformedHook(f'`type` must be "command": {str(entry.get("type"))[:40]!r} is not run here')
    if entry.get("if") is not None:
        raise MalformedHook("`if` is not known here: use `matcher`, and let the command look at its input")
    command = _text(entry.get("command"), "command")
    args = entry.get("args")
    if args is not None and not isinstance(args, list):
        raise MalformedHook("`args` must be a list of texts")
    words = tuple(_text(word, "args", empty=True) for word in args) if args is not None else None
    written_for_claude = of_group.claude or any(mark in command for mark in _PLACEHOLDERS)
    return msgspec.structs.replace(
        of_group, command=command, args=words, seconds=_seconds(entry), claude=written_for_claude
    )


def _text(value: object, field: str, *, empty: bool = False) -> str:
    if not isinstance(value, str) or not (value.strip() or empty):
        raise MalformedHook(f"`{field}` must be text")
    if len(value) > MAX_COMMAND:
        raise MalformedHook(f"`{field}` has more than {MAX_COMMAND} characters: put it into a file")
    if not is_well_formed(value):
        raise MalformedHook(f"`{field}` has characters that are no text")
    if "\0" in value:
        raise MalformedHook(f"`{field}` has a NUL character")
    return value


def _seconds(entry: JsonObject) -> float:
    value = entry.get("timeout", DEFAULT_TIMEOUT_S)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise MalformedHook("`timeout` must be a number of seconds above 0")
    return min(float(value), MAX_TIMEOUT_S)
