"""Frames cut anywhere, of any size, in both framings."""

from __future__ import annotations

import json

import pytest

from tests.support import processes
from tests.support.frames import encode
from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .probe import Probe

MIB = 1024 * 1024
LIMIT = 32 * MIB
PING = '{"jsonrpc":"2.0","id":"é😀","method":"ping"}'.encode()


def drained(sidecar: Sidecar) -> None:
    """Wait until it has taken all that we wrote, so that the next write is a read of its own."""
    assert processes.poll_until(lambda: sidecar.unread_input() == 0, PATIENCE_S)


def sized(size: int, id: str) -> bytes:
    """A ping of exactly `size` bytes."""
    head, tail = f'{{"jsonrpc":"2.0","id":"{id}",'.encode(), b'"method":"ping"}'
    return head + b" " * (size - len(head) - len(tail)) + tail


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_a_frame_cut_at_any_byte_is_one_frame(spawn: Spawner, framing: str) -> None:
    probe = Probe(spawn(framing=framing))
    frame = encode(PING, framing)
    for cut in range(1, len(frame)):
        probe.sidecar.send_bytes(frame[:cut])
        drained(probe.sidecar)
        (answer,) = probe.answers(frame[cut:], wanted=1)
        assert answer["id"] == "é😀"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_frames_come_byte_by_byte_or_all_at_once(spawn: Spawner, framing: str) -> None:
    probe = Probe(spawn(framing=framing))
    frames = encode(PING, framing) * 3
    for byte in frames[:-1]:
        probe.sidecar.send_bytes(bytes([byte]))
        drained(probe.sidecar)
    probe.answers(frames[-1:] + frames, wanted=4)
    assert len(probe.sidecar.answers("é😀")) == 6


FIRST = {
    "lines": encode(PING, "lines"),
    "byte order mark": b"\xef\xbb\xbf" + encode(PING, "lines"),
    "blank lines": b"\r\n \n\t" + encode(PING, "lines"),
    "carriage returns": PING + b"\r\n",
}
HEADED = {
    "headers": encode(PING, "headers"),
    "mark and headers": b"\xef\xbb\xbf" + encode(PING, "headers"),
    "lower case": b"content-length: %d\r\n\r\n%b" % (len(PING), PING),
    "upper case": b"CONTENT-LENGTH:%d\r\n\r\n%b" % (len(PING), PING),
    "type first": b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(PING), PING),
    "type last": b"Content-Length: %d\r\nContent-Type: x; charset=utf-8\r\n\r\n%b" % (len(PING), PING),
    "leading blank": b"\r\n\r\nContent-Length: %d\r\n\r\n%b" % (len(PING), PING),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [*FIRST, *HEADED])
def test_the_first_bytes_decide_the_framing_however_they_arrive(spawn: Spawner, name: str) -> None:
    data = FIRST.get(name) or HEADED[name]
    sidecar = spawn(initialize=False, framing="lines" if name in FIRST else "headers")
    sidecar.referee.lenient = True
    for byte in data[:20]:
        sidecar.send_bytes(bytes([byte]))
        drained(sidecar)
    sidecar.send_bytes(data[20:])
    assert sidecar.result("é😀")["uptimeMs"] >= 0


def test_any_other_first_byte_means_lines(spawn: Spawner) -> None:
    sidecar = spawn(initialize=False)
    sidecar.referee.lenient = True
    sidecar.send_bytes(b"hello?\n" + encode(PING, "lines"))
    assert sidecar.answer(None)["error"]["code"] == -32700
    assert sidecar.result("é😀")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_frames_of_any_size_up_to_the_limit_are_answered(spawn: Spawner, framing: str) -> None:
    probe = Probe(spawn(framing=framing))
    for size in (
        100,
        4095,
        4096,
        4097,
        65535,
        65536,
        65537,
        MIB - 1,
        MIB,
        MIB + 1,
        16 * MIB,
        LIMIT - 1,
        LIMIT,
    ):
        (answer,) = probe.answers(encode(sized(size, f"s{size}"), framing), wanted=1)
        assert answer.get("result"), size


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_a_frame_over_the_limit_is_skipped_and_answered(spawn: Spawner, framing: str) -> None:
    probe = Probe(spawn(framing=framing))
    before = processes.rss_bytes(probe.sidecar.pid)
    for size in (LIMIT + 1, 33 * MIB, 64 * MIB):
        (answer,) = probe.answers(encode(sized(size, "big"), framing), wanted=1)
        assert answer["error"]["code"] == -32007
        assert answer["id"] in (None, "big")
    assert processes.rss_bytes(probe.sidecar.pid) - before < 160 * MIB


def test_empty_lines_are_nothing(probe: Probe) -> None:
    assert probe.answers(b"\n" * 1000 + b"\r\n" * 1000 + b"   \n" * 1000, wanted=0) == []


BAD_HEADERS = {
    "no length": b"Content-Type: x\r\n\r\n",
    "negative": b"Content-Length: -5\r\n\r\n",
    "not a number": b"Content-Length: five\r\n\r\n",
    "hexadecimal": b"Content-Length: 0x10\r\n\r\n",
    "empty": b"Content-Length:\r\n\r\n",
    "decimal": b"Content-Length: 5.0\r\n\r\n",
    "absurd": b"Content-Length: 99999999999999999999999999\r\n\r\n",
    "no colon": b"Content-Length 5\r\n\r\n",
}


def test_a_header_without_a_length_is_answered_and_skipped(spawn: Spawner) -> None:
    probe = Probe(spawn(framing="headers"))
    for name, header in BAD_HEADERS.items():
        (answer,) = probe.answers(header, wanted=1)
        assert answer["id"] is None, name
        assert answer["error"]["code"] in (-32600, -32700, -32007), name


def test_a_body_that_is_no_json_is_answered_and_the_next_is_read(spawn: Spawner) -> None:
    probe = Probe(spawn(framing="headers"))
    (answer,) = probe.answers(encode(b"{bad}\n\xff", "headers"), wanted=1)
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_a_large_answer_is_one_frame(spawn: Spawner, framing: str) -> None:
    sidecar = spawn(framing=framing)
    text = "é" * (2 * MIB)
    ended = sidecar.run(text, chatId="large")
    assert sidecar.events(ended["sessionId"], "message.completed")[0]["data"]["item"]["text"] == text
    page = sidecar.call("chat/history", chatId="large")
    assert len(json.dumps(page, ensure_ascii=False)) > 2 * MIB


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "rest", [b'{"jsonrpc":"2.0","id":1,', b"Content-Le", b"\xef\xbb", b"\xff", b"{", b" "]
)
def test_an_input_that_ends_in_the_middle_ends_the_process_in_order(spawn: Spawner, rest: bytes) -> None:
    sidecar = spawn(initialize=False)
    sidecar.referee.lenient = True
    sidecar.send_bytes(rest)
    sidecar.close_stdin()
    assert sidecar.wait(2.0) == 0
