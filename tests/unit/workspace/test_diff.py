"""Diffs show what differs, byte for byte, and git takes them."""

from __future__ import annotations

import random
import shutil
import subprocess
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.workspace import diff, lines
from sidecar.workspace.diff import Diff, clip_diff, git_patch, summary, unified_diff

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def shown(before: bytes | None, after: bytes | None) -> str:
    return unified_diff("x", before, after).text.removeprefix("--- a/x\n+++ b/x\n")


def test_a_change_is_shown_with_three_lines_around() -> None:
    before = b"".join(b"%d\n" % n for n in range(1, 21))
    after = before.replace(b"9\n", b"nine\n", 1).replace(b"20\n", b"20\n21\n")

    assert unified_diff("src/a b.txt", before, after) == Diff(
        "--- a/src/a b.txt\n+++ b/src/a b.txt\n"
        "@@ -6,7 +6,7 @@\n 6\n 7\n 8\n-9\n+nine\n 10\n 11\n 12\n"
        "@@ -18,3 +18,4 @@\n 18\n 19\n 20\n+21\n",
        added=2,
        removed=1,
        binary=False,
    )


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (b"a\r\n", b"a\n", "@@ -1 +1 @@\n-a\r\n+a\n"),
        (b"a", b"a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        (b"a", b"b", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"),
        (b"", b"a\n", "@@ -0,0 +1 @@\n+a\n"),
        (b"a\n", b"", "@@ -1 +0,0 @@\n-a\n"),
        (b"\xef\xbb\xbfa\n", b"a\n", "@@ -1 +1 @@\n-\ufeffa\n+a\n"),
        (b"\xfc\n", b"\xc3\xbc\n", "@@ -1 +1 @@\n-ü\n+ü\n"),
        (b"a\x0cb\x0b\n", b"a\n", "@@ -1 +1 @@\n-a\x0cb\x0b\n+a\n"),
        ("\ufeffä\nb".encode("utf-16-le"), "\ufeffä\nc\n".encode("utf-16-le"),
         "@@ -1,2 +1,2 @@\n \ufeffä\n-b\n\\ No newline at end of file\n+c\n"),
        ("\ufeffa\n".encode("utf-16-le"), b"a\n", "@@ -1 +1 @@\n-\ufeffa\n+a\n"),
        (b"same", b"same", ""),
    ],
)  # fmt: skip
def test_nothing_that_differs_is_hidden(before: bytes, after: bytes, text: str) -> None:
    assert shown(before, after) == text


def test_created_and_deleted_files_stand_against_nothing() -> None:
    assert unified_diff("x", None, b"a\n").text == "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"
    assert unified_diff("x", b"a\n", None).text == "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    assert unified_diff("x", None, b"").text == "--- /dev/null\n+++ b/x\n"
    assert unified_diff("/else/x", b"a\n", b"b\n").text.startswith("--- /else/x\n+++ /else/x\n")


def test_names_with_control_characters_are_quoted() -> None:
    assert unified_diff('gr\u00fcn\n"x', None, b"").text == '--- /dev/null\n+++ "b/grün\\n\\"x"\n'


def test_binary_files_have_no_text() -> None:
    assert unified_diff("x", b"\0", b"a") == Diff("", 0, 0, True)
    assert unified_diff("x", None, b"\0") == Diff("", 0, 0, True)


def test_changes_are_told_in_a_few_words() -> None:
    assert [
        summary(None, b"1\n2"),
        summary(None, b"1\n"),
        summary(b"1\n2\n3\n4", None),
        summary(b"1\n2\n3\n", b"a\nb\nc\nd\ne\n"),
        summary(b"\0" * 10, b"\0" * 20),
        summary(None, b"\0"),
    ] == [
        "New file: 2 lines",
        "New file: 1 line",
        "Deleted: 4 lines",
        "-3, +5 lines",
        "Binary: 10 -> 20 bytes",
        "Binary: 0 -> 1 bytes",
    ]


LINES = st.lists(st.sampled_from([b"a", b"b", b"", b"\r", b"-- x", b"++ y", b"\xfc", b" "]), max_size=12)
TEXTS = st.builds(lambda parts, last: b"\n".join(parts) + last, LINES, st.sampled_from([b"", b"\n"]))


@given(TEXTS, TEXTS)
@settings(max_examples=300, deadline=None)
def test_what_is_between_changed_regions_is_equal(before: bytes, after: bytes) -> None:
    old, new = before.split(b"\n"), after.split(b"\n")
    at_old = at_new = 0
    for old_from, old_to, new_from, new_to in [
        *lines.changed_regions(old, new),
        (len(old), len(old), len(new), len(new)),
    ]:
        assert old[at_old:old_from] == new[at_new:new_from]
        at_old, at_new = old_to, new_to


class Repository:
    """A fresh folder for each patch, in which git applies it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()

    def apply(self, path: str, before: bytes | None, patch: bytes, *flags: str) -> bytes | None:
        folder = self._folder / str(next(self._numbers))
        file = folder / path
        file.parent.mkdir(parents=True)
        if before is not None:
            file.write_bytes(before)
        command = ["git", "apply", "--whitespace=nowarn", *flags, "-"]
        env = {"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CEILING_DIRECTORIES": str(self._folder)}
        env |= {"HOME": str(self._folder), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        done = subprocess.run(command, cwd=folder, input=patch, env=env, capture_output=True)
        assert done.returncode == 0, done.stderr.decode() + patch.decode(errors="replace")
        return file.read_bytes() if file.exists() else None


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("git"))


CONTENT = st.one_of(st.none(), st.binary(max_size=200), TEXTS, TEXTS.map(lambda text: text + b"\0"))


@needs_git
@given(before=CONTENT, after=CONTENT)
@settings(max_examples=120, deadline=None)
def test_git_applies_a_patch_to_the_same_bytes_there_and_back(
    repository: Repository, before: bytes | None, after: bytes | None
) -> None:
    patch = git_patch("x", before, after)
    if before == after:
        assert patch == b""
        return
    assert repository.apply("x", before, patch) == after
    assert repository.apply("x", after, patch, "-R") == before


NAMES = [
    "a b/c d.txt",
    'quo"te',
    "back\\slash",
    "grün.txt",
    "new\nline",
    "tab\there",
    " lead",
    "a/b b/a",
    "\x7f\x01",
]


@needs_git
@pytest.mark.parametrize("name", [*NAMES, "bytes\udcff"])
@pytest.mark.parametrize("data", [b"a\n", b"\0"])
def test_git_finds_files_of_any_name(repository: Repository, name: str, data: bytes) -> None:
    made, changed = git_patch(name, None, data), git_patch(name, data, data + b"b")
    deleted = git_patch(name, data, None)

    assert repository.apply(name, None, made) == data
    assert repository.apply(name, data, changed) == data + b"b"
    assert repository.apply(name, data, deleted) is None
    assert repository.apply(name, None, git_patch(name, None, b"")) == b""


def split_as_text(data: bytes) -> list[bytes]:
    """The mutant: lines that end at `\\r` too, as `splitlines` has them."""
    return data.splitlines(keepends=True)


@needs_git
def test_a_twin_that_ends_lines_elsewhere_is_caught(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff, "_split", split_as_text)
    patch = git_patch("x", b"a\rb\n", b"a\rc\n")

    with pytest.raises(AssertionError):
        repository.apply("x", b"a\rb\n", patch)


@needs_git
def test_large_binary_files_go_through_git(repository: Repository) -> None:
    draw = random.Random(3)
    before, after = draw.randbytes(70_000), draw.randbytes(50_001)

    assert repository.apply("x", before, git_patch("x", before, after)) == after


def test_the_mode_says_whether_a_file_may_be_run() -> None:
    assert b"new file mode 100755\n" in git_patch("x", None, b"a", 0o700)
    assert b"deleted file mode 100644\n" in git_patch("x", b"a", None, 0o640)
    assert git_patch("x", b"a", b"b", 0o755).splitlines()[1].endswith(b" 100755")


def patch_of_hunks(number: int) -> str:
    before = b"".join(b"line %d\n" % n for n in range(number * 20))
    after = b"".join(b"line %d%s\n" % (n, b"!" if n % 20 == 10 else b"") for n in range(number * 20))
    return unified_diff("x", before, after).text


def test_a_long_diff_is_cut_between_hunks_and_counts_the_rest() -> None:
    text = patch_of_hunks(5)
    cut, hidden = clip_diff(text, 400)

    assert hidden
    assert len(cut.encode()) <= 400
    kept, marker = cut.rsplit("… ", 1)
    assert text.startswith(kept)
    assert text[len(kept) :].startswith("@@ ")
    assert marker == "16 lines of 2 hunks hidden (-2, +2)\n"
    assert clip_diff(text, len(text)) == (text, False)


def test_a_removed_line_with_dashes_is_no_header() -> None:
    text = unified_diff("x", b"-- a\n" * 20, b"++ b\n" * 20).text + patch_of_hunks(4)
    cut, _ = clip_diff(text, 400)

    assert cut.endswith("… 32 lines of 4 hunks hidden (-4, +4)\n")
    assert cut.count("--- -- a") == 0
    assert cut.count("--- a\n") == 20


def test_a_first_hunk_that_is_too_long_becomes_a_shorter_one() -> None:
    text = unified_diff("x", None, b"".join(b"line %d\n" % n for n in range(1000))).text
    cut, hidden = clip_diff(text, 300)

    assert hidden
    assert cut.startswith("--- /dev/null\n+++ b/x\n@@ -0,0 +1,")
    shown = sum(line.startswith("+line") for line in cut.splitlines())
    assert f"@@ -0,0 +1,{shown} @@" in cut
    assert cut.endswith(f"… {1000 - shown} lines of 1 hunk hidden (-0, +{1000 - shown})\n")
    assert len(cut.encode()) <= 300


@given(TEXTS, TEXTS, st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_what_is_cut_has_its_bound_and_counts_every_line(before: bytes, after: bytes, max_bytes: int) -> None:
    found = unified_diff("x", before, after)
    cut, hidden = clip_diff(found.text, max_bytes)

    assert len(cut.encode()) <= max(max_bytes, diff._MARKER_BYTES)
    if hidden:
        body, marker = cut.rsplit("… ", 1)
        numbers = marker.rsplit("(-", 1)[1].rstrip(")\n").split(", +")
        left = list(diff._pieces(body))
        shown = [sum(line[0] == sign for piece in left for line in piece.body) for sign in "-+"]
        assert [int(numbers[0]) + shown[0], int(numbers[1]) + shown[1]] == [found.removed, found.added]
