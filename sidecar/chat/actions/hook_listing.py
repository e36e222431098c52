"""Lists hooks for people: what each is, its errors, how often it ran and with which results."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...policy.hooks import Hook
from ...policy.hooks.hook import TOOL_EVENTS, ProblemCode
from ...store.tables.hooks import HookFigures
from ...system.redact import redact_text
from ..hooks.files import HookFiles, Matchers
from ..hooks.locations import HookLocation, hook_locations
from ..journal.identity import ChatAddress
from ..sessions.chats import Chats

_SAMPLE_TOOL_NAMES = ("run_command", "Bash")
"""Names that matchers are tried on, to find broken ones."""


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
    problem_code: ProblemCode | None
    runs: int = 0
    last_result: str | None = None
    last_ms: int | None = None
    last_at: int | None = None


async def list_hooks(chats: Chats, address: ChatAddress) -> list[HookRow]:
    """The hooks of a chat's project, or of a project, and of the user."""
    found = await chats.find(address)
    project = found.project_path if found and not found.deleted else chats.project(address)
    services = chats.services
    where = hook_locations(services.user_folder, services.settings(project), project)
    hooks = await check_hooks(where, trusted=project is not None and services.is_trusted(project))
    figures = await chats.store.hooks.figures()
    return [_row(hook, figures.get(hook.id)) for hook in hooks]


async def check_hooks(where: Sequence[HookLocation], *, trusted: bool) -> list[Hook]:
    """The hooks of these files with their errors, including those of matchers."""
    hooks = await HookFiles().read(where, trusted=trusted)
    of_tools = [hook for hook in hooks if hook.event in TOOL_EVENTS and not hook.problem]
    select = await Matchers().select(of_tools, _SAMPLE_TOOL_NAMES)
    broken = {hook.id: hook for hook, _ in select if hook.problem}
    return [broken.get(hook.id, hook) for hook in hooks]


def _row(hook: Hook, figures: HookFigures | None) -> HookRow:
    row = HookRow(
        id=hook.id,
        file=hook.file,
        scope=hook.scope,
        event=hook.event,
        matcher=hook.matcher,
        command=redact_text(" ".join(hook.whole)),
        timeout_ms=int(hook.seconds * 1000),
        claude=hook.claude,
        trusted=hook.trusted,
        problem=hook.problem,
        problem_code=hook.problem_code,
    )
    if figures is None:
        return row
    return msgspec.structs.replace(
        row, runs=figures.runs, last_result=figures.decision, last_ms=figures.ms, last_at=figures.at
    )
