"""One HTTP/1.1 connection to a provider: sockets by anyio, parsing by httptools (Node's parser, in C).

httpx2 and its transport would do this too. Measured here they cost 40 to 80 ms of import, which delays the first
token of a fresh process, and 45 µs per chunk where this costs 3: a stream is nothing but small chunks. A provider
needs little of HTTP: a request with a body, a streamed response, keep-alive, TLS, a proxy.
"""

from __future__ import annotations

import base64
import select
import ssl
import sys
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import anyio
import anyio.abc
import msgspec
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from ...system import redact
from ...system.lazy import lazy_module

if TYPE_CHECKING:
    from urllib import request as urllib_request

    import httptools
    import truststore
else:
    httptools = lazy_module("httptools")
    truststore = lazy_module("truststore")
    urllib_request = lazy_module("urllib.request")

CONNECT_S = 10.0
"""A host that does not accept a connection within this time counts as unreachable."""

READ_BYTES = 64 * 1024
MAX_HEAD_BYTES = 256 * 1024
"""Bytes of the headers of a response; more is not HTTP."""

MAX_DECOMPRESSED_BYTES = 8 * 1024 * 1024
"""What one read of a compressed response may expand to: text shrinks to a tenth, not to a hundredth."""

COMPRESSED_ENCODINGS = ("gzip", "x-gzip", "deflate")

BIG_BYTES = 256 * 1024
"""A larger request may be refused while it is sent, so both directions are watched."""

MIN_SEND_RATE = 100 * 1024
EARLY_ANSWER_S = 1.0
"""How long to wait for the response of a server that no longer reads the request."""


class Unreachable(Exception):
    """No connection could be made, and why."""


class ConnectionBroken(Exception):
    """The connection ended before the response did, or the response is not HTTP."""

    def __init__(self, why: str, *, unanswered: bool = False) -> None:
        super().__init__(why)
        self.unanswered = unanswered
        """Whether no byte of a response had come."""


class ConnectionSilent(Exception):
    """Nothing came within the timeout of the caller."""


class Proxy(msgspec.Struct, frozen=True):
    host: str
    port: int
    authorization: str | None


class Response:
    """What has been received of one response. The parser calls the methods."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_head_complete = False
        self.is_complete = False
        self.keeps_alive = False
        self.bodies: list[bytes] = []
        self.seen = 0
        self.parser: httptools.HttpResponseParser | None = None

    def on_message_begin(self) -> None:
        if self.is_complete:
            self.keeps_alive = False  # an unsolicited response would be taken for the next one

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.is_head_complete:  # what follows a body is ignored, and could be endless
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
            # 100 Continue and 103 Early Hints precede the response proper.
            self.status, self.headers, self.is_head_complete = 0, {}, False
        elif not self.is_complete:
            self.is_complete = True
            self.keeps_alive = self.parser is not None and self.parser.should_keep_alive()

    @property
    def ends_with_connection(self) -> bool:
        return not {"content-length", "transfer-encoding"} & self.headers.keys()


class HttpConnection:
    """A connection that takes one request at a time."""

    def __init__(self, stream: ByteStream, host: str, prefix: str, extra: dict[str, str]) -> None:
        self._stream = stream
        self._host = host
        self._prefix = prefix
        self._extra = extra
        self.used = False
        """Whether it has been idle: then the server may have closed it unnoticed."""
        self.reusable = False
        self.idle_since = anyio.current_time()

    async def ask(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None, timeout: float
    ) -> ResponseReader:
        """Send a request, and return its response up to the end of its headers."""
        self.reusable = False
        lines = {"host": self._host, **headers, **self._extra}
        if body is not None:
            lines["content-length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        data = f"{method} {self._prefix}{target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + (body or b"")
        # A server that refuses a large body stops reading: who only sends would wait for it until the
        # timeout.
        if len(data) > BIG_BYTES:
            return await self._ask_while_sending(data, timeout + len(data) / MIN_SEND_RATE)
        try:
            await self._send(data, timeout)
        except ConnectionBroken:
            # Some servers refuse a request before they have read it: the refusal may have arrived.
            with suppress(ConnectionBroken, ConnectionSilent):
                return await self.head(EARLY_ANSWER_S)
            raise
        return await self.head(timeout)

    async def _ask_while_sending(self, data: bytes, timeout: float) -> ResponseReader:
        """Send a large request, which may be refused before it is complete; then stop sending."""
        failed: list[Exception] = []
        reading: ResponseReader | None = None

        async def send() -> None:
            try:
                await self._send(data, timeout)
            except (ConnectionBroken, ConnectionSilent) as error:
                failed.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            try:
                reading = await self.head(timeout)
            except (ConnectionBroken, ConnectionSilent) as error:
                failed.append(error)
            # The answer is there: whatever of the request is unsent is not wanted.
            tasks.cancel_scope.cancel()
        if reading is None:
            raise failed[0]
        return reading

    async def _send(self, data: bytes, timeout: float) -> None:
        try:
            with anyio.fail_after(timeout):
                await self._stream.send(data)
        except TimeoutError as error:
            raise ConnectionSilent from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise ConnectionBroken("it closed the connection before the answer", unanswered=True) from error

    async def head(self, timeout: float) -> ResponseReader:
        """Return the response up to the end of its headers, which must all come within this time."""
        reading = ResponseReader(self._stream)
        try:
            with anyio.fail_after(timeout):
                while not reading.answer.is_head_complete:
                    await reading.more(timeout)
        except TimeoutError as error:
            raise ConnectionSilent from error
        return reading

    def mark_finished(self, reading: ResponseReader) -> None:
        """Mark the response as complete: the connection may be reused."""
        self.used = True
        self.reusable = reading.answer.keeps_alive
        self.idle_since = anyio.current_time()

    def is_quiet(self) -> bool:
        """Return whether nothing has come since the last response: no end, and no unsolicited bytes."""
        raw = self._stream.extra(anyio.abc.SocketAttribute.raw_socket, None)
        if raw is None or self.is_fresh:
            return True
        return not select.select([raw], [], [], 0)[0]

    @property
    def is_fresh(self) -> bool:
        """Return whether it has carried no response yet. Over TLS, session tickets come unsolicited after the
        handshake.
        """
        return not self.reusable

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            # Forcefully: an orderly end of TLS waits for the other side.
            await anyio.aclose_forcefully(self._stream)


class ResponseReader:
    """A response while it is read."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._error = httptools.HttpParserError
        self.answer = Response()
        self._parser = self.answer.parser = httptools.HttpResponseParser(self.answer)
        self._unpacker: zlib._Decompress | None = None

    async def more(self, timeout: float) -> None:
        """Read once and parse it."""
        answer = self.answer
        try:
            with anyio.fail_after(timeout):
                data = await self._stream.receive(READ_BYTES)
        except TimeoutError as error:
            raise ConnectionSilent from error
        except anyio.EndOfStream as error:
            # Without a length the end of the connection is the end of the body; in any other case it is a cut.
            if answer.is_head_complete and answer.ends_with_connection:
                answer.is_complete = True
                return
            raise ConnectionBroken(
                "it closed the connection before the answer's end", unanswered=not answer.seen
            ) from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise ConnectionBroken(
                "the connection was reset before the answer's end", unanswered=not answer.seen
            ) from error
        answer.seen += len(data)
        try:
            self._parser.feed_data(data)
        except self._error as error:
            answer.keeps_alive = False
            if not answer.is_complete:
                raise ConnectionBroken("its answer is not valid HTTP") from error
        if not answer.is_head_complete and answer.seen > MAX_HEAD_BYTES:
            raise ConnectionBroken("its answer's headers do not end")

    def take(self) -> bytes:
        """Return the bytes of the body since the last call."""
        bodies, self.answer.bodies = self.answer.bodies, []
        data = b"".join(bodies)
        if (
            not data
            or self.answer.headers.get("content-encoding", "identity").lower() not in COMPRESSED_ENCODINGS
        ):
            return data
        # Compressed although we asked for identity. Unlimited expansion is refused.
        self._unpacker = self._unpacker or zlib.decompressobj(zlib.MAX_WBITS | 32)
        unpacked = self._unpacker.decompress(data, MAX_DECOMPRESSED_BYTES)
        if self._unpacker.unconsumed_tail:
            raise ConnectionBroken("its answer expands without measure")
        return unpacked


async def connect(
    base_url: str, proxy: Proxy | None, secure: ssl.SSLContext | None, address: str | None = None
) -> HttpConnection:
    """Open a new connection to `base_url`, through the proxy if there is one.

    With an `address` it connects to that IP address: the name is not resolved again, neither here nor by the proxy,
    which gets a tunnel request for the address. The certificate must still match the name, and the request names it.
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
                    stream = await _start_tls(stream, host, secure)
            except BaseException:
                # Also on cancellation: nothing else refers to the socket yet, so it would leak.
                with anyio.CancelScope(shield=True):
                    await anyio.aclose_forcefully(stream)
                raise
    except TimeoutError as error:
        raise Unreachable(f"{place} does not answer") from error
    except OSError as error:
        raise Unreachable(_connect_error(place, error)) from error
    except (anyio.BrokenResourceError, anyio.EndOfStream) as error:
        raise Unreachable(f"{place} closed the connection") from error
    plain_proxy = proxy if not tunnelled else None
    extra = (
        {"proxy-authorization": plain_proxy.authorization}
        if plain_proxy and plain_proxy.authorization
        else {}
    )
    return HttpConnection(stream, place, f"http://{place}" if plain_proxy else "", extra)


async def _tunnel(stream: ByteStream, target: str, proxy: Proxy) -> None:
    line = HttpConnection(stream, target, "", {})
    headers = {"proxy-authorization": proxy.authorization} if proxy.authorization else {}
    try:
        reading = await line.ask("CONNECT", target, headers, None, CONNECT_S)
    except (ConnectionBroken, ConnectionSilent) as error:
        raise Unreachable(f"the proxy {proxy.host} does not answer") from error
    if reading.answer.status != 200:
        raise Unreachable(f"the proxy {proxy.host} refused (HTTP {reading.answer.status})")


async def _start_tls(stream: ByteStream, host: str, secure: ssl.SSLContext) -> ByteStream:
    # Not `standard_compatible`: many servers close without the goodbye of TLS.
    return await TLSStream.wrap(stream, hostname=host, ssl_context=secure, standard_compatible=False)


def tls_context() -> ssl.SSLContext:
    """TLS by the certificates that the operating system trusts, or those that SSL_CERT_FILE names."""
    if sys.platform in ("darwin", "win32"):
        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()


def proxy_for(base_url: str) -> Proxy | None:
    """Return the proxy for this URL by the environment or the system's settings; loopback needs none."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if host in ("localhost", "127.0.0.1", "::1") or host.endswith(".localhost"):
        return None
    proxies = urllib_request.getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not found or urllib_request.proxy_bypass(host if ":" in host else f"{host}:{port}"):
        return None
    address = urlsplit(found if "://" in found else f"http://{found}")
    if address.scheme != "http" or not address.hostname:
        raise Unreachable(
            f"the proxy {address.scheme}://{address.hostname} is of a kind that is not supported"
        )
    return Proxy(
        address.hostname, address.port or 80, _basic_authorization(address.username, address.password)
    )


def _basic_authorization(user: str | None, password: str | None) -> str | None:
    if user is None:
        return None

    plain = unquote(password or "")
    token = base64.b64encode(f"{unquote(user)}:{plain}".encode()).decode()
    redact.add_secrets([plain, token])
    return f"Basic {token}"


def _connect_error(place: str, error: OSError) -> str:
    if "CERTIFICATE_VERIFY" in str(error).upper():
        return f"the certificate of {place} is not trusted"
    if type(error).__name__ == "gaierror":
        return f"the name {place} cannot be resolved"
    return f"{place} cannot be reached ({error.strerror or 'refused'})"
