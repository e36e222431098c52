"""One HTTP/1.1 connection to a provider: sockets by anyio, parsing by httptools (Node's parser, in C).

httpx2 and its transport would do this too. Measured here they cost 40 to 80 ms of import, which the first word of
a fresh process waits for, and 45 µs a chunk where this costs 3: a stream is nothing but small chunks. What a
provider needs of HTTP is little: a request with a body, a streamed answer, keep-alive, TLS, a proxy.
"""

from __future__ import annotations

import select
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import anyio
import anyio.abc
import msgspec
from anyio.abc import ByteStream

from ...system import redact

if TYPE_CHECKING:
    import ssl

    from httptools import HttpResponseParser

CONNECT_S = 10.0
"""A host that does not take a connection within this is not there."""

READ_BYTES = 64 * 1024
MAX_HEAD_BYTES = 256 * 1024
"""Of an answer's headers; more is no HTTP."""

MAX_UNPACKED_BYTES = 8 * 1024 * 1024
"""What one read of a compressed answer may become: text shrinks to a tenth, not to a hundredth."""

PACKED = ("gzip", "x-gzip", "deflate")

BIG_BYTES = 256 * 1024
"""A larger request may be refused while it is sent, so both directions are watched."""

SLOWEST_BYTES_A_SECOND = 100 * 1024
REFUSAL_S = 1.0
"""How long to look for the answer of a server that has closed its ear already."""


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

    def on_message_begin(self) -> None:
        if self.is_complete:
            self.keeps_alive = False  # an answer that nobody asked for would be taken for the next one's

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.is_head_complete:  # what follows a body is not wanted, and could go on for ever
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if not self.is_complete and self.parser is not None:
            self.is_head_complete = True
            self.status = self.parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        if not self.is_complete:
            self.bodies.append(body)

    def on_message_complete(self) -> None:
        if 100 <= self.status < 200:
            self.status, self.headers, self.is_head_complete = 0, {}, False
        elif not self.is_complete:
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
        """Whether it has idled: then the other side may have closed it without our noticing."""
        self.reusable = False
        self.idle_since = anyio.current_time()

    async def ask(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None, patience: float
    ) -> Reading:
        """Send a request, and return its answer as far as the end of its headers."""
        self.reusable = False
        lines = {"host": self._host, **headers, **self._extra}
        if body is not None:
            lines["content-length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        data = f"{method} {self._prefix}{target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + (body or b"")
        if len(data) > BIG_BYTES:
            return await self._ask_while_sending(data, patience + len(data) / SLOWEST_BYTES_A_SECOND)
        try:
            await self._send(data, patience)
        except Broken:
            # Some refuse a request before they have read it: the refusal may be there.
            with suppress(Broken, Silent):
                return await self.head(REFUSAL_S)
            raise
        return await self.head(patience)

    async def _ask_while_sending(self, data: bytes, patience: float) -> Reading:
        """A big request may be refused before it is sent to its end; then the rest stays here."""
        failed: list[Exception] = []
        reading: Reading | None = None

        async def send() -> None:
            try:
                await self._send(data, patience)
            except (Broken, Silent) as error:
                failed.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            try:
                reading = await self.head(patience)
            except (Broken, Silent) as error:
                failed.append(error)
            tasks.cancel_scope.cancel()
        if reading is None:
            raise failed[0]
        return reading

    async def _send(self, data: bytes, patience: float) -> None:
        try:
            with anyio.fail_after(patience):
                await self._stream.send(data)
        except TimeoutError as error:
            raise Silent from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise Broken("it closed the connection before the answer", unanswered=True) from error

    async def head(self, patience: float) -> Reading:
        """The answer up to the end of its headers, which have to come within this time as a whole."""
        reading = Reading(self._stream)
        try:
            with anyio.fail_after(patience):
                while not reading.answer.is_head_complete:
                    await reading.more(patience)
        except TimeoutError as error:
            raise Silent from error
        return reading

    def finished(self, reading: Reading) -> None:
        """The answer was read to its end: the connection may carry another request."""
        self.used = True
        self.reusable = reading.answer.keeps_alive
        self.idle_since = anyio.current_time()

    def is_quiet(self) -> bool:
        """Whether nothing has come since the last answer: no end, and no bytes that nobody asked for."""
        raw = self._stream.extra(anyio.abc.SocketAttribute.raw_socket, None)
        if raw is None or self.is_fresh:
            return True
        return not select.select([raw], [], [], 0)[0]

    @property
    def is_fresh(self) -> bool:
        """Whether it has carried no answer yet. Over TLS, tickets come unasked after the handshake."""
        return not self.reusable

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.aclose_forcefully(self._stream)


class Reading:
    """An answer while it is read."""

    def __init__(self, stream: ByteStream) -> None:
        import httptools

        self._stream = stream
        self._error = httptools.HttpParserError
        self.answer = Answer()
        self._parser = self.answer.parser = httptools.HttpResponseParser(self.answer)
        self._unpacker: zlib._Decompress | None = None

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
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise Broken(
                "the connection was reset before the answer's end", unanswered=not answer.seen
            ) from error
        answer.seen += len(data)
        try:
            self._parser.feed_data(data)
        except self._error as error:
            answer.keeps_alive = False
            if not answer.is_complete:
                raise Broken("its answer is not valid HTTP") from error
        if not answer.is_head_complete and answer.seen > MAX_HEAD_BYTES:
            raise Broken("its answer's headers do not end")

    def take(self) -> bytes:
        """The body's bytes that have come since the last time."""
        bodies, self.answer.bodies = self.answer.bodies, []
        data = b"".join(bodies)
        if not data or self.answer.headers.get("content-encoding", "identity").lower() not in PACKED:
            return data
        # Asked for identity, and yet. What expands without measure is no answer.
        self._unpacker = self._unpacker or zlib.decompressobj(zlib.MAX_WBITS | 32)
        unpacked = self._unpacker.decompress(data, MAX_UNPACKED_BYTES)
        if self._unpacker.unconsumed_tail:
            raise Broken("its answer expands without measure")
        return unpacked


async def connect(
    base_url: str, proxy: Proxy | None, secure: ssl.SSLContext | None, address: str | None = None
) -> Line:
    """A new connection to where `base_url` lies, through the proxy if there is one.

    With an `address` it is to that very one: nobody resolves the name again, neither this machine nor the proxy, which
    is asked for a tunnel to it. The certificate must bear the name all the same, and the request names it.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    port = parts.port or (443 if secure else 80)
    spelled = f"[{host}]" if ":" in host else host
    place = f"{spelled}:{parts.port}" if parts.port else spelled
    target = (f"[{address}]" if ":" in address else address) if address else spelled
    tunnelled = proxy is not None and (secure is not None or address is not None)
    try:
        with anyio.fail_after(CONNECT_S):
            stream: ByteStream = await anyio.connect_tcp(
                proxy.host if proxy else address or host, proxy.port if proxy else port
            )
            try:
                if proxy and tunnelled:
                    await _tunnel(stream, f"{target}:{port}", proxy)
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
    plain_proxy = proxy if not tunnelled else None
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
        reading = await line.ask("CONNECT", target, headers, None, CONNECT_S)
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
    if host in ("localhost", "127.0.0.1", "::1") or host.endswith(".localhost"):
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

    plain = unquote(password or "")
    token = base64.b64encode(f"{unquote(user)}:{plain}".encode()).decode()
    redact.learn([plain, token])
    return f"Basic {token}"


def _why(place: str, error: OSError) -> str:
    if "CERTIFICATE_VERIFY" in str(error).upper():
        return f"the certificate of {place} is not trusted"
    if type(error).__name__ == "gaierror":
        return f"the name {place} cannot be resolved"
    return f"{place} cannot be reached ({error.strerror or 'refused'})"
