"""Each line of an import is decoded within limits, and what is wrong with it has a reason, a limit and a line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.chat.actions import history_import, import_lines
from sidecar.chat.actions.history_import import ImportSurvey
from sidecar.chat.actions.import_lines import (
    MAX_DEPTH,
    Blob,
    ExportHeader,
    OpenFilesLine,
    Plain,
    WrongLine,
    decode,
)
from sidecar.model.content import Turn
from sidecar.model.limits import MAX_TEXT_BYTES


def turn(**more: Any) -> dict[str, Any]:
    base = {
        "id": "t1",
        "promptId": "p1",
        "items": [],
        "status": "completed",
        "model": "m",
        "engine": "e",
        "startedAt": 1,
    }
    return {"turn": {**base, **more}}


def item(**more: Any) -> dict[str, Any]:
    return {"id": "i1", "turnId": "t1", "type": "message", "status": "completed", "startedAt": 1, **more}


def nested(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + closing * levels


def line(value: Any) -> bytes:
    return json.dumps(value).encode()


def wrong(*lines: bytes) -> WrongLine:
    survey = ImportSurvey()
    with pytest.raises(WrongLine) as caught:  # noqa: PT012  (any of the lines may be the wrong one)
        for each in lines:
            survey.take(decode(each))
    return caught.value


def with_input(text: str) -> bytes:
    """A tool call whose input is this JSON text."""
    return line(turn(items=[item(type="tool", input="HERE")])).replace(b'"HERE"', text.encode())


NESTED = {
    "100,000 lists": nested(100_000).encode(),
    "100,000 objects": (b'{"a":' * 100_000) + b"1" + b"}" * 100_000,
    "in the input of a tool": with_input(nested(MAX_DEPTH + 1)),
    "in a configuration": b'{"sidecar":"chat","version":1,"config":{"meta":' + nested(5000).encode() + b"}}",
    "behind a string with brackets": b'{"role":"user","text":"]]]}}}","x":' + nested(1000).encode() + b"}",
    "without an end": b'{"role":"user","text":"x","ts":' + b"[" * 200_000,
    "lists and objects in turn": with_input('[{"a":' * 60 + "1" + "}]" * 60),
    "in the place of open files": b'{"openFiles":' + nested(500).encode() + b"}",
}


@pytest.mark.parametrize("case", NESTED)
def test_what_is_nested_too_deep_is_refused_by_that_reason(case: str) -> None:
    refused = wrong(NESTED[case])
    assert (refused.reason, refused.limit) == ("nesting", MAX_DEPTH)


@pytest.mark.parametrize(
    "fine",
    [
        with_input(nested(MAX_DEPTH - 10)),
        with_input(f"[{','.join(['[]'] * 5000)}]"),
        line({"role": "user", "text": "[" * 100_000}),
        line({"role": "user", "text": '\\"[{' * 10_000}),
        line(turn(items=[item(text="{" * 5000)])),
    ],
)
def test_brackets_in_text_and_beside_each_other_are_no_nesting(fine: bytes) -> None:
    decode(fine)


DUPLICATES = {
    "a turn": (line(turn()), line(turn(promptId="p2"))),
    "a prompt": (line(turn()), line(turn(id="t2"))),
    "an item of a turn": (line(turn(items=[item(), item()])),),
    "a turn far away": (line(turn()), line({"role": "user", "text": "x"}), line(turn(promptId="p9"))),
}


@pytest.mark.parametrize("case", DUPLICATES)
def test_an_id_that_is_there_twice_is_refused_in_our_words(case: str) -> None:
    refused = wrong(*DUPLICATES[case])
    assert refused.reason == "duplicate"
    assert "UNIQUE" not in str(refused)


LONG = {
    "a line": b'{"role":"user","text":"' + b"x" * import_lines.MAX_LINE_BYTES + b'"}',
    "a text": line({"role": "user", "text": "x" * (MAX_TEXT_BYTES + 1)}),
    "a text by its bytes": line({"role": "user", "text": "\u6f22" * (MAX_TEXT_BYTES // 3 + 1)}),
    "the text of an item": line(turn(items=[item(text="y" * (MAX_TEXT_BYTES + 1))])),
    "a block": line(turn(items=[item(content=[{"type": "text", "text": "z" * (MAX_TEXT_BYTES + 1)}])])),
    "an id": line({"role": "user", "text": "x", "id": "i" * 600}),
    "the id of a turn": line(turn(id="t" * 600)),
}


@pytest.mark.parametrize("case", LONG)
def test_what_is_too_long_is_refused_with_its_limit(case: str) -> None:
    refused = wrong(LONG[case])
    assert refused.reason == "too_long"
    assert refused.limit


MANY: dict[str, tuple[str, list[bytes]]] = {
    "MAX_TURNS": ("turns", [line({"role": "user", "text": "x"})] * 4),
    "MAX_ITEMS": (
        "items",
        [line({"role": "user", "text": "x"}), *[line({"role": "assistant", "text": "y"})] * 4],
    ),
    "MAX_BLOBS": (
        "blobs",
        [
            line({"blob": {"data": data, "mimeType": "text/plain"}})
            for data in ("YQ==", "Yg==", "Yw==", "ZA==")
        ],
    ),
}


@pytest.mark.parametrize("name", MANY)
def test_what_is_too_many_is_refused_with_its_limit(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(history_import, name, 3)
    what, lines = MANY[name]
    refused = wrong(*lines)
    assert (refused.reason, refused.limit, what in str(refused)) == ("too_many", 3, True)


def test_a_turn_with_too_many_items_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_lines, "MAX_ITEMS", 3)
    assert wrong(line(turn(items=[item(id=str(n)) for n in range(4)]))).reason == "too_many"


@pytest.mark.parametrize("ts", ["never", 1e300, -1e300, float("1e25"), "9999999-01-01"])
def test_a_time_that_is_none_is_refused(ts: Any) -> None:
    assert wrong(line({"role": "user", "text": "x", "ts": ts})).reason == "not_understood"


def test_each_shape_is_known() -> None:
    lines = [
        {"role": "user", "text": "x"},
        turn(),
        {"sidecar": "chat", "version": 1, "title": "T"},
        {"blob": {"data": "YQ==", "mimeType": "text/plain"}},
        {"openFiles": [{"path": "a"}]},
    ]
    assert [type(decode(line(each))) for each in lines] == [Plain, Turn, ExportHeader, Blob, OpenFilesLine]


def test_the_refusal_names_the_field_the_line_and_the_limit() -> None:
    refusal = wrong(LONG["a text"]).refusal("path", 7)
    assert refusal.name == "invalid_params"
    assert refusal.params == {"field": "path", "line": 7, "limit": MAX_TEXT_BYTES}
