"""A diff changes all files that it names, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.tools.files.patch_file import PatchFile
from tests.unit.tools.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


async def test_a_diff_of_several_files_is_applied_whole(project: Project) -> None:
    project.put("one", b"a\nb\n")
    project.put("gone", b"x\n")
    patch = (
        "--- a/one\n+++ b/one\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
        "--- /dev/null\n+++ b/sub/new\n@@ -0,0 +1,2 @@\n+n\n+m\n"
        "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )
    outcome = await project.call(PatchFile(), patch=patch)

    assert (project.bytes("one"), project.bytes("sub/new")) == (b"a\nc\n", b"n\nm\n")
    assert not (project.folder / "gone").exists()
    assert outcome.paths == ("one", "sub/new", "gone")
    assert set(outcome.seen) == {"one", "sub/new"}
    assert outcome.text == (
        "Patched one: -1, +1 lines\nHunk 1 at line 2\n1\ta\n2\tc\n"
        "Patched sub/new: New file: 2 lines\nPatched gone: Deleted: 1 line"
    )


@pytest.mark.parametrize(
    "second",
    [
        "--- a/two\n+++ b/two\n@@ -1 +1 @@\n-no such line\n+c\n",
        "--- a/unseen\n+++ b/unseen\n@@ -1 +1 @@\n-a\n+c\n",
        "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+c\n",
        "--- /dev/null\n+++ b/two\n@@ -0,0 +1 @@\n+c\n",
        "--- a/two\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
        "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-a\n+c\n",
        "--- a/two\n+++ b/three\n@@ -1 +1 @@\n-a\n+c\n",
        "diff --git a/two b/three\nrename from two\nrename to three\n",
    ],
)
async def test_a_diff_that_fits_in_part_plans_nothing(project: Project, second: str) -> None:
    project.put("one", b"a\n")
    project.put("two", b"a\nb\n")
    project.put("unseen", b"a\n", seen=False)
    first = "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-a\n+c\n"

    assert await project.problem(PatchFile(), patch=first + second)
    await project.call(PatchFile(), patch=first)
    assert project.bytes("one") == b"c\n"


async def test_a_hunk_that_is_off_says_by_how_much(project: Project) -> None:
    project.put("x", b"".join(b"line %d\n" % n for n in range(1, 21)))

    outcome = await project.call(PatchFile(), patch="--- x\n+++ x\n@@ -2 +2 @@\n-line 9\n+nine\n")
    assert "Hunk 1 at line 9, 7 lines below its number\n7\tline 7\n" in outcome.text


async def test_a_hunk_that_does_not_fit_says_what_stands_there(project: Project) -> None:
    project.put("x", b"one = 1\ntwo = 2\n")

    assert await project.problem(PatchFile(), path="x", patch="@@ -1,2 +1 @@\n one = 1\n-two = 3\n") == (
        "x: Hunk 1 does not fit at line 1 or anywhere else. It expects:\n  one = 1\n  two = 3\n"
        "The nearest is, from line 1:\n  one = 1\n  two = 2\nNothing was changed."
    )


async def test_a_path_is_needed_once(project: Project) -> None:
    project.put("x", b"a\n")
    hunk = "@@ -1 +1 @@\n-a\n+b\n"
    two = f"--- a/x\n+++ b/x\n{hunk}--- a/y\n+++ b/y\n{hunk}"

    assert "give `path`" in await project.problem(PatchFile(), patch=hunk)
    assert "leave `path` out" in await project.problem(PatchFile(), path="x", patch=two)
    assert "no hunk" in await project.problem(PatchFile(), path="x", patch="do it")
