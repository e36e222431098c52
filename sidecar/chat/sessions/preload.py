"""Loads the modules that the first prompt of a process needs, ahead of it, while the process is idle.

Loads code and word lists of the program only: no file of a project, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from ...system.lazy import lazy_module, load

if TYPE_CHECKING:
    from ...context.gates import prompt_reading
    from ...context.phrases import rules
    from ...tools import builtin
    from ..request import build, instructions, next_step, project
else:
    build = lazy_module("sidecar.chat.request.build")
    instructions = lazy_module("sidecar.chat.request.instructions")
    next_step = lazy_module("sidecar.chat.request.next_step")
    project = lazy_module("sidecar.chat.request.project")
    prompt_reading = lazy_module("sidecar.context.gates.prompt_reading")
    rules = lazy_module("sidecar.context.phrases.rules")
    builtin = lazy_module("sidecar.tools.builtin")

IDLE_WAIT_S = 0.25
"""A prompt that comes at once loads only what it needs; people take longer than this to type one."""

REQUEST_MODULES = (build, next_step)
PROJECT_MODULES = (builtin, project, instructions)
GATE_MODULES = (prompt_reading,)
"""Needed when the gates have something to decide about: files, or earlier turns."""


async def preload_modules(
    create_engine: Callable[[], object], answering_turns: Collection[str], in_project: bool, has_past: bool
) -> None:
    """Import the modules one by one, in steps of about ten milliseconds; `create_engine` imports those of the chat's
    engine. Stops while a model answers (`answering_turns`), because each step blocks the event loop and would delay
    its tokens.
    """
    await anyio.sleep(IDLE_WAIT_S)
    if answering_turns:
        return
    create_engine()
    await anyio.lowlevel.checkpoint()
    gated = in_project or has_past
    for module in (
        *REQUEST_MODULES,
        *(PROJECT_MODULES if in_project else ()),
        *(GATE_MODULES if gated else ()),
    ):
        if answering_turns:
            return
        load(module)
        await anyio.lowlevel.checkpoint()
    if gated:
        await _load_word_lists(answering_turns)


async def _load_word_lists(answering_turns: Collection[str]) -> None:
    for language in rules.LANGUAGES:
        if answering_turns:
            return
        rules.load_language(language)
        await anyio.lowlevel.checkpoint()
