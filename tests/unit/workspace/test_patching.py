"""A diff is applied where it fits, whole or not at all, whatever a model got wrong around it."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sidecar.workspace import patching
from sidecar.workspace.diff import unified_diff
from sidecar.workspace.patching import HunkPosition, apply
from sidecar.workspace.text import NotText, decode_text
from sidecar.workspace.unidiff import FilePatch, Hunk, PatchFailed, parse_patch


def patched(before: str | bytes, patch: str) -> bytes:
    file = decode_text(before.encode() if isinstance(before, str) else before)
    (one,) = parse_patch(patch)
    return file.encoded(apply(file, tuple(one.hunks)).text)


def places(before: str, patch: str) -> tuple[HunkPosition, ...]:
    return apply(decode_text(before.encode()), tuple(parse_patch(patch)[0].hunks)).places


def problem(before: str, patch: str) -> str:
    with pytest.raises(PatchFailed) as failed:
        patched(before, patch)
    return str(failed.value)


NUMBERED = "".join(f"{n}\n" for n in range(1, 31))


def test_a_hunk_goes_to_its_line() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -2,3 +2,3 @@\n 2\n-3\n+three\n 4\n"

    assert patched(NUMBERED, patch) == NUMBERED.replace("\n3\n", "\nthree\n").encode()
    assert places(NUMBERED, patch) == (HunkPosition(3, 0),)


@pytest.mark.parametrize("head", ["@@ -9,3 +9,3 @@", "@@ -9 +9 @@", "@@ -9,7 +9,1 @@ def x", "@@ @@", "@@"])
def test_wrong_numbers_and_counts_do_no_harm(head: str) -> None:
    patch = f"{head}\n 2\n-3\n+three\n 4\n"

    assert patched(NUMBERED, patch) == NUMBERED.replace("\n3\n", "\nthree\n").encode()


def test_of_several_places_the_nearest_to_the_stated_line_is_taken() -> None:
    before = "x\ny\n\n\n\n\n\nx\ny\n"

    assert places(before, "@@ -6,2 +6,2 @@\n-x\n+z\n y\n") == (HunkPosition(8, 2),)
    assert places(before, "@@ -3,2 +3,2 @@\n-x\n+z\n y\n") == (HunkPosition(1, -2),)


def test_two_places_that_are_equally_near_are_an_error() -> None:
    assert "equally well at lines 1, 5" in problem("x\ny\n\n\nx\ny\n", "@@ -3,2 +3,2 @@\n-x\n+z\n y\n")
    assert "equally well at lines 1, 5" in problem("x\ny\n\n\nx\ny\n", "@@ @@\n-x\n+z\n y\n")


@pytest.mark.parametrize(
    ("context", "fits"),
    [
        (["?", "2", "3", "5", "6", "7"], True),
        (["?", "?", "3", "5", "6", "7"], True),
        (["1", "2", "3", "5", "6", "?"], True),
        (["?", "?", "3", "5", "?", "?"], True),
        (["1", "2", "?", "5", "6", "7"], False),
        (["?", "?", "?", "5", "6", "7"], False),
    ],
)
def test_two_lines_of_context_may_differ_at_either_end(context: list[str], fits: bool) -> None:
    lines = [f" {line}" for line in context[:3]] + ["-4", "+four"] + [f" {line}" for line in context[3:]]
    patch = "@@ -1,7 +1,7 @@\n" + "\n".join(lines) + "\n"

    if fits:
        assert patched(NUMBERED, patch) == NUMBERED.replace("\n4\n", "\nfour\n").encode()
    else:
        assert "Hunk 1 does not fit" in problem(NUMBERED, patch)


def test_an_insertion_keeps_a_line_that_tells_its_place() -> None:
    assert "Hunk 1 does not fit" in problem(NUMBERED, "@@ -4,2 +4,3 @@\n ?\n+new\n !\n")
    assert "position is unknown" in problem(NUMBERED, "@@ @@\n+new\n")
    assert patched("a\nb\n", "@@ -1,0 +2 @@\n+new\n") == b"a\nnew\nb\n"


def test_a_hunk_that_does_not_fit_is_named_with_what_stands_there() -> None:
    before = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
    patch = (
        "@@ -1 +1 @@\n-def one():\n+def uno():\n@@ -4,2 +4,2 @@\n def two():\n-    return 3\n+    return 4\n"
    )

    assert problem(before, patch) == (
        "Hunk 2 does not fit at line 4 or anywhere else. It expects:\n  def two():\n      return 3\n"
        "The nearest is, from line 5:\n  def two():\n      return 2"
    )
    assert "Nothing in the file is similar" in problem("a\n", "@@ -1 +1 @@\n-something else\n+x\n")


def test_hunks_may_come_in_any_order_and_share_context() -> None:
    patch = (
        "@@ -20,3 +20,3 @@\n 20\n-21\n+b\n 22\n@@ -2,3 +2,3 @@\n 2\n-3\n+a\n 4\n@@ -4,2 +4,2 @@\n 4\n-5\n+c\n"
    )
    expected = NUMBERED.replace("\n3\n", "\na\n").replace("\n5\n", "\nc\n").replace("\n21\n", "\nb\n")

    assert patched(NUMBERED, patch) == expected.encode()


def test_the_same_hunk_twice_changes_two_places() -> None:
    assert patched("x\n\nx\n", "@@ -1 +1 @@\n-x\n+y\n@@ -1 +1 @@\n-x\n+y\n") == b"y\n\ny\n"
    assert "Hunk 2" in problem("x\n", "@@ -1 +1 @@\n-x\n+y\n@@ -1 +1 @@\n-x\n+y\n")


def test_a_removed_line_with_dashes_is_no_header() -> None:
    two = "@@ -1 +1 @@\n--- a\n+++ b\n@@ -2 +2 @@\n-keep\n+kept\n"

    assert patched("-- a\nkeep\n", "@@ -1,2 +1,2 @@\n--- a\n+++ b\n keep\n") == b"++ b\nkeep\n"
    assert patched("-- a\nkeep\n", two) == b"++ b\nkept\n"


def test_two_files_are_told_apart_from_dashes() -> None:
    patch = (
        "--- a/one\n+++ b/one\n@@ -1,2 +1,2 @@\n--- x\n+++ y\n keep\n"
        "--- a/two\n+++ b/two\n@@ -1,9 +1,9 @@\n-a\n+b\n"
        "--- three\t2024-01-01\n+++ three\t2024-01-02\n@@ @@\n-c\n+d\n"
    )
    files = parse_patch(patch)

    assert [(file.old_path, len(file.hunks[0].lines)) for file in files] == [
        ("one", 3),
        ("two", 2),
        ("three", 2),
    ]


HEADERS = {
    "--- a/x\n+++ b/x\n": ("x", "x"),
    "--- x\n+++ x\n": ("x", "x"),
    "--- a/x\n+++ a/x\n": ("a/x", "a/x"),
    "--- /dev/null\n+++ b/x\n": (None, "x"),
    "--- a/x\n+++ /dev/null\n": ("x", None),
    '--- "a/q\\"\\n\\303\\274"\n+++ "b/q\\"\\n\\303\\274"\n': ('q"\nü', 'q"\nü'),
    "--- a/with space\t\n+++ b/with space\t\n": ("with space", "with space"),
    "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n": ("x", "x"),
    "Here it is:\n```diff\n--- a/x\r\n+++ b/x\n": ("x", "x"),
    "": ("", ""),
}


@pytest.mark.parametrize(("header", "names"), HEADERS.items())
def test_names_are_read_from_every_kind_of_header(header: str, names: tuple[str | None, str | None]) -> None:
    (file,) = parse_patch(f"{header}@@ -1 +1 @@\n-a\n+b\n```\n")

    assert (file.old_path, file.new_path, len(file.hunks)) == (*names, 1)


def test_empty_files_are_created_and_deleted_without_hunks() -> None:
    git = (
        "diff --git a/n b/n\nnew file mode 100644\nindex 0..e\ndiff --git a/d b/d\ndeleted file mode 100644\n"
    )

    assert parse_patch(git) == [FilePatch(None, "n"), FilePatch("d", None)]
    assert parse_patch(unified_diff("x", None, b"").text + unified_diff("y", None, b"").text) == [
        FilePatch(None, "x"),
        FilePatch(None, "y"),
    ]


@pytest.mark.parametrize(
    "patch",
    ["", "nothing", "@@ -1 +1 @@\n", "diff --git a/x b/y\nrename from x\n", "GIT binary patch\nliteral 0\n"],
)
def test_what_cannot_be_carried_out_is_said(patch: str) -> None:
    with pytest.raises(PatchFailed):
        parse_patch(patch)


def test_blank_lines_that_lost_their_space_are_context() -> None:
    assert patched("a\n\n\nb\n", "@@ -1,4 +1,4 @@\n a\n\n\n-b\n+c\n\n\n") == b"a\n\n\nc\n"
    assert patched("a\n\nb\n", "@@ @@\n a\n\n-b\n+c\n\n") == b"a\n\nc\n"


def test_a_mail_signature_is_no_line() -> None:
    assert patched("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n-- \n2.40.0\n") == b"a\nc\n"


LF = "@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n"


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", LF, b"one\r\n2\r\n2b\r\nthree\r\n"),
        (b"one\rtwo\rthree\r", LF, b"one\r2\r2b\rthree\r"),
        (b"one\r\ntwo\r\nthree\n", LF, b"one\r\n2\r\n2b\r\nthree\n"),
        (b"one\ntwo\nthree\n", LF.replace("\n", "\r\n"), b"one\n2\n2b\nthree\n"),
        (b"one\r\ntwo\r\nthree\r\n", LF.replace("\n", "\r\n"), b"one\r\n2\r\n2b\r\nthree\r\n"),
        (b"a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n", b"a\nb\r\n"),
        (b"one\ntwo\nthree", LF, b"one\n2\n2b\nthree"),
        (b"a\nb", "@@ -2 +2,2 @@\n b\n+c\n", b"a\nb\nc"),
        (b"a\nb", "@@ -2 +2 @@\n-b\n+c\n", b"a\nc"),
        (b"a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n", b"a\nc\n"),
        (b"a\n", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", b"a"),
        (b"a\r\nb", "@@ -2 +2,2 @@\n b\n+c\n", b"a\r\nb\r\nc"),
        (b"\xef\xbb\xbfa\nb\n", "@@ -1 +1 @@\n-a\n+c\n", b"\xef\xbb\xbfc\nb\n"),
        (b"\xef\xbb\xbfa\nb\n", "@@ -1 +1 @@\n-\ufeffa\n+\ufeffc\n", b"\xef\xbb\xbfc\nb\n"),
        (b"gr\xfcn\n", "@@ -1 +1 @@\n-grün\n+übel\n", b"\xfcbel\n"),
        (b"", "@@ -0,0 +1 @@\n+a\n", b"a\n"),
        (b"", "@@ @@\n+a\n", b"a\n"),
    ],
)
def test_line_ends_and_encodings_stay_those_of_the_file(before: bytes, patch: str, after: bytes) -> None:
    assert patched(before, patch) == after


PIECES = st.lists(
    st.sampled_from(["a", "b", "", "-- x", "++ y", "@@ -1 +1 @@", "\\ No", "ü", "a\rb"]), max_size=14
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    text = end.join(draw(PIECES)) + draw(st.sampled_from(["", end, "\n"]))
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8", "latin-1"])))


@pytest.mark.slow
@given(files(), files())
@settings(max_examples=400, deadline=None)
def test_our_own_diff_of_any_two_files_leads_from_one_to_the_other(before: bytes, after: bytes) -> None:
    old, new = decode_text(before), decode_text(after)
    try:
        assume(old.encoded(new.text) == after and before != after)
    except NotText:
        assume(False)
    (file,) = parse_patch(unified_diff("x", before, after).text)

    done = apply(old, tuple(file.hunks))
    assert old.encoded(done.text) == after
    assert {place.off for place in done.places} == {0}


def test_a_twin_that_always_keeps_the_file_s_line_ends_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = b"a\r\nb\r\n", b"a\nb\r\n"
    patch = unified_diff("x", before, after).text
    assert patched(before, patch) == after

    monkeypatch.setattr(patching, "_Target", Careless)
    assert patched(before, patch) != after


class Careless(patching._Target):
    """Deliberately broken: a diff that changes line ends changes nothing."""

    def apply(self, hunks: tuple[Hunk, ...]) -> patching.PatchedText:
        done = super().apply(hunks)
        return patching.PatchedText(decode_text(b"\r\n").with_ends(done.text), done.places)
