"""Properties of the framing: what goes in comes out, however the bytes are cut."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sidecar_protocol import framing as framing_module
from sidecar_protocol.framing import MAX_HEADER_BYTES, Deframer, Frame, Oversized, encode
from sidecar_protocol.jsonrpc import parse

FRAMINGS = ["lines", "headers"]

_texts = st.text(max_size=40)
_bodies = st.dictionaries(st.sampled_from(["id", "method", "text"]), _texts).map(
    lambda value: repr(value).encode("utf-8", "replace")
)
"""Bodies that begin with a brace and hold no line break, as one message a line demands."""


def cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    """The stream in pieces, cut at `places`."""
    marks = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[start:end] for start, end in pairwise(marks)]


def read(chunks: Iterable[bytes], deframer: Deframer) -> list[Frame]:
    frames = [frame for chunk in chunks for frame in deframer.feed(chunk)]
    return frames + deframer.end()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framing", FRAMINGS)
@given(bodies=st.lists(_bodies, min_size=1, max_size=6), places=st.lists(st.integers(0, 10_000), max_size=8))
def test_any_cut_of_any_messages_gives_the_same_messages(
    framing: str, bodies: list[bytes], places: list[int]
) -> None:
    stream = b"".join(encode(body, framing) for body in bodies)

    assert read(cut(stream, places), Deframer()) == bodies


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_cut_between_any_two_bytes_changes_nothing(framing: str) -> None:
    stream = encode('{"text":"чат 🙂"}'.encode(), framing) * 2

    for place in range(len(stream) + 1):
        assert read(cut(stream, [place]), Deframer()) == ['{"text":"чат 🙂"}'.encode()] * 2


@pytest.mark.parametrize("framing", FRAMINGS)
@given(
    sizes=st.lists(st.sampled_from([8, 64, 65, 200]), min_size=1, max_size=5),
    places=st.lists(st.integers(0, 10_000), max_size=8),
)
def test_a_frame_over_the_limit_is_skipped_and_reported_with_its_size(
    framing: str, sizes: list[int], places: list[int]
) -> None:
    bodies = [b"{" + b"x" * (size - 2) + b"}" for size in sizes]
    stream = b"".join(encode(body, framing) for body in bodies)

    expected: list[Frame] = [
        body if len(body) <= 64 else Oversized(len(body), "too_large") for body in bodies
    ]
    assert read(cut(stream, places), Deframer(max_bytes=64)) == expected


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_any_bytes_are_read_without_an_exception(stream: bytes, places: list[int]) -> None:
    read(cut(stream, places), Deframer(max_bytes=64))


def test_crlf_a_byte_order_mark_and_blank_lines_are_accepted() -> None:
    stream = b"\xef\xbb\xbf\r\n  \r\n{1}\r\n\r\n{2}\n"

    for place in range(len(stream) + 1):
        assert read(cut(stream, [place]), Deframer()) == [b"{1}", b"{2}"]


def test_a_last_line_without_its_newline_counts() -> None:
    assert read([b"{1}\n{2}"], Deframer()) == [b"{1}", b"{2}"]


@pytest.mark.parametrize(
    ("first", "framing"),
    [
        (b'{"a":1}\n', "lines"),
        (b"[]\n", "lines"),
        (b"nonsense\n", "lines"),
        (b"con\n", "lines"),
        (b"Content-Length: 2\r\n\r\n{}", "headers"),
        (b"CONTENT-TYPE: x\r\ncontent-length: 2\r\n\r\n{}", "headers"),
        (b"\r\n content-length:2\n\n{}", "headers"),
    ],
)
def test_the_first_bytes_decide_the_framing(first: bytes, framing: str) -> None:
    deframer = Deframer()
    deframer.feed(first)

    assert deframer.framing == framing


@pytest.mark.parametrize("length", [b"-1", b"ten", b"", b"9" * 40])
def test_a_header_block_without_a_usable_length_is_reported_and_the_next_message_read(length: bytes) -> None:
    block = b"Content-Length: " + length

    assert read([block + b"\r\n\r\n" + encode(b"{}", "headers")], Deframer("headers")) == [
        Oversized(len(block), "bad_header"),
        b"{}",
    ]


def test_headers_that_never_end_are_not_kept_for_ever() -> None:
    deframer = Deframer("headers")
    frames = deframer.feed(b"x" * (MAX_HEADER_BYTES + 1))

    assert frames == [Oversized(MAX_HEADER_BYTES + 1, "bad_header")]
    assert deframer.feed(b"\r\n\r\n" + encode(b"{}", "headers"))[-1] == b"{}"


def test_a_frame_over_the_limit_that_never_ends_is_reported_at_the_end() -> None:
    assert read([b"{" + b"x" * 99], Deframer(max_bytes=64)) == [Oversized(100, "too_large")]


class Hungry(bytearray):
    """A buffer that there is no memory for, once."""

    def __iadd__(self, data: object) -> Hungry:
        self.__class__ = Fed  # type: ignore[assignment]
        raise MemoryError


class Fed(bytearray):
    pass


@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_a_frame_that_there_is_no_memory_for_is_skipped_and_the_next_is_read(framing: str) -> None:
    first, second = encode(b'{"id": 1, "text": "' + b"x" * 90 + b'"}', framing), encode(b'{"id": 2}', framing)
    deframer = Deframer(framing)
    assert deframer.feed(first[:60]) == []
    deframer._buffer = Hungry(deframer._buffer)
    found = deframer.feed(first[60:] + second)
    assert [frame.reason if isinstance(frame, Oversized) else frame for frame in found] == [
        "no_memory",
        b'{"id": 2}',
    ]


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("more", [False, True])
def test_a_frame_that_cannot_be_copied_is_taken_as_it_is(
    framing: str, more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy(data: memoryview) -> bytes:
        if len(data) > 80:
            raise MemoryError
        return bytes(data)

    body = b'{"jsonrpc": "2.0", "method": "ping", "id": "' + b"x" * 90 + b'"}'
    deframer = Deframer(framing)
    assert deframer.feed(encode(b"{}", framing)) == [b"{}"]
    monkeypatch.setattr(framing_module, "bytes", copy, raising=False)
    found = deframer.feed(encode(body, framing) + (encode(b'{"id": 2}', framing) if more else b""))
    if more:
        assert found == [Oversized(len(body), "no_memory"), b'{"id": 2}']
    else:
        assert [parse(frame) for frame in found] == [parse(body)]
    assert deframer.feed(encode(b'{"id": 3}', framing)) == [b'{"id": 3}']
