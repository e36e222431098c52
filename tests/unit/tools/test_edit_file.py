"""Whole files, pieces of text and lines: each tool changes what it says and tells what it changed."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from sidecar.tools.base import ToolOutcome
from sidecar.tools.files.edit_file import EditFile
from sidecar.tools.files.insert_line import InsertLine
from sidecar.tools.files.write_file import WriteFile
from tests.unit.tools.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


async def test_a_file_is_made_with_its_folders(project: Project) -> None:
    outcome = await project.call(WriteFile(), path="a/b/../new/x.txt", content="one\ntwo\n")

    assert outcome == ToolOutcome(
        "Wrote a/new/x.txt: New file: 2 lines",
        paths=("a/new/x.txt",),
        seen={"a/new/x.txt": sha256(b"one\ntwo\n").hexdigest()},
    )


async def test_a_file_can_be_empty(project: Project) -> None:
    await project.call(WriteFile(), path="x", content="")
    assert project.bytes("x") == b""
    await project.call(WriteFile(), path="x", content="a")
    await project.call(WriteFile(), path="x", content="")
    assert project.bytes("x") == b""


async def test_an_edit_shows_the_lines_around(project: Project) -> None:
    project.put("x", b"".join(b"line %d\n" % n for n in range(1, 21)))

    assert (
        await project.call(EditFile(), path="x", old_string="line 9\n", new_string="nine\nnew\n")
    ).text == (
        "Edited x: -1, +2 lines\n7\tline 7\n8\tline 8\n9\tnine\n10\tnew\n11\tline 10\n12\tline 11\n13\tline 12"
    )


async def test_text_that_is_there_twice_is_not_replaced_by_chance(project: Project) -> None:
    project.put("x", b"a b\nc\nb\n")

    assert await project.problem(EditFile(), path="x", old_string="b", new_string="d") == (
        "`old_string` is in x 2 times, at lines 1, 3. Give more of the text around it, or set replace_all."
    )
    outcome = await project.call(EditFile(), path="x", old_string="b", new_string="d\nd", replace_all=True)
    assert project.bytes("x") == b"a d\nd\nc\nd\nd\n"
    assert "at 2 places: lines 1, 4" in outcome.text


async def test_many_places_are_counted_not_listed(project: Project) -> None:
    project.put("x", b"b\n" * 1000)

    assert "1000 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 990 more" in await project.problem(
        EditFile(), path="x", old_string="b", new_string="d"
    )


async def test_the_nearest_text_is_shown_when_nothing_matches(project: Project) -> None:
    project.put("x", b"def one():\n    return 1\n\ndef two(argument):\n\treturn argument * 2\n")

    assert await project.problem(EditFile(), path="x", old_string="one():\n  return 1", new_string="z") == (
        "`old_string` is not in x. The nearest is, from line 1:\n1\tdef one():\n2\t    return 1"
    )
    assert await project.problem(
        EditFile(), path="x", old_string="def two(argument):\n    return argument * 2\n", new_string="z"
    ) == ("`old_string` is not in x. Only white space differs, from line 4:\n"
          "4\tdef two(argument):\n5\t\treturn argument * 2")  # fmt: skip
    assert "from line 4:\n4\tdef two(argument)" in await project.problem(
        EditFile(), path="x", old_string="def two(arguments):", new_string="z"
    )
    assert "Nothing there is like it" in await project.problem(
        EditFile(), path="x", old_string="%%%%", new_string="z"
    )


async def test_a_miss_in_a_huge_file_is_answered(project: Project) -> None:
    project.put("x", b"some words that are everywhere\n" * 200_000)

    assert "from line 1:" in await project.problem(
        EditFile(), path="x", old_string="some word that is nowhere\n" * 50, new_string="z"
    )


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\nc\n", "a\nb", "x\ny", b"x\r\ny\nc\n"),
        (b"a\r\nb\nc\n", "b\nc", "x\ny", b"a\r\nx\ny\n"),
        (b"a\r\nb\r\nc\n", "a\r\nb", "x", b"x\r\nc\n"),
        (b"a\nb\n", "a\r\nb\r\n", "x\r\n", b"x\n"),
    ],
)
async def test_line_ends_that_differ_are_matched_and_kept(
    project: Project, before: bytes, old: str, new: str, after: bytes
) -> None:
    project.put("x", before)
    await project.call(EditFile(), path="x", old_string=old, new_string=new)

    assert project.bytes("x") == after


async def test_an_empty_old_string_fills_an_empty_or_missing_file(project: Project) -> None:
    project.put("empty", b"")
    project.put("full", b"a")

    await project.call(EditFile(), path="empty", old_string="", new_string="a\n")
    await project.call(EditFile(), path="missing", old_string="", new_string="b\n")
    assert (project.bytes("empty"), project.bytes("missing")) == (b"a\n", b"b\n")
    assert "only where the file is" in await project.problem(
        EditFile(), path="full", old_string="", new_string="b"
    )
    assert await project.problem(EditFile(), path="none", old_string="a", new_string="b") == (
        "There is no file none. Use write_file to make it."
    )


@pytest.mark.parametrize(
    ("before", "line", "text", "after"),
    [
        (b"a\nb\n", 0, "x", b"x\na\nb\n"),
        (b"a\nb\n", 1, "x\ny\n", b"a\nx\ny\nb\n"),
        (b"a\nb\n", 2, "x", b"a\nb\nx\n"),
        (b"a\nb", 2, "x", b"a\nb\nx"),
        (b"a\nb", 2, "x\n", b"a\nb\nx\n"),
        (b"a\nb", 1, "x", b"a\nx\nb"),
        (b"a\nb\n", 1, "", b"a\n\nb\n"),
        (b"", 0, "x", b"x\n"),
        (b"a\r\nb\r\n", 1, "x\ny", b"a\r\nx\r\ny\r\nb\r\n"),
        (b"a\r\nb\r\n", 1, "x\r\ny", b"a\r\nx\r\ny\r\nb\r\n"),
        (b"a\r\nb", 2, "x", b"a\r\nb\r\nx"),
        (b"a\rb", 1, "x", b"a\rx\rb"),
        (b"a\r\nb\n", 1, "x\ny", b"a\r\nx\r\ny\r\nb\n"),
        (b"\xef\xbb\xbfa\n", 0, "x", b"\xef\xbb\xbfx\na\n"),
    ],
)
async def test_lines_are_inserted_whole(
    project: Project, before: bytes, line: int, text: str, after: bytes
) -> None:
    project.put("x", before)
    await project.call(InsertLine(), path="x", line=line, text=text)

    assert project.bytes("x") == after


async def test_an_insertion_shows_the_lines_around(project: Project) -> None:
    project.put("x", b"a\nb\nc\nd\n")

    assert (await project.call(InsertLine(), path="x", line=2, text="new\nmore")).text == (
        "Inserted 2 lines in x:\n1\ta\n2\tb\n3\tnew\n4\tmore\n5\tc\n6\td"
    )


async def test_lines_are_not_inserted_where_there_are_none(project: Project) -> None:
    project.put("x", b"a\nb\n")

    assert await project.problem(InsertLine(), path="x", line=3, text="n") == "x has 2 lines."
    assert "whole number from 0" in await project.problem(InsertLine(), path="x", text="n")
    assert "whole number from 0" in await project.problem(InsertLine(), path="x", line=-1, text="n")
    assert "no file none" in await project.problem(InsertLine(), path="none", line=0, text="n")


async def test_a_slip_that_would_blow_a_file_up_is_refused(project: Project) -> None:
    project.put("x", b"a" * 200_000)

    for new in ("b", "b" * 1000):
        assert "too often" in await project.problem(
            EditFile(), path="x", old_string="a", new_string=new, replace_all=True
        )
