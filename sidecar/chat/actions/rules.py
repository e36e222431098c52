"""Lists the instruction rules of a project and of the user, with how often and when each was used."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import anyio.to_thread
import msgspec

from ...model import JsonObject
from ...model.failures import Refused
from ...model.figures import RuleUse
from ...policy.instructions import Instruction, choose_rules, read_rules
from ...policy.instructions.rule import ProblemCode
from ...system.clock import DAY_MS, now
from ...workspace.ignore import Ignore
from ...workspace.paths import Workspace
from ..journal.identity import ChatAddress
from ..sessions.chats import Chats

STALE_DAYS = 30
"""A rule that no prompt has needed for so long probably describes something that is gone."""

WALK_S = 1.0
WALK_FILES = 20_000
"""How far the project is searched for files that globs match; in a larger one no rule counts as matching nothing."""

Stale = Literal["unused", "no_match"]


class RuleFigures(msgspec.Struct, frozen=True):
    """A rule with its figures of use."""

    rule_path: str
    name: str
    scope: str
    applies: str
    priority: int
    load_count: int
    last_seen: int | None
    last_changed: int | None
    tokens: int | None
    problem: str | None
    metadata: JsonObject
    stale: Stale | None = None
    problem_code: ProblemCode | None = None


async def list_rules(chats: Chats, address: ChatAddress) -> list[RuleFigures]:
    """All rules of a chat's project, or of a project, and of the user: also those of the folders of open files, and of
    all folders whose rules were sent before.
    """
    found = await chats.find(address)
    chat = found if found and not found.deleted else None
    project = chat.project_path if chat else chats.project(address)
    settings, folder = chats.services.settings(project), chats.services.rules_folder
    if not settings.values.rules.enabled:
        return []
    workspace = Workspace(project, (), chats.store.own_files) if project else None
    figures = await chats.store.instruction_rules.figures(project)
    paths = [*figures, *(str(file["path"]) for file in (chat.open_files if chat else []))]

    count = chats.services.index().count

    def listed() -> list[RuleFigures]:
        rules = read_rules(workspace, folder, paths, settings.values.rules.paths)
        stale = _stale_rules(rules, workspace, figures)
        return [_figures(rule, figures.get(rule.path), stale.get(rule.path), count) for rule in rules]

    return await anyio.to_thread.run_sync(listed)


def _figures(
    rule: Instruction, known: RuleUse | None, stale: Stale | None, count: Callable[[str], int]
) -> RuleFigures:
    return RuleFigures(
        rule_path=rule.path,
        name=rule.name,
        scope=rule.scope,
        applies=rule.applies,
        priority=rule.priority,
        load_count=known.get("loadCount", 0) if known else 0,
        last_seen=known.get("lastSeen") if known else None,
        last_changed=known.get("lastChanged") if known else None,
        tokens=count(rule.text) if rule.problem is None else None,
        problem=rule.problem,
        problem_code=rule.problem_code,
        metadata=rule.metadata,
        stale=stale,
    )


def _stale_rules(
    rules: Sequence[Instruction], workspace: Workspace | None, figures: Mapping[str, RuleUse]
) -> dict[str, Stale]:
    """Which rules were not used for long, by their path, and which can apply to no file that there is."""
    sound = [rule for rule in rules if rule.problem is None]
    before = now() - STALE_DAYS * DAY_MS
    stale: dict[str, Stale] = {}
    for rule in sound:
        known = figures.get(rule.path)
        used = known["lastSeen"] if known else _changed_at(rule, workspace)
        if used is not None and used < before:
            stale[rule.path] = "unused"
    unmatched = [rule for rule in sound if rule.applies == "glob" and rule.scope == "project"]
    if workspace and unmatched:
        stale |= {rule.path: "no_match" for rule in _without_match(unmatched, workspace)}
    return stale


def _without_match(rules: Sequence[Instruction], workspace: Workspace) -> list[Instruction]:
    """The rules that apply to no file of the project; none when not all of its files could be looked at."""
    left = list(rules)
    until, count, ignore = time.monotonic() + WALK_S, 0, Ignore(workspace)
    with suppress(Refused):
        for place, entries in workspace.walk():
            entries[:] = ignore.without_ignored(place, entries)
            prefix = "" if place.shown == "." else f"{place.shown}/"
            paths = [f"{prefix}{entry.name}" for entry in entries if entry.kind != "folder"]
            count += len(paths)
            if not left or count > WALK_FILES or time.monotonic() > until:
                return []
            matched = {rule.path for rule in choose_rules(left, "", paths)}
            left = [rule for rule in left if rule.path not in matched]
    return left


def _changed_at(rule: Instruction, workspace: Workspace | None) -> int | None:
    """When the file of a rule that was never used was written."""
    with suppress(Refused, OSError):
        path = rule.path if rule.scope == "user" or workspace is None else workspace.real(rule.path)
        return os.stat(path).st_mtime_ns // 1_000_000
    return None
