"""`list_dir` tells what is in a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.tools.base import Intent, ToolInput, ToolOutcome
from sidecar.tools.files.list_dir import MAX_ENTRIES, ListDir
from sidecar.workspace.paths import Workspace
from tests.unit.tools.context import FolderContext, carry_out


@pytest.fixture
def context(tmp_path: Path) -> FolderContext:
    return FolderContext(Workspace(str(tmp_path)))


async def test_folders_have_a_slash_and_files_their_size(context: FolderContext, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("four")
    os.symlink("a.txt", tmp_path / "c")
    assert await carry_out(ListDir(), {}, context) == ToolOutcome("a.txt\t4\nb/\nc\t0", paths=(".",))


async def test_an_empty_folder_is_told(context: FolderContext, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    assert await carry_out(ListDir(), {"path": "./b/"}, context) == ToolOutcome(
        "(the folder is empty)", paths=("b",)
    )


async def test_a_large_folder_comes_in_part(context: FolderContext, tmp_path: Path) -> None:
    for number in range(MAX_ENTRIES + 3):
        (tmp_path / f"{number:04}").touch()
    lines = (await carry_out(ListDir(), {}, context)).text.splitlines()
    assert (len(lines), lines[0], lines[-1]) == (MAX_ENTRIES + 1, "0000\t0", "… 3 more")


async def test_leave_is_asked_for_the_folder(context: FolderContext, tmp_path: Path) -> None:
    assert (await ListDir().prepare(ToolInput({"path": f"{tmp_path}/x/../b"}), context)).intent == Intent(
        "read", "b"
    )


@pytest.mark.parametrize("path", ["..", "/etc", "a/../../b"])
async def test_a_folder_outside_is_refused(context: FolderContext, path: str) -> None:
    with pytest.raises(Refused, match="out of the project"):
        await ListDir().prepare(ToolInput({"path": path}), context)


async def test_a_folder_that_is_not_there_is_refused(context: FolderContext) -> None:
    with pytest.raises(Refused, match="no such"):
        await carry_out(ListDir(), {"path": "none"}, context)
