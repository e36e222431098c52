"""From a file's text to its hooks. Whatever is wrong with an entry is told in it, and the others hold. Pure.

The format is that of Claude Code's settings: `{"hooks": {EVENT: [{"matcher", "hooks": [{"type": "command", "command",
"timeout"}]}]}}`. Other keys of a settings file are none of our business.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Literal

import msgspec

from ..tables import names
from .hook import DEFAULT_S, EVENTS, MAX_S, Hook

MAX_HOOKS = 200
"""Of one file: each may run at every call of a tool."""

MAX_COMMAND = 16 * 1024
"""Characters: a longer script belongs into a file."""

MAX_MATCHER = 500

FOREIGN = names(
    """
    Notification SubagentStart SubagentStop PermissionRequest PermissionDenied PostToolUseFailure PostToolBatch
    PostCompact Setup StopFailure TeammateIdle TaskCreated TaskCompleted ConfigChange CwdChanged FileChanged
    InstructionsLoaded WorktreeCreate WorktreeRemove Elicitation ElicitationResult UserPromptExpansion
    """
)
"""Events of Claude Code that do not happen here; their entries are listed and left alone."""

_MARKS = ("CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT")
"""A command that uses these was written for Claude Code, whichever file it stands in."""

Scope = Literal["user", "project"]


class Malformed(Exception):
    """An entry, or the file, is not what it should be; the words say what is expected."""


def parsed(text: str, file: str, scope: Scope, *, claude: bool, trusted: bool = True) -> list[Hook]:
    """The hooks of a file, in its order; broken ones say why. `claude` tells a settings file of Claude Code."""
    blank = Hook(file=file, scope=scope, event="", claude=claude, trusted=trusted)
    try:
        events = _events(text, claude)
    except Malformed as malformed:
        return [msgspec.structs.replace(blank, problem=str(malformed))]
    found: list[Hook] = []
    for hook in _entries(events, blank):
        if len(found) == MAX_HOOKS:
            problem = f"it has more than {MAX_HOOKS} hooks; the others are left aside"
            return [*found, msgspec.structs.replace(blank, problem=problem)]
        found.append(hook)
    return found


def _events(text: str, claude: bool) -> dict[str, Any]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"it is no JSON: {error}"[:200]) from error
    if not isinstance(whole, dict):
        raise Malformed('it must be an object, {"hooks": {…}}')
    if whole.get("disableAllHooks") is True:
        return {}
    events = whole.get("hooks", {} if claude else None)
    if not isinstance(events, dict):
        raise Malformed("`hooks` must be an object with a list for each event")
    return events


def _entries(events: dict[str, Any], blank: Hook) -> Iterator[Hook]:
    for event, groups in events.items():
        of_event = msgspec.structs.replace(blank, event=str(event)[:80])
        if event not in EVENTS:
            near = get_close_matches(event[:40], EVENTS, n=1)
            # A guard whose name is misspelled still asks.
            meant = near[0] if near == ["PreToolUse"] and event not in FOREIGN else of_event.event
            yield msgspec.structs.replace(of_event, event=meant, problem=_no_event(event, near))
        elif not isinstance(groups, list):
            yield msgspec.structs.replace(of_event, problem=f"`{event}` must be a list")
        else:
            for group in groups:
                yield from _group(group, of_event)


def _no_event(event: str, near: list[str]) -> str:
    if event in FOREIGN:
        return f"the event {event} does not happen here"
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(EVENTS)}"
    return f"there is no event {event[:40]}: {hint}"


def _group(group: object, of_event: Hook) -> Iterator[Hook]:
    try:
        matcher, hooks = _matched(group)
    except Malformed as malformed:
        yield msgspec.structs.replace(of_event, problem=str(malformed))
        return
    of_group = msgspec.structs.replace(of_event, matcher=matcher)
    for entry in hooks:
        try:
            yield _hook(entry, of_group)
        except Malformed as malformed:
            command = entry.get("command") if isinstance(entry, dict) else ""
            shown = command[:MAX_COMMAND] if isinstance(command, str) else ""
            yield msgspec.structs.replace(of_group, command=shown, problem=str(malformed))


def _matched(group: object) -> tuple[str, list[Any]]:
    if not isinstance(group, dict):
        raise Malformed("each entry of an event must be an object with `hooks`")
    matcher, hooks = group.get("matcher"), group.get("hooks")
    if matcher is not None and not isinstance(matcher, str):
        raise Malformed("`matcher` must be text")
    if matcher and len(matcher) > MAX_MATCHER:
        raise Malformed(f"`matcher` has more than {MAX_MATCHER} characters")
    if not isinstance(hooks, list) or not hooks:
        raise Malformed("`hooks` must be a list of commands")
    return "" if matcher is None or matcher == "*" else matcher, hooks


def _hook(entry: object, of_group: Hook) -> Hook:
    if not isinstance(entry, dict):
        raise Malformed('each hook must be an object, {"type": "command", "command": …}')
    if entry.get("type") != "command":
        raise Malformed(f'`type` must be "command": {str(entry.get("type"))[:40]!r} is not run here')
    if entry.get("if") is not None:
        raise Malformed("`if` is not known here: use `matcher`, and let the command look at its input")
    command = _text(entry.get("command"), "command")
    args = entry.get("args")
    if args is not None and not isinstance(args, list):
        raise Malformed("`args` must be a list of texts")
    words = tuple(_text(word, "args", empty=True) for word in args) if args is not None else None
    written_for_claude = of_group.claude or any(mark in command for mark in _MARKS)
    return msgspec.structs.replace(
        of_group, command=command, args=words, seconds=_seconds(entry), claude=written_for_claude
    )


def _text(value: object, field: str, *, empty: bool = False) -> str:
    if not isinstance(value, str) or not (value.strip() or empty):
        raise Malformed(f"`{field}` must be text")
    if len(value) > MAX_COMMAND:
        raise Malformed(f"`{field}` has more than {MAX_COMMAND} characters: put it into a file")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Malformed(f"`{field}` has characters that are no text") from None
    if "\0" in value:
        raise Malformed(f"`{field}` has a NUL character")
    return value


def _seconds(entry: dict[str, Any]) -> float:
    value = entry.get("timeout", DEFAULT_S)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise Malformed("`timeout` must be a number of seconds above 0")
    return min(float(value), MAX_S)
