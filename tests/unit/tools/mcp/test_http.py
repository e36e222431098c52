"""Servers at an address: a real one by the SDK on loopback, and raw ones that answer badly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from uuid import uuid4

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute, SocketStream

from sidecar.tools.base import ToolInput, ToolOutcome
from sidecar.tools.mcp import ServerConfig, parse_servers
from tests.support.patience import PATIENCE_S
from tests.unit.tools.mcp.mounting import HERE, Mount


def config_of(port: int, **more: object) -> ServerConfig:
    return parse_servers([{"name": "web", "url": f"http://127.0.0.1:{port}/mcp", **more}], "mcpServers")[0]


class Http:
    """The SDK's server in a process of its own, at a port that stays the same when it is started again."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    def start(self) -> None:
        command = [
            sys.executable,
            str(HERE / "sdk_server.py"),
            f"token-{uuid4().hex}",
            "http",
            str(self.port),
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def web() -> Iterator[Http]:
    server = Http()
    yield server
    server.end()


@asynccontextmanager
async def answering(*lines: str, body: bytes = b"") -> AsyncIterator[tuple[int, list[str]]]:
    """A server that gives every request this answer: its port, and the heads of the requests."""
    heads: list[str] = []
    answer = "\r\n".join(
        (f"HTTP/1.1 {lines[0]}", *lines[1:], f"content-length: {len(body)}", "", "")
    ).encode()

    async def serve(stream: SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            heads.append(head.decode("latin-1"))
            try:
                await stream.send(answer + body)
            except anyio.BrokenResourceError:
                return

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(SocketAttribute.local_port), heads
        tasks.cancel_scope.cancel()


async def test_a_server_at_an_address_is_mounted_and_called(mount: Mount, web: Http) -> None:
    tools = await mount.tools(config_of(web.port))

    assert await mount.call(tools["mcp__web__add"], a=2, b=3) == ToolOutcome("5")
    assert (await mount.call(tools["mcp__web__divide"], a=2, b=0)).failed
    assert tools["mcp__web__add"].title(ToolInput({})) == "web: Add up"


async def test_a_cancelled_call_returns_and_the_next_one_works(mount: Mount, web: Http) -> None:
    tools = await mount.tools(config_of(web.port))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mount.call, tools["mcp__web__wait"])
            with anyio.fail_after(PATIENCE_S):
                while not mount.context.shown:
                    await anyio.lowlevel.checkpoint()
            scope.cancel()

    assert mount.context.shown == ["waiting\n"]
    assert await mount.call(tools["mcp__web__add"], a=1, b=1) == ToolOutcome("2")


async def test_a_call_that_takes_too_long_fails_in_words(mount: Mount, web: Http) -> None:
    tools = await mount.tools(config_of(web.port, timeoutMs=300))
    outcome = await mount.call(tools["mcp__web__wait"])

    assert outcome.failed
    assert outcome.text.startswith("web/wait gave no answer within 0.3 s")


async def test_a_server_that_was_started_again_is_connected_again(mount: Mount) -> None:
    web = Http()
    try:
        config = config_of(web.port)
        tools = await mount.tools(config)
        web.end()
        web.start()
        lost = await mount.call(tools["mcp__web__add"], a=2, b=2)
        assert lost.failed
        assert "was lost in the middle of add: it has forgotten our session (HTTP 404)" in lost.text
        await mount.until(lambda state: state.state == "ready" and len(mount.told) > 2)
        assert await mount.call(tools["mcp__web__add"], a=2, b=2) == ToolOutcome("4")
    finally:
        web.end()


async def test_a_server_that_is_down_is_tried_again_until_it_is_up(mount: Mount) -> None:
    web = Http()
    web.end()
    try:
        mount.servers.want([config_of(web.port)])
        state = await mount.reaches("failed")
        assert state.error == "it cannot be reached: All connection attempts failed"
        web.start()
        await mount.reaches("ready")
    finally:
        web.end()


async def test_an_answer_that_refuses_us_is_told_by_its_number_and_our_headers_are_sent(mount: Mount) -> None:
    async with answering("401 Unauthorized") as (port, heads):
        mount.servers.want([config_of(port, headers={"Authorization": "Bearer very-long-token"})])
        state = await mount.reaches("failed")

    assert "HTTP 401" in (state.error or "")
    assert "very-long-token" not in (state.error or "")
    assert "authorization: bearer very-long-token" in heads[0].lower()


async def test_redirects_are_not_followed(mount: Mount) -> None:
    async with answering("307 Temporary Redirect", "location: /elsewhere") as (port, heads):
        mount.servers.want([config_of(port)])
        state = await mount.reaches("failed")

    assert "not followed" in (state.error or "")
    assert {head.split()[1] for head in heads} == {"/mcp"}


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("content-type: application/json", "it sent a message of more than 16 MiB"),
        ("content-encoding: gzip", "it sent a compressed answer"),
        ("content-type: text/html", "Unexpected content type: text/html"),
    ],
)
async def test_what_is_no_answer_of_a_server_is_told(mount: Mount, head: str, words: str) -> None:
    async with answering("200 OK", head, body=b" " * 17 * 1024 * 1024) as (port, _):
        mount.servers.want([config_of(port)])
        state = await mount.reaches("failed")

    assert words in (state.error or "")


async def test_a_server_that_is_silent_fails_in_its_time_and_holds_nobody_up(mount: Mount) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener:
        mount.servers.want([config_of(listener.extra(SocketAttribute.local_port), startTimeoutMs=200)])
        state = await mount.reaches("failed")

    assert state.error == "it was not ready within 0.2 s"
