"""The built-in tools, for a chat that has a project."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .base import Tool
from .files.edit_file import EditFile
from .files.git_diff import GitDiffTool
from .files.glob import GlobTool
from .files.grep import Grep
from .files.insert_line import InsertLine
from .files.list_dir import ListDir
from .files.patch_file import PatchFile
from .files.read_file import ReadFile
from .files.write_file import WriteFile
from .kept_output.findings import INLINE_BYTES
from .kept_output.get_output import GetOutput
from .kept_output.index_path import IndexPath
from .kept_output.search_context import SearchContext
from .people.ask_user import AskUser
from .people.update_plan import UpdatePlan
from .shell.run_batch import RunBatch
from .shell.run_code import RunCode
from .shell.run_command import RunCommand
from .shell.runner import Bounds, Runner
from .shell.runtimes import installed_runtimes

if TYPE_CHECKING:
    from ..system.choices import Sandbox


def output_tools() -> list[Tool]:
    """Return the tools that read text from the index."""
    return [SearchContext(), GetOutput()]


def builtin_tools(
    sandbox: Sandbox,
    bounds: Bounds | None = None,
    *,
    indexed: bool = True,
    inline: int = INLINE_BYTES,
) -> list[Tool]:
    """Return all built-in tools. `bounds` limit commands in the sandbox. `inline` is the number of bytes of output
    that code and batches send in full. The first call blocks until the installed languages are known.
    """
    runner = Runner(sandbox, os.environ, bounds)
    return [
        *([*output_tools(), IndexPath()] if indexed else []),
        ListDir(),
        ReadFile(),
        GlobTool(),
        Grep(),
        GitDiffTool(),
        WriteFile(),
        EditFile(),
        InsertLine(),
        PatchFile(),
        RunCommand(runner),
        RunCode(runner, installed_runtimes(), inline),
        RunBatch(runner, inline),
        UpdatePlan(),
        AskUser(),
    ]
