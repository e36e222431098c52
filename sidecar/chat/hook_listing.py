"""Hooks as people see them: what each is, what is wrong with it, how often it ran and how that went."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..policy.hooks import Hook
from ..policy.hooks.hook import TOOL_EVENTS
from ..store.hooks import HookFigures
from ..system.redact import redacted
from .chats import Chats
from .hook_files import HookFiles, Matchers
from .hook_places import Place, places
from .identity import Address

_TRIED = ("run_command", "Bash")
"""Names that matchers are tried on, to tell whether they are any good."""


class HookRow(msgspec.Struct, frozen=True):
    """A hook with its figures."""

    id: str
    file: str
    scope: str
    event: str
    matcher: str
    command: str
    timeout_ms: int
    claude: bool
    trusted: bool
    problem: str | None
    runs: int = 0
    last_result: str | None = None
    last_ms: int | None = None
    last_at: int | None = None


async def listed(chats: Chats, address: Address) -> list[HookRow]:
    """The hooks of a chat's project, or of a project, and of the user."""
    found = await chats.find(address)
    project = found.project_path if found and not found.deleted else chats.project(address)
    workshop = chats.workshop
    where = places(workshop.user_folder, workshop.settings(project), project)
    hooks = await examined(where, trusted=project is not None and workshop.is_trusted(project))
    figures = await chats.store.hook_figures()
    return [_row(hook, figures.get(hook.id)) for hook in hooks]


async def examined(where: Sequence[Place], *, trusted: bool) -> list[Hook]:
    """The hooks of these files, with what is wrong with them, their matchers included."""
    hooks = await HookFiles().read(where, trusted=trusted)
    of_tools = [hook for hook in hooks if hook.event in TOOL_EVENTS and not hook.problem]
    selected = await Matchers().selected(of_tools, _TRIED)
    broken = {hook.id: hook for hook, _ in selected if hook.problem}
    return [broken.get(hook.id, hook) for hook in hooks]


def _row(hook: Hook, figures: HookFigures | None) -> HookRow:
    row = HookRow(
        id=hook.id,
        file=hook.file,
        scope=hook.scope,
        event=hook.event,
        matcher=hook.matcher,
        command=redacted(" ".join(hook.whole)),
        timeout_ms=int(hook.seconds * 1000),
        claude=hook.claude,
        trusted=hook.trusted,
        problem=hook.problem,
    )
    if figures is None:
        return row
    return msgspec.structs.replace(
        row, runs=figures.runs, last_result=figures.decision, last_ms=figures.ms, last_at=figures.at
    )
