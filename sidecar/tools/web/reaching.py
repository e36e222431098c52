"""One HTTP request: the name is resolved once, all its addresses are checked, one of them is connected to.

The name is never resolved a second time, which prevents DNS rebinding. Follows no redirect, sends no credentials,
stores no cookies. Every response is bounded: in time, bytes, headers, and decompressed size.
"""

from __future__ import annotations

import socket
import zlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec

from ...providers.http import connection as http
from ...providers.http.connection import (
    ConnectionBroken,
    ConnectionSilent,
    HttpConnection,
    Proxy,
    ResponseReader,
    Unreachable,
)
from .addresses import IP, AllowedHosts, Target, check

if TYPE_CHECKING:
    import ssl

MAX_ADDRESSES_TRIED = 4
"""Addresses of one host that are tried in turn."""

MAX_ERROR_BYTES = 16 * 1024
"""Bytes of the body of an error response."""

USER_AGENT = "sidecar (fetch_url)"

Resolve = Callable[[str, int], Awaitable[list[str]]]


class FetchLimits(msgspec.Struct, frozen=True):
    """`seconds` limits one request from DNS to the last byte, however slowly the bytes arrive; `bytes` limits a
    response, compressed and decompressed: a few times the longest page that people read.
    """

    seconds: float = 30.0
    silence: float = 15.0
    bytes: int = 8 * 1024 * 1024
    connect: float = 5.0


DEFAULTS = FetchLimits()


class Unavailable(Exception):
    """The network, the host or its response is missing; an older copy may be used."""


class Unreadable(Exception):
    """There is a response, but it cannot be used."""


class WebResponse(msgspec.Struct, frozen=True):
    """`private` says that it came from this machine or its networks. `body` is empty for redirects and the like."""

    status: int
    headers: dict[str, str]
    body: bytes
    private: bool


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, by the operating system. The one place where names become addresses."""
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"The name {host} cannot be resolved.") from error
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class WebClient:
    """Requests permitted addresses. `wanted` decides by the response headers whether to read the body."""

    def __init__(self, resolve: Resolve = resolve, limits: FetchLimits = DEFAULTS) -> None:
        self._resolve = resolve
        self.limits = limits
        self._secure: ssl.SSLContext | None = None

    async def get(
        self,
        target: Target,
        headers: dict[str, str],
        allowed: AllowedHosts,
        *,
        wanted: Callable[[dict[str, str]], None],
    ) -> WebResponse:
        """Return the response; raise AddressRefused, Unavailable or Unreadable."""
        limits = self.limits
        try:
            with anyio.fail_after(limits.seconds):
                addresses = await self._addresses(target)
                # Resolved once, checked, and connected to by address: a name that is resolved a second time could
                # lead elsewhere (DNS rebinding).
                checked, private = check(target, addresses, allowed)
                return await self._request(target, checked, headers, private, wanted)
        except TimeoutError as error:
            raise Unavailable(
                f"{target.place} did not finish its answer within {limits.seconds:g} s."
            ) from error
        except ConnectionSilent as error:
            raise Unavailable(f"{target.place} said nothing for {limits.silence:g} s.") from error
        except (Unreachable, ConnectionBroken) as error:
            raise Unavailable(f"{target.place}: {error}.") from error
        except zlib.error as error:
            raise Unreadable(f"The answer of {target.place} cannot be unpacked.") from error

    async def _addresses(self, target: Target) -> list[str]:
        if target.literal is not None:
            return [str(target.literal)]
        return await self._resolve(target.host, target.port)

    async def _request(
        self,
        target: Target,
        addresses: list[IP],
        headers: dict[str, str],
        private: bool,
        wanted: Callable[[dict[str, str]], None],
    ) -> WebResponse:
        line = await self._connect(target, addresses, private)
        try:
            sent = {
                "user-agent": USER_AGENT,
                "accept-encoding": "gzip, deflate",
                # One request per connection: an idle one could be reused for a name whose address was not checked.
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
            return WebResponse(answer.status, answer.headers, body, private)
        finally:
            await line.close()

    async def _connect(self, target: Target, addresses: list[IP], private: bool) -> HttpConnection:
        """Connect to the first of these addresses that accepts; never to any other."""
        proxy, secure = await anyio.to_thread.run_sync(self._route, target, private, abandon_on_cancel=True)
        failed: Unreachable | None = None
        for address in addresses[:MAX_ADDRESSES_TRIED]:
            try:
                with anyio.move_on_after(self.limits.connect):
                    return await http.connect(target.url, proxy, secure, address.compressed)
                failed = Unreachable(f"{address} does not answer")
            except Unreachable as error:
                failed = error
        raise failed or Unreachable("it has no address")

    def _route(self, target: Target, private: bool) -> tuple[Proxy | None, ssl.SSLContext | None]:
        """Return the proxy and the certificates: both may be read from files. Private hosts bypass the proxy."""
        try:
            if target.scheme == "https" and self._secure is None:
                self._secure = http.tls_context()
            # A proxy elsewhere cannot reach this machine's networks, or would mean others.
            proxy = None if private else http.proxy_for(target.url)
        except (OSError, ValueError) as error:
            raise Unreachable(f"proxy or certificates are set up wrongly ({error})") from error
        return proxy, self._secure if target.scheme == "https" else None

    def _check_head(self, headers: dict[str, str]) -> None:
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding not in ("identity", "", *http.COMPRESSED_ENCODINGS):
            raise Unreadable(f"It is packed by {encoding[:40]!r}, which was not asked for.")
        length = headers.get("content-length", "")
        if length.isdigit() and len(length) < 20 and int(length) > self.limits.bytes:
            raise self._too_large()

    async def _body(self, reading: ResponseReader, most: int, *, cut: bool) -> bytes:
        received = bytearray(reading.take())
        # Counted after decompression: a small answer may expand to gigabytes.
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
