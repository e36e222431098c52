"""One HTTP/1.1 connection to a provider: sockets by anyio, parsing by httptools (Node's parser, in C).

httpx2 and its transport would do this too. Measured here they cost 40 to 80 ms of import, which the first word of
a fresh process waits for, and 45 µs a chunk where this costs 3: a stream is nothing but small chunks. What a
provider needs of HTTP is little: a request with a body, a streamed answer, keep-alive, TLS, a proxy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import anyio
import msgspec
from anyio.abc import ByteStream

if TYPE_CHECKING:
    import ssl

    from httptools import HttpResponseParser

CONNECT_S = 10.0
"""A host that does not take a connection within this is not there."""

READ_BYTES = 64 * 1024
MAX_HEAD_BYTES = 256 * 1024
"""Of an answer's headers; more is no HTTP."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Unreachable(Exception):
    """No connection could be made, and why."""


class Broken(Exception):
    """The connection ended before the answer did, or the answer is no HTTP."""

    def __init__(self, why: str, *, unanswered: bool = False) -> None:
        super().__init__(why)
        self.unanswered = unanswered
        """Whether not a byte of an answer had come."""


class Silent(Exception):
    """Nothing came for as long as the caller was willing to wait."""


class Proxy(msgspec.Struct, frozen=True):
    host: str
    port: int
    authorization: str | None


class Answer:
    """What has come of one answer. The methods are called by the parser."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_head_complete = False
        self.is_complete = False
        self.keeps_alive = False
        self.bodies: list[bytes] = []
        self.seen = 0
        self.parser: HttpResponseParser | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.is_head_complete = True

    def on_body(self, body: bytes) -> None:
        self.bodies.append(body)

    def on_message_complete(self) -> None:
        self.is_complete = True
        self.keeps_alive = self.parser is not None and self.parser.should_keep_alive()

    @property
    def ends_with_connection(self) -> bool:
        return not {"content-length", "transfer-encoding"} & self.headers.keys()


class Line:
    """A connection that takes one request at a time."""

    def __init__(self, stream: ByteStream, host: str, prefix: str, extra: dict[str, str]) -> None:
        self._stream = stream
        self._host = host
        self._prefix = prefix
        self._extra = extra
        self.used = False
        self.reusable = False
        self.idle_since = anyio.current_time()

    async def send(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None, patience: float
    ) -> None:
        """Write a request; its answer is what `receive` brings."""
        self.reusable = False
        lines = {"host": self._host, **headers, **self._extra}
        if body is not None:
            lines["content-length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        data = f"{method} {self._prefix}{target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + (body or b"")
        try:
            with anyio.fail_after(patience):
                await self._stream.send(data)
        except TimeoutError as error:
            raise Silent from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise Broken("it closed the connection before the answer", unanswered=True) from error

    async def head(self, patience: float) -> Reading:
        """The answer up to the end of its headers."""
        reading = Reading(self._stream)
        while not reading.answer.is_head_complete:
            await reading.more(patience)
        return reading

    def finished(self, reading: Reading) -> None:
        """The answer was read to its end: the connection may carry another request."""
        self.used = True
        self.reusable = reading.answer.keeps_alive
        self.idle_since = anyio.current_time()

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.aclose_forcefully(self._stream)


class Reading:
    """An answer while it is read."""

    def __init__(self, stream: ByteStream) -> None:
        import httptools

        self._stream = stream
        self._error = httptools.HttpParserError
        self._make = httptools.HttpResponseParser
        self._begin()

    def _begin(self) -> None:
        self.answer = Answer()
        self._parser = self.answer.parser = self._make(self.answer)
        self._unpack: Callable[[bytes], bytes] | None = None

    async def more(self, patience: float) -> None:
        """Read once and parse it."""
        answer = self.answer
        try:
            with anyio.fail_after(patience):
                data = await self._stream.receive(READ_BYTES)
        except TimeoutError as error:
            raise Silent from error
        except anyio.EndOfStream as error:
            if answer.is_head_complete and answer.ends_with_connection:
                answer.is_complete = True
                return
            raise Broken(
                "it closed the connection before the answer's end", unanswered=not answer.seen
            ) from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise Broken(
                "the connection was reset before the answer's end", unanswered=not answer.seen
            ) from error
        answer.seen += len(data)
        try:
            self._parser.feed_data(data)
        except self._error as error:
            raise Broken("its answer is not valid HTTP") from error
        if not answer.is_head_complete and answer.seen > MAX_HEAD_BYTES:
            raise Broken("its answer's headers do not end")
        if answer.is_head_complete and not answer.status:
            self._headed(answer)

    def _headed(self, answer: Answer) -> None:
        answer.status = self._parser.get_status_code()
        if 100 <= answer.status < 200:
            self._begin()
        elif answer.headers.get("content-encoding") in ("gzip", "x-gzip", "deflate"):
            # Asked for identity, and yet.
            self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress

    def take(self) -> bytes:
        """The body's bytes that have come since the last time."""
        bodies, self.answer.bodies = self.answer.bodies, []
        data = b"".join(bodies)
        return self._unpack(data) if self._unpack and data else data


async def connect(base_url: str, proxy: Proxy | None, secure: ssl.SSLContext | None) -> Line:
    """A new connection to where `base_url` lies, through the proxy if there is one."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    port = parts.port or (443 if secure else 80)
    spelled = f"[{host}]" if ":" in host else host
    place = f"{spelled}:{parts.port}" if parts.port else spelled
    try:
        with anyio.fail_after(CONNECT_S):
            stream: ByteStream = await anyio.connect_tcp(
                proxy.host if proxy else host, proxy.port if proxy else port
            )
            try:
                if proxy and secure:
                    await _tunnel(stream, f"{spelled}:{port}", proxy)
                if secure:
                    stream = await _wrapped(stream, host, secure)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await anyio.aclose_forcefully(stream)
                raise
    except TimeoutError as error:
        raise Unreachable(f"{place} does not answer") from error
    except OSError as error:
        raise Unreachable(_why(place, error)) from error
    except (anyio.BrokenResourceError, anyio.EndOfStream) as error:
        raise Unreachable(f"{place} closed the connection") from error
    plain_proxy = proxy if not secure else None
    extra = (
        {"proxy-authorization": plain_proxy.authorization}
        if plain_proxy and plain_proxy.authorization
        else {}
    )
    return Line(stream, place, f"http://{place}" if plain_proxy else "", extra)


async def _tunnel(stream: ByteStream, target: str, proxy: Proxy) -> None:
    line = Line(stream, target, "", {})
    headers = {"proxy-authorization": proxy.authorization} if proxy.authorization else {}
    try:
        await line.send("CONNECT", target, headers, None, CONNECT_S)
        reading = await line.head(CONNECT_S)
    except (Broken, Silent) as error:
        raise Unreachable(f"the proxy {proxy.host} does not answer") from error
    if reading.answer.status != 200:
        raise Unreachable(f"the proxy {proxy.host} refused (HTTP {reading.answer.status})")


async def _wrapped(stream: ByteStream, host: str, secure: ssl.SSLContext) -> ByteStream:
    from anyio.streams.tls import TLSStream

    return await TLSStream.wrap(stream, hostname=host, ssl_context=secure, standard_compatible=False)


def trusted() -> ssl.SSLContext:
    """TLS by the certificates that the operating system trusts, or those that SSL_CERT_FILE names."""
    import ssl
    import sys

    if sys.platform in ("darwin", "win32"):
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()


def proxy_for(base_url: str) -> Proxy | None:
    """The proxy of this address by the environment or the system's settings; loopback needs none."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if host in LOOPBACK:
        return None
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not found or proxy_bypass(host if ":" in host else f"{host}:{port}"):
        return None
    address = urlsplit(found if "://" in found else f"http://{found}")
    if address.scheme != "http" or not address.hostname:
        raise Unreachable(
            f"the proxy {address.scheme}://{address.hostname} is of a kind that is not supported"
        )
    return Proxy(address.hostname, address.port or 80, _basic(address.username, address.password))


def _basic(user: str | None, password: str | None) -> str | None:
    if user is None:
        return None
    import base64

    return "Basic " + base64.b64encode(f"{unquote(user)}:{unquote(password or '')}".encode()).decode()


def _why(place: str, error: OSError) -> str:
    if "CERTIFICATE_VERIFY" in str(error).upper():
        return f"the certificate of {place} is not trusted"
    if type(error).__name__ == "gaierror":
        return f"the name {place} cannot be resolved"
    return f"{place} cannot be reached ({error.strerror or 'refused'})"
