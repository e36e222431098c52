"""`read_file` shows a file's lines as every other tool counts them, and remembers which bytes were shown."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.tools.base import Intent, ToolError, ToolInput, ToolOutcome
from sidecar.tools.files.read_file import MAX_FILE_BYTES, MAX_LINES, MAX_OUTPUT, UNSAVED, ReadFile
from sidecar.workspace.paths import Workspace
from tests.unit.tools.context import FolderContext, carry_out


@pytest.fixture
def context(tmp_path: Path) -> FolderContext:
    (tmp_path / "project").mkdir()
    return FolderContext(Workspace(str(tmp_path / "project")))


def put(context: FolderContext, path: str, data: bytes) -> None:
    (Path(context.workspace.root) / path).write_bytes(data)


async def read(context: FolderContext, path: str, **lines: int) -> ToolOutcome:
    return await carry_out(ReadFile(), {"path": path, **lines}, context)


async def test_lines_come_with_numbers_and_the_hash_of_all_bytes(context: FolderContext) -> None:
    put(context, "notes.txt", b"first\nsecond\nthird\n")

    assert await read(context, "./notes.txt", start_line=2, end_line=2) == ToolOutcome(
        "2\tsecond\n… 1 more lines; ask for them by start_line and end_line",
        paths=("notes.txt",),
        seen={"notes.txt": sha256(b"first\nsecond\nthird\n").hexdigest()},
        shown=True,
    )


async def test_leave_is_asked_for_the_path_before_anything_is_read(context: FolderContext) -> None:
    ready = await ReadFile().prepare(ToolInput({"path": "sub/../later.txt"}), context)
    put(context, "later.txt", b"came later")

    assert ready.intent == Intent("read", "later.txt")
    assert (await ready.run()).text == "1\tcame later"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "(the file is empty)"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "1\ta\n2\tb"),
        (b"a\rb", "1\ta\n2\tb"),
        (b"a\r\nb\n", "1\ta\n2\tb"),
        (b"a\x0cb\nc", "1\ta\x0cb\n2\tc"),
        (b"gr\xfcn \x80", "1\tgrün €"),
        ("\ufeffgrün\n日".encode("utf-16-le"), "1\tgrün\n2\t日"),
    ],
)
async def test_every_encoding_and_line_end_is_read(context: FolderContext, data: bytes, text: str) -> None:
    put(context, "x", data)

    outcome = await read(context, "x")
    assert (outcome.text, outcome.seen) == (text, {"x": sha256(data).hexdigest()})


async def test_unsaved_text_is_read_and_said_to_be_so(context: FolderContext) -> None:
    put(context, "x", b"\xef\xbb\xbfsaved\r\n")
    context.unsaved_texts["x"] = "typed\nmore\n"

    outcome = await read(context, "x")
    assert outcome.text == f"{UNSAVED}\n1\ttyped\n2\tmore"
    assert outcome.seen == {"x": sha256(b"\xef\xbb\xbftyped\r\nmore\r\n").hexdigest()}


async def test_an_editor_that_has_what_is_on_disk_is_no_news(context: FolderContext) -> None:
    put(context, "x", b"same\r\n")
    context.unsaved_texts["x"] = "same\n"

    assert (await read(context, "x")).text == "1\tsame"


async def test_a_file_that_was_never_saved_is_read_from_the_editor(context: FolderContext) -> None:
    context.unsaved_texts["new.txt"] = "typed"

    outcome = await read(context, "new.txt")
    assert (outcome.text, outcome.seen) == (
        f"{UNSAVED}\n1\ttyped",
        {"new.txt": sha256(b"typed").hexdigest()},
    )


async def test_an_editor_gives_no_way_out_of_the_project(context: FolderContext, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "project" / "way-out").symlink_to(tmp_path / "secret")
    context.unsaved_texts["way-out"] = "secret"

    with pytest.raises(Refused, match="out of the project"):
        await read(context, "way-out")


async def test_long_files_come_in_part(context: FolderContext) -> None:
    put(context, "long", b"x\n" * (MAX_LINES + 5))
    put(context, "wide", b"y" * (2 * MAX_OUTPUT) + b"\nz\n")

    assert (await read(context, "long")).text.endswith(f"\n{MAX_LINES}\tx\n… 5 more lines; ask for them by start_line"
                                                     " and end_line")  # fmt: skip
    wide = (await read(context, "wide")).text
    assert "… (the line goes on)\n… 1 more lines" in wide
    assert len(wide) < MAX_OUTPUT + 200


async def test_what_is_no_text_or_too_large_or_missing_is_refused(context: FolderContext) -> None:
    put(context, "binary", b"\x7fELF\0")
    put(context, "large", b"x" * (MAX_FILE_BYTES + 1))

    with pytest.raises(ToolError, match="binary: It is not a text file"):
        await read(context, "binary")
    with pytest.raises(Refused, match="more than"):
        await read(context, "large")
    with pytest.raises(Refused, match="no file missing"):
        await read(context, "missing")


@pytest.mark.parametrize(
    "input",
    [
        {},
        {"path": 7},
        {"path": ""},
        {"path": "x", "start_line": 0},
        {"path": "x", "start_line": 4},
        {"path": "x", "start_line": 2, "end_line": 1},
        {"path": "x", "end_line": "2"},
    ],
)
async def test_calls_that_mean_nothing_are_refused(context: FolderContext, input: dict[str, object]) -> None:
    put(context, "x", b"1\n2\n3\n")

    with pytest.raises(ToolError):
        await carry_out(ReadFile(), input, context)
