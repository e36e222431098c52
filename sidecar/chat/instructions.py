"""The instruction rules of a chat: those of its project and user that hold for a prompt, as one block.

What the rules say is `policy/instructions`; here they are read for a prompt, their handlers run where the project is
trusted, and it is kept how often and when each was used.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread
import msgspec

from ..model.failures import Failure
from ..policy.instructions import Block, Instruction, chosen, read, rendered, seen
from ..policy.instructions.handlers import Skipped, run_handler
from ..workspace.paths import Workspace
from .chats import Chats
from .desk import Desk, Workshop
from .identity import Address
from .measuring import rough_count
from .running import now

logger = logging.getLogger(__name__)

HANDLER_S = 5.0
"""A rule's handler that takes longer is skipped: a prompt waits for it."""

Count = Callable[[str], int]


class RuleFigures(msgspec.Struct, frozen=True):
    """A rule as people see it: what it is, and how fresh."""

    rule_path: str
    name: str
    scope: str
    applies: str
    priority: int
    load_count: int
    last_seen: int | None
    last_changed: int | None
    tokens: int
    problem: str | None
    metadata: dict[str, Any]


async def for_prompt(
    desk: Desk, prompt: str, paths: Sequence[str], count: Count, most: int, *, preview: bool
) -> Block:
    """The rules that hold for a prompt and the files in play, within so many tokens. A preview counts no use."""
    settings = desk.settings
    if not settings.rules_enabled:
        return Block("", 0)
    workspace, folder = _workspace(desk), desk.workshop.rules_folder
    found = await anyio.to_thread.run_sync(read, workspace, folder, list(paths), settings.rule_paths)
    wanted = chosen(found, prompt, paths)
    if not wanted:
        return Block("", 0)
    answers = await _answers(desk, wanted, prompt, paths)
    values = {"project": desk.chat.project_path or "", "path": paths[0] if paths else ""}
    values["file"] = os.path.basename(values["path"])
    block = rendered(wanted, count, most, values, answers)
    if preview:
        return block
    store, project = desk.workshop.store, desk.chat.project_path
    figures = await store.rule_figures(project)
    sent = [one for one in wanted if one.path in block.included]
    await store.put_rule_figures(project, dict(seen(figures, sent, now(), count)))
    return block


async def listed(chats: Chats, address: Address) -> list[RuleFigures]:
    """All rules of a chat's project, or of a project, and of the user."""
    found = await chats.find(address)
    project = found.project_path if found and not found.deleted else chats.project(address)
    settings, folder = chats.workshop.settings(project), chats.workshop.rules_folder
    if not settings.rules_enabled:
        return []
    workspace = Workspace(project, (), chats.store.own_files) if project else None
    rules = await anyio.to_thread.run_sync(read, workspace, folder, [], settings.rule_paths)
    figures = await chats.store.rule_figures(project)
    return [_figures(rule, figures.get(rule.path)) for rule in rules]


def _figures(rule: Instruction, known: dict[str, Any] | None) -> RuleFigures:
    known = known or {}
    return RuleFigures(
        rule_path=rule.path,
        name=rule.name,
        scope=rule.scope,
        applies=rule.applies,
        priority=rule.priority,
        load_count=known.get("loadCount", 0),
        last_seen=known.get("lastSeen"),
        last_changed=known.get("lastChanged"),
        tokens=known.get("tokens") or rough_count(rule.text),
        problem=rule.problem,
        metadata=rule.metadata,
    )


async def _answers(
    desk: Desk, wanted: Sequence[Instruction], prompt: str, paths: Sequence[str]
) -> dict[str, str]:
    """What handlers say, by the rule's path; of a project that is not trusted none runs."""
    answers: dict[str, str] = {}
    project = desk.chat.project_path
    for rule in wanted:
        if rule.handler is None or project is None or not _may_run(desk.workshop, rule, project):
            continue
        try:
            answers[rule.path] = await run_handler(
                rule, prompt, paths, project=project, seconds=HANDLER_S, environ=os.environ
            )
        except Skipped as skipped:
            logger.warning("a rule's handler was skipped", extra={"rule": rule.path, "error": str(skipped)})
    return answers


def _may_run(workshop: Workshop, rule: Instruction, project: str) -> bool:
    return rule.scope == "user" or workshop.is_trusted(project)


def _workspace(desk: Desk) -> Workspace | None:
    try:
        return desk.workspace()
    except Failure:
        return None
