"""Answers as text: types, encodings, JSON by key path."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.tools.web.keypath import PathNotFound, format_value, select
from sidecar.tools.web.reaching import Unreadable
from sidecar.tools.web.reading import PageText, check_type, read_response

URL = "https://example.org/"


def of(body: bytes, type: str) -> PageText:
    return read_response(body, {"content-type": type}, URL)


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        ("text/html", "html"), ("TEXT/HTML; Charset=UTF-8", "html"), ("application/xhtml+xml", "html"),
        ("text/plain", "text"),
        ("text/markdown", "text"), ("text/csv", "text"), ("application/xml", "text"), ("application/rss+xml", "text"),
        ("application/json", "json"), ("application/problem+json", "json"), ("application/vnd.api+json; v=1", "json"),
        ("application/yaml", "text"), ("application/x-ndjson", "text"), ("application/javascript", "text"),
        ("", "text"), ("application/octet-stream", "text"),
    ],
)  # fmt: skip
def test_a_type_says_how_it_is_read(type: str, kind: str) -> None:
    check_type({"content-type": type})
    assert of(b"1", type).kind == kind


@pytest.mark.parametrize(
    "type",
    ["application/pdf", "image/svg", "image/png", "audio/ogg", "application/zip", "font/woff2", "nonsense"],
)
def test_what_is_no_text_is_refused(type: str) -> None:
    with pytest.raises(Unreadable, match="only HTML, Markdown, JSON and other text"):
        check_type({"content-type": type})


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<!DOCTYPE html><p>x", "html"), (b" <!-- c --><html>", "html"), (b'{"a":1}', "json"), (b"\n[1]", "json"),
        (b"x", "text"),
    ],
)  # fmt: skip
def test_what_says_no_type_is_looked_at(body: bytes, kind: str) -> None:
    assert read_response(body, {}, URL).kind == kind
    assert of(body, "text/plain").kind == "text"


@pytest.mark.parametrize(
    ("body", "type", "expected"),
    [
        ("grün €".encode(), "text/plain", "grün €"),
        ("grün €".encode("cp1252"), "text/plain", "grün €"),
        ("grün €".encode("cp1252"), "text/plain; charset=ISO-8859-1", "grün €"),
        ("привет".encode("cp1251"), "text/plain; charset=windows-1251", "привет"),
        ("привет".encode("koi8-r"), 'text/plain; charset="koi8-r"', "привет"),
        ("日本語".encode("shift_jis"), "text/plain; charset=Shift_JIS", "日本語"),
        ("中文".encode("gb18030"), "text/plain; charset=gb2312", "中文"),
        ("grün".encode("utf-16"), "text/plain", "grün"),
        (b"\xef\xbb\xbfgr\xc3\xbcn", "text/plain; charset=latin1", "grün"),
        ("grün".encode(), "text/plain; charset=klingon", "grün"),
        (b"a\\nb", "text/plain; charset=unicode_escape", "a\\nb"),
        (b"+ADw-script+AD4-", "text/plain; charset=utf-7", "+ADw-script+AD4-"),
        ("grün".encode("cp1252"), "text/plain; charset=utf-8", "gr�n"),
        (b"<meta charset=windows-1252><p>gr\xfcn", "text/html", "grün"),
        (b'<meta http-equiv=x content="text/html; charset=cp1251"><p>\xef', "text/html", "п"),
        ("grün ist die Mühle".encode() + b"\xc3", "text/plain", "grün ist die Mühle�"),
        (b"one\r\ntwo", "text/plain", "one\ntwo"),
    ],
)
def test_every_encoding_of_the_web_is_read_and_none_fails(body: bytes, type: str, expected: str) -> None:
    assert of(body, type).text == expected


DOCUMENT: dict[str, Any] = {
    "items": [{"name": "a", "tags": [1, 2], "a key": {"x": True}}, {"name": "b"}],
    "empty": None,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("items[0].name", "a"), (".items[1].name", "b"), ("$.items[-1].name", "b"), ("items[0].tags[1]", 2),
        ('items[0]["a key"].x', True), ("items[0]['a key']", {"x": True}), ("items[*].name", ["a", "b"]),
        ("items[].name", ["a", "b"]), ("items[*].tags", [[1, 2]]), ("empty", None), ("", DOCUMENT),
        (".", DOCUMENT), ("$", DOCUMENT),
        ("items[0].tags[*]", [1, 2]), ("[*]", [DOCUMENT["items"], None]),
    ],
)  # fmt: skip
def test_a_part_of_a_document_is_found_by_its_path(path: str, found: object) -> None:
    assert select(DOCUMENT, path) == found


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nme", "the document has no 'nme'. It has: items, empty"),
        ("items.name", "`items` is a list of 2; write [0] or [*] before .name"),
        ("items[2]", "`items` has 2 entries, so there is no [2]"),
        ("items[0].name.x", "`items[0].name` is text, so it has no 'x'"),
        ("empty[*]", "`empty` is null, which has no entries"),
        ("items[*].nme", "`items[*]` has no 'nme'. It has: name"),
        ("items[", "cannot be parsed; write it as in items[0].name"),
        ("items[a]", "cannot be parsed"),
        ("a..b", "cannot be parsed"),
        ("a" + "[0]" * 70, "cannot be parsed"),
    ],
)
def test_a_wrong_path_says_what_there_is(path: str, words: str) -> None:
    with pytest.raises(PathNotFound) as error:
        select(DOCUMENT, path)
    assert words in str(error.value)


def test_long_values_get_lines_of_their_own() -> None:
    assert format_value({"a": 1}) == '{"a":1}'
    assert format_value("text\nas it is") == "text\nas it is"
    document = {"a": list(range(40)), "b": [{"c": "x" * 60}, {"d": "y" * 60}]}
    assert format_value(document).split("\n") == [
        "{",
        ' "a": [',
        "  " + " ".join(f"{number}," for number in range(27)),
        "  " + ", ".join(map(str, range(27, 40))),
        " ],",
        ' "b": [',
        f'  {{"c":"{"x" * 60}"}},',
        f'  {{"d":"{"y" * 60}"}}',
        " ]",
        "}",
    ]


def test_a_deep_document_is_not_all_indentation() -> None:
    deep: list[Any] = ["x" * 50] * 20_000
    for _ in range(500):
        deep = [deep]
    assert len(format_value(deep)) < 1_200_000
