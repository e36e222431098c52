"""What the first prompt of a process would wait for, loaded ahead of it while nobody waits for anything.

Code and word lists of the program itself and nothing else: no file of a project, no network.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection

import anyio
import anyio.lowlevel

UNHURRIED_S = 0.25
"""A prompt that comes at once loads what it needs and no more; people take longer than this to type one."""

ASKING = ("sidecar.chat.asking", "sidecar.chat.stepping")
PROJECT = ("sidecar.tools.builtin", "sidecar.chat.gathering", "sidecar.chat.instructions")
GATES = ("sidecar.context.gates.look",)
"""Needed where there is something to open: files, or what was said before."""


async def load(answered: Collection[str], in_project: bool, has_past: bool) -> None:
    """In pieces of some ten milliseconds, and none while a model answers (`answered`): its words must not stumble."""
    await anyio.sleep(UNHURRIED_S)
    gated = in_project or has_past
    for module in (*ASKING, *(PROJECT if in_project else ()), *(GATES if gated else ())):
        if answered:
            return
        importlib.import_module(module)
        await anyio.lowlevel.checkpoint()
    if gated:
        await _words(answered)


async def _words(answered: Collection[str]) -> None:
    from ..context.gates import phrases

    for language in phrases.LANGUAGES:
        if answered:
            return
        phrases.prepare(language)
        await anyio.lowlevel.checkpoint()
