"""The tools that come with the program, for a chat that has a project."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .ask_user import AskUser
from .base import Tool
from .edit_file import EditFile
from .findings import INLINE
from .get_output import GetOutput
from .git_diff import GitDiffTool
from .glob import GlobTool
from .grep import Grep
from .index_path import IndexPath
from .insert_line import InsertLine
from .list_dir import ListDir
from .patch_file import PatchFile
from .read_file import ReadFile
from .run_batch import RunBatch
from .run_code import RunCode
from .run_command import RunCommand
from .runner import Runner, SandboxMode
from .runtimes import installed
from .search_context import SearchContext
from .update_plan import UpdatePlan
from .write_file import WriteFile


def looking_back() -> list[Tool]:
    """Those that show what was kept out of the window."""
    return [SearchContext(), GetOutput()]


def builtin(
    sandbox: SandboxMode,
    writable: Sequence[str],
    hidden: Sequence[str],
    *,
    indexed: bool = True,
    inline: int = INLINE,
) -> list[Tool]:
    """All of them. Commands may write to the project and to `writable`, and see nothing of `hidden`.
    `inline` are the bytes of output that code and batches send whole.
    Blocking when first asked, unless it is known which languages are installed."""
    runner = Runner(sandbox, os.environ, writable=writable, hidden=hidden)
    return [
        *([*looking_back(), IndexPath()] if indexed else []),
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
        RunCode(runner, installed(), inline),
        RunBatch(runner, inline),
        UpdatePlan(),
        AskUser(),
    ]
