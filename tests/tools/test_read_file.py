"""`read_file` shows a file's lines as every other tool counts them, and remembers which bytes were shown."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.tools.base import Need, Outcome, Wrong
from sidecar.tools.read_file import MAX_FILE_BYTES, MAX_LINES, MAX_OUTPUT, UNSAVED, ReadFile
from sidecar.workspace.paths import Workspace
from tests.tools.hands import OpenHands, carry_out


@pytest.fixture
def hands(tmp_path: Path) -> OpenHands:
    (tmp_path / "project").mkdir()
    return OpenHands(Workspace(str(tmp_path / "project")))


def put(hands: OpenHands, path: str, data: bytes) -> None:
    (Path(hands.workspace.root) / path).write_bytes(data)


async def read(hands: OpenHands, path: str, **lines: int) -> Outcome:
    return await carry_out(ReadFile(), {"path": path, **lines}, hands)


async def test_lines_come_with_numbers_and_the_hash_of_all_bytes(hands: OpenHands) -> None:
    put(hands, "notes.txt", b"first\nsecond\nthird\n")

    assert await read(hands, "./notes.txt", start_line=2, end_line=2) == Outcome(
        "2\tsecond\n… 1 more lines; ask for them by start_line and end_line",
        paths=("notes.txt",),
        seen={"notes.txt": sha256(b"first\nsecond\nthird\n").hexdigest()},
        shown=True,
    )


async def test_leave_is_asked_for_the_path_before_anything_is_read(hands: OpenHands) -> None:
    ready = await ReadFile().prepare({"path": "sub/../later.txt"}, hands)
    put(hands, "later.txt", b"came later")

    assert ready.need == Need("read", "later.txt")
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
async def test_every_encoding_and_line_end_is_read(hands: OpenHands, data: bytes, text: str) -> None:
    put(hands, "x", data)

    outcome = await read(hands, "x")
    assert (outcome.text, outcome.seen) == (text, {"x": sha256(data).hexdigest()})


async def test_unsaved_text_is_read_and_said_to_be_so(hands: OpenHands) -> None:
    put(hands, "x", b"\xef\xbb\xbfsaved\r\n")
    hands.unsaved_texts["x"] = "typed\nmore\n"

    outcome = await read(hands, "x")
    assert outcome.text == f"{UNSAVED}\n1\ttyped\n2\tmore"
    assert outcome.seen == {"x": sha256(b"\xef\xbb\xbftyped\r\nmore\r\n").hexdigest()}


async def test_an_editor_that_has_what_is_on_disk_is_no_news(hands: OpenHands) -> None:
    put(hands, "x", b"same\r\n")
    hands.unsaved_texts["x"] = "same\n"

    assert (await read(hands, "x")).text == "1\tsame"


async def test_a_file_that_was_never_saved_is_read_from_the_editor(hands: OpenHands) -> None:
    hands.unsaved_texts["new.txt"] = "typed"

    outcome = await read(hands, "new.txt")
    assert (outcome.text, outcome.seen) == (
        f"{UNSAVED}\n1\ttyped",
        {"new.txt": sha256(b"typed").hexdigest()},
    )


async def test_an_editor_gives_no_way_out_of_the_project(hands: OpenHands, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "project" / "way-out").symlink_to(tmp_path / "secret")
    hands.unsaved_texts["way-out"] = "secret"

    with pytest.raises(Refused, match="out of the project"):
        await read(hands, "way-out")


async def test_long_files_come_in_part(hands: OpenHands) -> None:
    put(hands, "long", b"x\n" * (MAX_LINES + 5))
    put(hands, "wide", b"y" * (2 * MAX_OUTPUT) + b"\nz\n")

    assert (await read(hands, "long")).text.endswith(f"\n{MAX_LINES}\tx\n… 5 more lines; ask for them by start_line"
                                                     " and end_line")  # fmt: skip
    wide = (await read(hands, "wide")).text
    assert "… (the line goes on)\n… 1 more lines" in wide
    assert len(wide) < MAX_OUTPUT + 200


async def test_what_is_no_text_or_too_large_or_missing_is_refused(hands: OpenHands) -> None:
    put(hands, "binary", b"\x7fELF\0")
    put(hands, "large", b"x" * (MAX_FILE_BYTES + 1))

    with pytest.raises(Wrong, match="binary: It is not a text file"):
        await read(hands, "binary")
    with pytest.raises(Refused, match="more than"):
        await read(hands, "large")
    with pytest.raises(Refused, match="no file missing"):
        await read(hands, "missing")


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
async def test_calls_that_mean_nothing_are_refused(hands: OpenHands, input: dict[str, object]) -> None:
    put(hands, "x", b"1\n2\n3\n")

    with pytest.raises(Wrong):
        await carry_out(ReadFile(), input, hands)
