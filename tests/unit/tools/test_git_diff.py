"""`git_diff` tells the summary, what is new, and the diff as far as it fits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.tools.base import Intent, ToolInput, ToolOutcome
from sidecar.tools.files.git_diff import MAX_BYTES, MAX_SUMMARY, GitDiffTool
from sidecar.workspace.paths import Workspace
from tests.unit.tools.context import FolderContext, carry_out
from tests.unit.workspace.hostile import Scene

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def context(scene: Scene) -> FolderContext:
    return FolderContext(Workspace(str(scene.project)))


async def test_the_summary_comes_first_then_new_files_then_the_diff(
    scene: Scene, context: FolderContext
) -> None:
    (scene.project / "new.txt").touch()
    lines = (await carry_out(GitDiffTool(), {}, context)).text.splitlines()
    assert lines[:6] == [
        " a.txt | 1 +",
        " 1 file changed, 1 insertion(+)",
        "",
        "New and not known to git: 1",
        "new.txt",
        "",
    ]
    assert lines[6] == "diff --git a/a.txt b/a.txt"
    assert lines[-1] == "+two"


async def test_nothing_staged_is_told(scene: Scene, context: FolderContext) -> None:
    assert await carry_out(GitDiffTool(), {"staged": True}, context) == ToolOutcome("No changes.")


async def test_a_long_diff_comes_in_part_and_whole(scene: Scene, context: FolderContext) -> None:
    scene.append("a.txt", "".join(f"line {number}\n" for number in range(20_000)))
    outcome = await carry_out(GitDiffTool(), {}, context)
    assert len(outcome.text.encode()) < MAX_BYTES + 500
    assert outcome.text.splitlines()[-1].startswith("…")
    assert outcome.whole is not None
    assert outcome.whole.endswith("+line 19999\n")


async def test_a_long_summary_is_shortened(scene: Scene, context: FolderContext) -> None:
    for number in range(300):
        (scene.project / f"{number:03}").write_text("x\n")
    scene.git("add", "--all")
    lines = (await carry_out(GitDiffTool(), {"staged": True}, context)).text.splitlines()
    assert lines[MAX_SUMMARY] == " 301 files changed, 301 insertions(+)"
    assert lines[MAX_SUMMARY - 1] == " … 202 more files"


async def test_leave_is_asked_for_the_path(context: FolderContext) -> None:
    assert (await GitDiffTool().prepare(ToolInput({"path": "./a.txt"}), context)).intent == Intent(
        "read", "a.txt"
    )
    assert (await GitDiffTool().prepare(ToolInput({}), context)).intent == Intent("read", ".")


async def test_a_project_without_git_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    context = FolderContext(Workspace(str(tmp_path / "plain")))
    with pytest.raises(Refused, match="not in a git repository"):
        await carry_out(GitDiffTool(), {}, context)
