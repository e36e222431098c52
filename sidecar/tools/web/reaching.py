"""One request to one address: the name is resolved once, all its addresses are checked, one of them is connected to.

Nothing resolves the name a second time, so it does no good to answer differently then. Follows no redirect, sends no
credentials, keeps no cookies. Every answer is bounded: in time, bytes, headers, and what it unpacks to.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec

from ...providers.http import line as http
from ...providers.http.line import Broken, Line, Proxy, Reading, Silent, Unreachable
from .addresses import IP, Allowed, Target, check

if TYPE_CHECKING:
    import ssl

MAX_TRIED = 4
"""Addresses of one host that are tried one after the other."""

MAX_ERROR_BYTES = 16 * 1024
"""Of the body of an answer that says what went wrong."""

USER_AGENT = "sidecar (fetch_url)"

Resolve = Callable[[str, int], Awaitable[list[str]]]


class Limits(msgspec.Struct, frozen=True):
    """`seconds` is for one request from the name to the last byte, however slowly the bytes drip; `bytes` is what an
    answer may have, packed or unpacked: a few times the longest page that people read."""

    seconds: float = 30.0
    silence: float = 15.0
    bytes: int = 8 * 1024 * 1024
    connect: float = 5.0


DEFAULTS = Limits()


class Gone(Exception):
    """The network, the host or its answer is not there; an older copy may stand in."""


class Unreadable(Exception):
    """There is an answer, and it is none that can be used."""


class Answer(msgspec.Struct, frozen=True):
    """`private` says that it came from this machine or its networks. `body` is empty for redirects and the like."""

    status: int
    headers: dict[str, str]
    body: bytes
    private: bool


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, by the operating system. The one place where names become addresses."""
    import socket

    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Gone(f"The name {host} cannot be resolved.") from error
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class Reach:
    """Asks addresses that may be asked. `wanted` tells by an answer's headers whether its body is of use."""

    def __init__(self, resolve: Resolve = resolve, limits: Limits = DEFAULTS) -> None:
        self._resolve = resolve
        self.limits = limits
        self._secure: ssl.SSLContext | None = None

    async def get(
        self,
        target: Target,
        headers: dict[str, str],
        allowed: Allowed,
        *,
        wanted: Callable[[dict[str, str]], None],
    ) -> Answer:
        """The answer; Refused, Gone or Unreadable."""
        limits = self.limits
        try:
            with anyio.fail_after(limits.seconds):
                addresses = await self._addresses(target)
                checked, private = check(target, addresses, allowed)
                return await self._ask(target, checked, headers, private, wanted)
        except TimeoutError as error:
            raise Gone(f"{target.place} did not finish its answer within {limits.seconds:g} s.") from error
        except Silent as error:
            raise Gone(f"{target.place} said nothing for {limits.silence:g} s.") from error
        except (Unreachable, Broken) as error:
            raise Gone(f"{target.place}: {error}.") from error
        except zlib.error as error:
            raise Unreadable(f"The answer of {target.place} cannot be unpacked.") from error

    async def _addresses(self, target: Target) -> list[str]:
        if target.literal is not None:
            return [str(target.literal)]
        return await self._resolve(target.host, target.port)

    async def _ask(
        self,
        target: Target,
        addresses: list[IP],
        headers: dict[str, str],
        private: bool,
        wanted: Callable[[dict[str, str]], None],
    ) -> Answer:
        line = await self._connected(target, addresses, private)
        try:
            sent = {
                "user-agent": USER_AGENT,
                "accept-encoding": "gzip, deflate",
                "connection": "close",
                **headers,
            }
            reading = await line.ask("GET", target.rest, sent, None, self.limits.silence)
            answer = reading.answer
            body = b""
            if answer.status >= 400:
                body = await self._body(reading, MAX_ERROR_BYTES, cut=True)
            elif answer.status < 300:
                wanted(answer.headers)
                self._check_head(answer.headers)
                body = await self._body(reading, self.limits.bytes, cut=False)
            return Answer(answer.status, answer.headers, body, private)
        finally:
            await line.close()

    async def _connected(self, target: Target, addresses: list[IP], private: bool) -> Line:
        """A connection to the first address that takes one; no other than these is asked."""
        proxy, secure = await anyio.to_thread.run_sync(self._route, target, private, abandon_on_cancel=True)
        failed: Unreachable | None = None
        for address in addresses[:MAX_TRIED]:
            try:
                with anyio.move_on_after(self.limits.connect):
                    return await http.connect(target.url, proxy, secure, address.compressed)
                failed = Unreachable(f"{address} does not answer")
            except Unreachable as error:
                failed = error
        raise failed or Unreachable("it has no address")

    def _route(self, target: Target, private: bool) -> tuple[Proxy | None, ssl.SSLContext | None]:
        """The proxy and the certificates: both may have to be read from files. Private places are asked directly."""
        try:
            if target.scheme == "https" and self._secure is None:
                self._secure = http.trusted()
            proxy = None if private else http.proxy_for(target.url)
        except (OSError, ValueError) as error:
            raise Unreachable(f"proxy or certificates are set up wrongly ({error})") from error
        return proxy, self._secure if target.scheme == "https" else None

    def _check_head(self, headers: dict[str, str]) -> None:
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding not in ("identity", "", *http.PACKED):
            raise Unreadable(f"It is packed by {encoding[:40]!r}, which was not asked for.")
        length = headers.get("content-length", "")
        if length.isdigit() and len(length) < 20 and int(length) > self.limits.bytes:
            raise self._too_large()

    async def _body(self, reading: Reading, most: int, *, cut: bool) -> bytes:
        received = bytearray(reading.take())
        while not reading.answer.is_complete and len(received) <= most:
            await reading.more(self.limits.silence)
            received += reading.take()
        if len(received) > most and not cut:
            raise self._too_large()
        return bytes(received[:most])

    def _too_large(self) -> Unreadable:
        return Unreadable(
            f"It is larger than {self.limits.bytes >> 20} MiB, which is the most that is fetched."
        )
