"""A web server on loopback that says what a test tells it to, byte for byte, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio.abc import ByteStream

from tests.blackbox.models.network import listening, pass_on

Handler = Callable[[ByteStream, "Asked"], Awaitable[None]]

GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


class Asked:
    """A request: its path with the query, and its headers by lower-case name."""

    def __init__(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        self.method, self.path, _ = first.split(" ", 2)
        self.headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }


class Site:
    """Pages by path: bytes to send as they are, or a handler that sends them. `asked` has every request."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes | Handler] = {}
        self.asked: list[Asked] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def put(
        self, path: str, body: bytes | str = b"", type: str = "text/html; charset=utf-8", **headers: Any
    ) -> None:
        self.pages[path] = answer(body, type=type, **headers)

    def redirect(self, path: str, location: str, status: int = 302) -> None:
        self.pages[path] = answer(b"", status, location=location)

    async def handle(self, stream: ByteStream) -> None:
        try:
            data = b""
            while b"\r\n\r\n" not in data:
                data += await stream.receive()
            asked = Asked(data.partition(b"\r\n\r\n")[0].decode("latin-1"))
            self.asked.append(asked)
            page = self.pages.get(asked.path, answer(b"no such page", 404, type="text/plain"))
            if isinstance(page, bytes):
                await stream.send(page)
            else:
                await page(stream, asked)
        except GONE:
            return


class Tunnel:
    """A proxy whose tunnels end at the port that `ends` gives for a target's; `seen` has what it was asked for."""

    def __init__(self, ends: Callable[[int], int]) -> None:
        self._ends = ends
        self.seen: list[str] = []

    async def handle(self, stream: ByteStream) -> None:
        try:
            data = b""
            while b"\r\n\r\n" not in data:
                data += await stream.receive()
            method, target = data.decode("latin-1").split(" ", 2)[:2]
            if method != "CONNECT":
                self.seen.append(f"by name: {target}")
                return
            self.seen.append(target)
            await stream.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await pass_on(stream, self._ends(int(target.rpartition(":")[2])))
        except GONE:
            return


def answer(
    body: bytes | str = b"", status: int = 200, type: str = "text/html; charset=utf-8", **headers: Any
) -> bytes:
    """An answer's bytes; an underscore in a header's name is a hyphen."""
    data = body.encode() if isinstance(body, str) else body
    lines = {"content-type": type, "content-length": len(data), **headers}
    spelled = "".join(
        f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items() if value is not None
    )
    return f"HTTP/1.1 {status} Said\r\n{spelled}\r\n".encode() + data


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    with listening(site.handle) as server:
        site.port = server.port
        yield site
