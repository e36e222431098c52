"""A file's bytes become text and the very same bytes again."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidecar.workspace.text import NotText, TextFile, decode_text, split_lines

FILES = {
    b"": TextFile(""),
    b"one\ntwo\n": TextFile("one\ntwo\n"),
    b"one\r\ntwo": TextFile("one\r\ntwo", newline="\r\n"),
    b"one\rtwo\r": TextFile("one\rtwo\r", newline="\r"),
    b"one\r\ntwo\n": TextFile("one\r\ntwo\n", newline=None),
    b"one\n\rtwo": TextFile("one\n\rtwo", newline=None),
    b"\xef\xbb\xbf": TextFile("", bom=b"\xef\xbb\xbf"),
    b"\xef\xbb\xbfgr\xc3\xbcn\n": TextFile("grün\n", bom=b"\xef\xbb\xbf"),
    b"\xff\xfea\0\r\0\n\0": TextFile("a\r\n", "utf-16-le", b"\xff\xfe", "\r\n"),
    b"\xfe\xff\0a\0\n": TextFile("a\n", "utf-16-be", b"\xfe\xff"),
    b"5 \x80\n": TextFile("5 €\n", "cp1252"),
    b"gr\xfcn \x81": TextFile("grün \x81", "latin-1"),
    b"\xff\xfeodd": TextFile("ÿþodd", "cp1252"),
}


@pytest.mark.parametrize(("data", "file"), FILES.items())
def test_a_file_is_read_by_its_own_encoding_and_line_ends(data: bytes, file: TextFile) -> None:
    assert decode_text(data) == file
    assert file.encoded(file.text) == data
    assert file.encoded(file.with_ends(file.plain)) == data


@given(st.one_of(st.binary(max_size=60), st.text("a\r\n\0é€", max_size=30).map(str.encode)))
@example(b"\xff\xfe\x00\xd8")
@example(b"\xef\xbb\xbf\xef\xbb\xbf")
@settings(max_examples=400, deadline=None)
def test_any_bytes_are_refused_or_come_back_the_same(data: bytes) -> None:
    try:
        file = decode_text(data)
    except NotText:
        assert b"\0" in data
        return
    assert file.encoded(file.text) == data
    assert file.encoded(file.with_ends(file.plain)) == data
    assert "".join(split_lines(file.plain)) == file.plain


@pytest.mark.parametrize("data", [b"a\0b", b"\0", b"\xff\xfe\0\0a\0\0\0", b"\x7fELF\x02\0\xff"])
def test_binary_files_are_no_text(data: bytes) -> None:
    with pytest.raises(NotText, match="not a text file"):
        decode_text(data)


@pytest.mark.parametrize(
    ("data", "text", "words"),
    [
        (b"gr\xfcn", "日", "Windows-1252"),
        (b"gr\xfcn\x81", "€", "ISO 8859-1"),
        (b"plain", "\ud800", "UTF-8"),
        (b"plain", "a\0b", "NUL"),
    ],
)
def test_text_that_the_encoding_cannot_hold_is_refused_by_name(data: bytes, text: str, words: str) -> None:
    with pytest.raises(NotText, match=words):
        decode_text(data).encoded(text)


def test_new_lines_get_the_line_ends_of_the_file() -> None:
    assert decode_text(b"a\r\nb\r\n").with_ends("x\ny\r\n") == "x\r\ny\r\n"
    assert decode_text(b"a\rb").with_ends("x\ny") == "x\ry"
    assert decode_text(b"a\nb\r\n").with_ends("x\ny\r\n") == "x\ny\r\n"


def test_only_a_line_feed_ends_a_line() -> None:
    assert split_lines("a\x0bb\x0cc\u2028d\x85e\nf") == ["a\x0bb\x0cc\u2028d\x85e\n", "f"]
    assert split_lines("") == []
