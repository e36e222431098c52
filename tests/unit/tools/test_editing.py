"""What holds for all edit tools: they plan new bytes for a file that the model has seen as it is."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sidecar.model.failures import Refused
from sidecar.tools.base import Edit, Intent, Tool, ToolInput
from sidecar.tools.files.edit_file import EditFile
from sidecar.tools.files.editing import MAX_FILE_BYTES
from sidecar.tools.files.insert_line import InsertLine
from sidecar.tools.files.patch_file import PatchFile
from sidecar.tools.files.read_file import ReadFile
from sidecar.tools.files.write_file import WriteFile
from tests.unit.tools.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


CALLS: list[tuple[Tool, dict[str, Any]]] = [
    (WriteFile(), {"path": "./x", "content": "one\n2\n"}),
    (EditFile(), {"path": "./x", "old_string": "two", "new_string": "2"}),
    (PatchFile(), {"path": "./x", "patch": "@@ -2 +2 @@\n-two\n+2\n"}),
    (PatchFile(), {"patch": "--- a/x\n+++ b/x\n@@ -2 +2 @@\n-two\n+2\n"}),
]


@pytest.mark.parametrize(("tool", "input"), CALLS)
async def test_a_plan_changes_nothing_and_says_what_it_would(
    project: Project, tool: Tool, input: dict[str, Any]
) -> None:
    project.put("x", b"one\ntwo\n")
    ready = await tool.prepare(ToolInput(input), project.context)

    assert project.bytes("x") == b"one\ntwo\n"
    assert ready.intent == Intent("edit", "x", (Edit("x", b"one\ntwo\n", b"one\n2\n"),))
    outcome = await ready.run()
    assert (outcome.paths, outcome.seen) == (("x",), {"x": sha256(b"one\n2\n").hexdigest()})
    assert "x: -1, +1 lines" in outcome.text
    assert tool.runs_alone


INSERT: tuple[Tool, dict[str, Any]] = (InsertLine(), {"path": "x", "line": 0, "text": "new"})


@pytest.mark.parametrize(("tool", "input"), [*CALLS, INSERT])
async def test_a_file_must_have_been_read_as_it_is(
    project: Project, tool: Tool, input: dict[str, Any]
) -> None:
    project.put("x", b"one\ntwo\n", seen=False)
    assert await project.problem(tool, **input) == "You have not read x yet; read it first."

    project.put("x", b"other\n")
    project.put("x", b"one\ntwo\n", seen=False)
    assert await project.problem(tool, **input) == "x changed on disk since you read it; read it again."

    await project.call(ReadFile(), path="x")
    await project.call(tool, **input)
    assert project.bytes("x") != b"one\ntwo\n"


@pytest.mark.parametrize(("tool", "input"), [*CALLS, INSERT])
async def test_what_an_editor_has_not_saved_is_not_overwritten(
    project: Project, tool: Tool, input: dict[str, Any]
) -> None:
    project.put("x", b"one\ntwo\n")
    project.context.unsaved_texts["x"] = "one\ntwo and a half\n"

    assert "unsaved changes in the user's editor" in await project.problem(tool, **input)
    await project.call(ReadFile(), path="x")
    assert "unsaved changes in the user's editor" in await project.problem(tool, **input)
    project.put("x", b"one\ntwo\n")
    project.context.unsaved_texts["x"] = "one\ntwo\n"
    await project.call(tool, **input)


@pytest.mark.parametrize(("tool", "input"), [*CALLS, INSERT])
async def test_binary_and_huge_files_are_not_edited(
    project: Project, tool: Tool, input: dict[str, Any]
) -> None:
    project.put("x", b"one\ntwo\0\n")
    assert await project.problem(tool, **input) == "x: It is not a text file."

    project.put("x", b"x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(Refused, match="more than"):
        await tool.prepare(ToolInput(input), project.context)


@pytest.mark.parametrize(("tool", "input"), [*CALLS, INSERT])
async def test_paths_out_of_the_project_are_refused(
    project: Project, tool: Tool, input: dict[str, Any]
) -> None:
    (project.folder.parent / "secret").write_text("one\ntwo\n")
    (project.folder / "x").symlink_to(project.folder.parent / "secret")
    with pytest.raises(Refused, match="out of the project"):
        await tool.prepare(ToolInput(input), project.context)
    with pytest.raises(Refused, match="out of the project"):
        await tool.prepare(ToolInput(input | {"path": "../secret"}), project.context)


async def test_edits_follow_each_other_without_reading_again(project: Project) -> None:
    await project.call(WriteFile(), path="deep/er/x", content="a\nb\n")
    await project.call(EditFile(), path="deep/er/x", old_string="a", new_string="c")
    await project.call(InsertLine(), path="deep/er/x", line=1, text="d")
    await project.call(PatchFile(), path="deep/er/x", patch="@@ -3 +3 @@\n-b\n+e\n")

    assert project.bytes("deep/er/x") == b"c\nd\ne\n"


ROUND_TRIPS = [
    (b"one\r\ntwo\r\n", b"one\r\n2\r\nmore\r\n"),
    (b"one\rtwo\r", b"one\r2\rmore\r"),
    (b"one\ntwo", b"one\n2\nmore"),
    (b"one\r\ntwo", b"one\r\n2\r\nmore"),
    (b"\xef\xbb\xbfone\ntwo\n", b"\xef\xbb\xbfone\n2\nmore\n"),
    (b"\xef\xbb\xbfone\r\ntwo", b"\xef\xbb\xbfone\r\n2\r\nmore"),
    (b"\xfcone\ntwo\n", b"\xfcone\n2\nmore\n"),
    (b"\x81one\ntwo\n", b"\x81one\n2\nmore\n"),
    ("\ufeffone\r\ntwo".encode("utf-16-le"), "\ufeffone\r\n2\r\nmore".encode("utf-16-le")),
    ("\ufeffone\ntwo\n".encode("utf-16-be"), "\ufeffone\n2\nmore\n".encode("utf-16-be")),
]


@pytest.mark.parametrize(("before", "after"), ROUND_TRIPS)
async def test_an_edit_keeps_encoding_mark_and_line_ends(
    project: Project, before: bytes, after: bytes
) -> None:
    project.put("x", before)
    await project.call(EditFile(), path="x", old_string="one\ntwo", new_string="one\n2\nmore")
    assert project.bytes("x") == after

    project.put("x", before)
    await project.call(PatchFile(), path="x", patch="@@ -2 +2,2 @@\n-two\n+2\n+more\n")
    assert project.bytes("x") == after


@pytest.mark.parametrize(("before", "after"), ROUND_TRIPS)
async def test_a_file_written_anew_keeps_encoding_mark_and_line_ends(
    project: Project, before: bytes, after: bytes
) -> None:
    project.put("x", before)
    text = (await project.call(ReadFile(), path="x")).text
    lines = [line.split("\t")[1] for line in text.splitlines()]
    end = "" if before.rstrip(b"\0")[-1:] == b"o" else "\n"
    await project.call(WriteFile(), path="x", content="\n".join([lines[0], "2", "more"]) + end)

    assert project.bytes("x") == after


async def test_line_ends_that_were_written_on_purpose_are_kept(project: Project) -> None:
    project.put("x", b"a\r\n")
    await project.call(WriteFile(), path="x", content="b\r\nc\n")

    assert project.bytes("x") == b"b\r\nc\n"


@pytest.mark.parametrize(
    ("data", "name"), [(b"gr\xfcn\n", "Windows-1252"), (b"gr\xfcn\x81\n", "ISO 8859-1"), (b"ok", "UTF-8")]
)
async def test_text_that_the_encoding_cannot_hold_is_refused(
    project: Project, data: bytes, name: str
) -> None:
    project.put("x", data)
    char = "\ud800" if name == "UTF-8" else "日"

    assert name in await project.problem(WriteFile(), path="x", content=char)
    assert name in await project.problem(InsertLine(), path="x", line=0, text=char)


async def test_nothing_becomes_binary_or_huge(project: Project) -> None:
    assert "NUL" in await project.problem(WriteFile(), path="x", content="a\0b")
    assert "more than" in await project.problem(WriteFile(), path="x", content="a" * (MAX_FILE_BYTES + 1))


async def test_an_edit_that_changes_nothing_is_refused(project: Project) -> None:
    project.put("x", b"a\r\nb\r\n")

    assert "would not change" in await project.problem(WriteFile(), path="x", content="a\nb\n")
    assert "are the same" in await project.problem(EditFile(), path="x", old_string="a", new_string="a")
    assert "would not change" in await project.problem(
        EditFile(), path="x", old_string="a\n", new_string="a\r\n"
    )
    assert "would not change" in await project.problem(PatchFile(), path="x", patch="@@ -1 +1 @@\n a\n")


def test_titles_name_the_file() -> None:
    patch = "--- a/src/x\n+++ b/src/x\n@@ -1 +1 @@\n-a\n+b\n"

    assert [tool.title(ToolInput(input)) for tool, input in CALLS[:3]] == [
        "Write ./x",
        "Edit ./x",
        "Patch ./x",
    ]
    assert PatchFile().title(ToolInput({"patch": patch})) == "Patch src/x"
    assert PatchFile().title(ToolInput({"patch": 7})) == "Patch"
