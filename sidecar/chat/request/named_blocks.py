"""Checks that the blocks that a prompt excludes or includes exist, before the prompt is accepted."""

from __future__ import annotations

import os

import anyio.to_thread

from ...context import block_names
from ...context.block_names import DIFF_PREFIX, FILE_PREFIX, PATCH_PREFIX
from ...model.chats import ContextSwitches
from ...model.failures import Failure
from ...store.store import Store
from ...workspace.paths import Workspace
from ..tool_calls.environment import ToolEnvironment


async def check_block_names(store: Store, environment: ToolEnvironment, switches: ContextSwitches) -> None:
    """Refuse a name in `exclude` or `include` that no block can have; the error names the nearest."""
    asked = [*switches.exclude, *switches.include]
    if not asked:
        return
    known = await anyio.to_thread.run_sync(_file_names, environment, asked)
    if any(name.startswith((PATCH_PREFIX, DIFF_PREFIX)) for name in asked):
        for entry in await store.patches.all(environment.chat.id):
            known |= {f"{PATCH_PREFIX}{entry.patch.id}", f"{DIFF_PREFIX}{entry.patch.file_path}"}
    block_names.check_names("context.exclude", switches.exclude, known, excludes=True)
    block_names.check_names("context.include", switches.include, known, excludes=False)


def _file_names(environment: ToolEnvironment, asked: list[str]) -> set[str]:
    """The names of the open files, and those that were asked for and exist in the project."""
    try:
        workspace = environment.workspace()
    except Failure:  # the project is gone: nothing is known of its files
        return {name for name in asked if block_names.may_name_file(name)}
    if workspace is None:
        return set()
    paths = {shown for file in environment.files.display_order() if (shown := _shown(workspace, file.path))}
    asked_paths = {name.removeprefix(FILE_PREFIX) for name in asked}
    paths |= {path for path in asked_paths - paths if _exists(workspace, path)}
    return paths | {f"{FILE_PREFIX}{path}" for path in paths}


def _shown(workspace: Workspace, path: str) -> str | None:
    try:
        return workspace.relative(path)
    except Failure:
        return None  # in a folder that the chat has no longer


def _exists(workspace: Workspace, path: str) -> bool:
    try:
        os.close(workspace.open_file(path))
    except Failure:
        return False
    return True
