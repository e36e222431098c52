"""Servers that misbehave: every one of them ends, within its bounds, with words that say what was wrong."""

from __future__ import annotations

import gzip
import zlib

import anyio
import pytest
from anyio.abc import ByteStream

from sidecar.tools.web.pages import PageFetcher
from sidecar.tools.web.reaching import FetchLimits, WebClient
from tests.unit.web.internet import PUBLIC, Internet
from tests.unit.web.server import Asked, Handler, answer

MIB = 1024 * 1024
URL = "http://public.test/page"


def hasty(internet: Internet, *, seconds: float = 5, silence: float = 5) -> None:
    """Less patience than a user has, so that the test is short."""
    patience = FetchLimits(seconds=seconds, silence=silence)
    internet.web = PageFetcher(internet.store, WebClient(internet.resolve, patience), lambda: internet.now)


def endlessly(first: bytes, piece: bytes, pause: float = 0) -> Handler:
    async def handle(stream: ByteStream, asked: Asked) -> None:
        await stream.send(first)
        while True:
            await stream.send(piece)
            await anyio.sleep(pause)

    return handle


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "GZIP"])
async def test_a_packed_page_is_read(internet: Internet, encoding: str) -> None:
    pack = gzip.compress if encoding.lower() == "gzip" else zlib.compress
    internet.site.put("/page", pack(b"<p>packed</p>" * 50), content_encoding=encoding)

    assert "packed" in (await internet.fetch(URL)).text
    assert internet.site.asked[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [9 * MIB, 64 * MIB])
async def test_a_bomb_is_not_unpacked(internet: Internet, size: int) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    bomb = b"".join(packer.compress(bytes(MIB)) for _ in range(size // MIB)) + packer.flush()
    internet.site.put("/page", bomb, type="text/plain", content_encoding="gzip")

    words = await internet.words(URL)
    assert "expands without measure" in words


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
async def test_a_packing_that_was_not_asked_for_is_refused(internet: Internet, encoding: str) -> None:
    internet.site.put("/page", b"\x1b\x0f\x00", content_encoding=encoding)
    assert "which was not asked for" in await internet.words(URL)


async def test_broken_packing_is_told(internet: Internet) -> None:
    internet.site.put("/page", b"no gzip", content_encoding="gzip")
    assert "cannot be unpacked" in await internet.words(URL)


async def test_a_page_that_is_too_large_is_refused_by_its_length(internet: Internet) -> None:
    internet.site.pages["/page"] = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 99999999999\r\n\r\n"
    )
    assert "larger than 8 MiB" in await internet.words(URL)


async def test_a_page_without_end_is_refused_by_its_size(internet: Internet) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
    internet.site.pages["/page"] = endlessly(head, b"x" * 65536)
    assert "larger than 8 MiB" in await internet.words(URL)


async def test_bytes_that_drip_for_ever_end_in_time(internet: Internet) -> None:
    hasty(internet, seconds=0.4)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
    internet.site.pages["/page"] = endlessly(head, b"x", pause=0.01)
    assert "did not finish its answer within 0.4 s" in await internet.words(URL)


@pytest.mark.parametrize(
    "first", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nxx"]
)
async def test_silence_ends_in_time(internet: Internet, first: bytes) -> None:
    async def quiet(stream: ByteStream, asked: Asked) -> None:
        if first:
            await stream.send(first)
        await anyio.sleep_forever()

    hasty(internet, silence=0.2)
    internet.site.pages["/page"] = quiet
    assert "said nothing for 0.2 s" in await internet.words(URL)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "piece",
    [b"x-more: of the same\r\n", b"x" * 1000, b"HTTP/1.1 100 Continue\r\n\r\n"],
    ids=["many", "long", "100"],
)
async def test_headers_without_end_are_refused(internet: Internet, piece: bytes) -> None:
    first = b"" if piece.startswith(b"HTTP") else b"HTTP/1.1 200 OK\r\nx-long: "
    internet.site.pages["/page"] = endlessly(first, piece)
    words = await internet.words(URL)
    assert "headers do not end" in words


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", "closed the connection"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not valid HTTP"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 50\r\n\r\nhalf",
            "before the answer's end",
        ),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "not valid HTTP"),
        (answer("gone", 404, type="text/plain"), "HTTP 404: gone"),
        (answer("<title>No</title><p>not yours", 403), "HTTP 403: No not yours"),
        (answer(b"\x00\x01", 500, type="image/png"), "HTTP 500."),
        (answer(b"", 302), "HTTP 302."),
        (answer(b"", 304), "HTTP 304."),
        (answer(b"%PDF-1.7", type="application/pdf"), "It is application/pdf, which cannot be read here"),
        (answer(b"\x89PNG", type="image/png"), "It is image/png"),
        (
            answer(b"PK\x03\x04\x00\x00", type="application/octet-stream"),
            "does not say of what type it is, and is binary",
        ),
        (answer(b"MZ\x00\x00", type="text/plain"), "says that it is text, and is binary"),
    ],
)
async def test_what_cannot_be_used_says_why(internet: Internet, said: bytes, words: str) -> None:
    internet.site.pages["/page"] = said
    assert words in await internet.words(URL)


async def test_a_binary_page_is_refused_before_its_bytes_come(internet: Internet) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\n\r\n"
    internet.site.pages["/page"] = endlessly(head, b"x" * 65536)
    assert "It is video/mp4" in await internet.words(URL)


async def test_a_host_that_is_not_there_is_told(internet: Internet) -> None:
    assert "The name missing.test cannot be resolved" in await internet.words("http://missing.test/")


async def test_the_next_address_is_tried_when_one_does_not_answer(internet: Internet) -> None:
    """Nobody listens on 127.0.0.2."""
    internet.name("two.test", "127.0.0.2", "127.0.0.1")
    internet.settings = internet.settings.replaced(allow_private=("two.test",))

    assert "the keys" in (await internet.fetch(f"http://two.test:{internet.trap.port}/secret")).text


async def test_nothing_that_tells_who_asks_is_sent(internet: Internet) -> None:
    internet.site.put("/page", "hello", set_cookie="a=b")
    await internet.fetch(URL)
    await internet.fetch(URL, refresh=True)

    assert [sorted(asked.headers) for asked in internet.site.asked] == [
        ["accept", "accept-encoding", "accept-language", "connection", "host", "user-agent"],
        ["accept", "accept-encoding", "accept-language", "cache-control", "connection", "host", "user-agent"],
    ]


async def test_a_proxy_that_refuses_tunnels_is_told(
    internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never left to resolve the name."""
    internet.site.pages[f"{PUBLIC}:80"] = answer(b"", 403)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{internet.site.port}")
    assert "the proxy 127.0.0.1 refused (HTTP 403)" in await internet.words(URL)
    assert internet.site.paths == [f"{PUBLIC}:80"]
