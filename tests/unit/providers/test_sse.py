"""Lines and events come out the same however the network cut the bytes; and a stream without end is given up."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.providers.http import sse
from sidecar.providers.http.sse import LineReader, SseEvent, SseReader, TooLong

PIECES = [b"data: ", b"data:", b"data", b"event: x", b":", b"id: 1", b"retry: 5", b" ", b"{}"]
ENDS = [b"\r", b"\n", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"]
ODD = ["é漢🎉".encode(), b"\xef\xbb\xbf", b"\xff", b"\x85\x0b\x0c"]
STREAMS = st.lists(st.sampled_from([*PIECES, *ENDS, *ODD]) | st.binary(max_size=4), max_size=40).map(b"".join)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    at = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(at)]


def events(pieces: list[bytes]) -> list[SseEvent]:
    reader = SseReader()
    return [event for piece in pieces for event in reader.feed(piece)] + reader.close()


def lines(pieces: list[bytes]) -> list[bytes]:
    reader = LineReader()
    return [line for piece in pieces for line in reader.feed(piece)] + reader.close()


@given(STREAMS, st.lists(st.integers(0, 500), max_size=20))
@example(b"a\r\n\nb", [2, 3])
def test_however_it_is_cut_the_lines_are_the_same(stream: bytes, places: list[int]) -> None:
    expected = re.split(rb"\r\n|\r|\n", stream)
    if not expected[-1]:
        expected.pop()
    assert lines(cut(stream, places)) == lines([stream[at : at + 1] for at in range(len(stream))]) == expected


@given(STREAMS, st.lists(st.integers(0, 500), max_size=20))
@example(b"data: 1\r\n\ndata: 2\n\n", [8, 9, 10])
def test_however_it_is_cut_the_events_are_the_same(stream: bytes, places: list[int]) -> None:
    single = [stream[at : at + 1] for at in range(len(stream))]
    assert events(cut(stream, places)) == events([stream]) == events(single)


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1), st.sampled_from([b"\n", b"\r", b"\r\n"]))
def test_what_was_written_is_read(messages: list[bytes], end: bytes) -> None:
    whole = [re.sub(rb"[\r\n]", b".", message) for message in messages]
    stream = b"".join(b"event: said" + end + b"data: " + data + end + end for data in whole)
    assert events([stream]) == [SseEvent("said", data) for data in whole]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: 1\ndata: 2\n\n", [("", b"1\n2")]),
        (b"data:  two blanks\n\n", [("", b" two blanks")]),
        (b"data\n\n", [("", b"")]),
        (b": a comment\n\ndata: 1\n\n", [("", b"1")]),
        (b"id: 7\nretry: 10\n\n", []),
        (b"event: lost\n\ndata: 1\n\n", [("", b"1")]),
        (b"\xef\xbb\xbfdata: 1\n\n", [("", b"1")]),
        (b"data: 1\n\n\xef\xbb\xbfdata: 2\n\n", [("", b"1")]),
        (b"data: without a blank line at its end", [("", b"without a blank line at its end")]),
        (b"data: a:b\nunknown: c\n\n", [("", b"a:b")]),
        (b"\n\n\r\r\n\n", []),
    ],
)
def test_fields_by_the_standard(stream: bytes, expected: list[tuple[str, bytes]]) -> None:
    assert events([stream]) == [SseEvent(*event) for event in expected]


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    reader = LineReader()
    assert reader.feed(b"x" * 600) == []
    with pytest.raises(TooLong):
        reader.feed(b"x" * 600)


def test_an_event_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    reader = SseReader()
    reader.feed(b"data: x\n" * 100)
    with pytest.raises(TooLong):
        reader.feed(b"data: x\n" * 100)


def test_an_event_of_empty_lines_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    reader = SseReader()
    reader.feed(b"data\n" * 150)
    with pytest.raises(TooLong):
        reader.feed(b"data\n" * 150)


def test_a_long_stream_of_short_events_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    reader = SseReader()
    assert sum(len(reader.feed(b"data: 0123456789\n\n")) for _ in range(1000)) == 1000
