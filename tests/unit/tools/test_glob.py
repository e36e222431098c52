"""`glob` finds files by their path, the newest first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sidecar.model.failures import Refused
from sidecar.tools.base import Intent, ToolError, ToolInput, ToolOutcome
from sidecar.tools.files import glob
from sidecar.tools.files.glob import MAX_RESULTS, GlobTool
from sidecar.workspace.paths import Workspace
from tests.unit.tools.context import FolderContext, carry_out

FILES = ["a.py", "b.ts", "src/a.py", "src/c.tsx", "src/deep/er/a.py", "src/deep/d.txt", ".github/ci.yml"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Each file a second older than the one before it."""
    folder = tmp_path / "project"
    for age, name in enumerate(FILES):
        put(folder, name, 1000 - age)
    return folder


@pytest.fixture
def context(project: Path) -> FolderContext:
    return FolderContext(Workspace(str(project)))


def put(folder: Path, name: str, changed: int = 0) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (changed, changed))


async def found(context: FolderContext, pattern: str, **more: Any) -> list[str]:
    return (await carry_out(GlobTool(), {"pattern": pattern, **more}, context)).text.splitlines()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["a.py", "src/a.py", "src/deep/er/a.py"]),
        ("/*.py", ["a.py"]),
        ("./*.py", ["a.py", "src/a.py", "src/deep/er/a.py"]),
        ("src/*.py", ["src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/er/a.py"]),
        ("**/a.py", ["a.py", "src/a.py", "src/deep/er/a.py"]),
        ("**/*.{ts,tsx}", ["b.ts", "src/c.tsx"]),
        ("src/**", ["src/a.py", "src/c.tsx", "src/deep/er/a.py", "src/deep/d.txt"]),
        ("*.yml", [".github/ci.yml"]),
        ("[ab].*s", ["b.ts"]),
        ("src", ["No file matches src."]),
        ("src/", ["No file matches src/."]),
    ],
)
async def test_a_pattern_finds_its_files(context: FolderContext, pattern: str, expected: list[str]) -> None:
    assert await found(context, pattern) == expected


async def test_the_newest_come_first_and_ties_go_by_path(context: FolderContext, project: Path) -> None:
    put(project, "z.py", 5000)
    put(project, "y.py", 1000)
    assert await found(context, "/*.py") == ["z.py", "a.py", "y.py"]


async def test_a_path_is_where_the_pattern_begins(context: FolderContext, project: Path) -> None:
    assert await found(context, "deep/*", path="src") == ["src/deep/d.txt"]
    assert await found(context, f"{project}/src/*.py", path=str(project / "src")) == ["src/a.py"]


async def test_more_than_the_limit_is_counted(context: FolderContext, project: Path) -> None:
    for number in range(MAX_RESULTS + 5):
        put(project, f"many/{number}.md")
    lines = await found(context, "*.md")
    assert (len(lines), lines[-1]) == (MAX_RESULTS + 1, "… 5 more")


async def test_hidden_files_are_left_out(context: FolderContext, project: Path) -> None:
    (project / ".gitignore").write_text("deep/\n*.tsx\n")
    put(project, ".git/a.py")
    assert await found(context, "**", path="src") == ["src/a.py"]
    assert await found(context, "*.py") == ["a.py", "src/a.py"]


async def test_a_link_is_named_and_not_entered(context: FolderContext, project: Path, tmp_path: Path) -> None:
    put(tmp_path, "outside/secret.py")
    os.symlink("../outside", project / "out")
    os.symlink("../outside/secret.py", project / "secret.py")
    os.mkfifo(project / "pipe.py")
    assert await found(context, "secret.py") == ["secret.py"]
    assert await found(context, "pipe.py") == ["No file matches pipe.py."]
    with pytest.raises(Refused):
        await found(context, "*", path="out")


async def test_ten_thousand_files_are_looked_through(context: FolderContext, project: Path) -> None:
    for folder in range(100):
        (project / f"f{folder}").mkdir()
        for number in range(100):
            os.close(os.open(project / f"f{folder}/{number}.x", os.O_CREAT))
    assert (await found(context, "*.x"))[-1] == f"… {10_000 - MAX_RESULTS} more"


async def test_a_walk_that_takes_too_long_says_so(
    context: FolderContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glob, "SECONDS", -1.0)
    assert "not all folders were looked at" in (await found(context, "*"))[-1]


async def test_only_the_pattern_is_recorded(context: FolderContext) -> None:
    ready = await GlobTool().prepare(ToolInput({"pattern": "b.*"}), context)
    assert (ready.intent, await ready.run()) == (Intent("read", "."), ToolOutcome("b.ts"))


@pytest.mark.parametrize("pattern", ["", "/", "[a", "a\\", "{a,b}" * 10, "x" * 2000, 7, None])
async def test_a_pattern_that_is_none_is_refused_in_words(context: FolderContext, pattern: object) -> None:
    with pytest.raises(ToolError, match="pattern"):
        await GlobTool().prepare(ToolInput({"pattern": pattern}), context)


async def test_a_folder_outside_is_refused(context: FolderContext) -> None:
    with pytest.raises(Refused, match="out of the project"):
        await GlobTool().prepare(ToolInput({"pattern": "*", "path": "../outside"}), context)
