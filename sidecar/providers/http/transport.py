"""Requests to one provider over keep-alive connections. Every failure is mapped to one of the protocol's."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import msgspec

from ...model.failures import ProviderFailed
from ..endpoint import Endpoint
from . import connection as http
from .connection import ConnectionBroken, ConnectionSilent, HttpConnection, Proxy, ResponseReader, Unreachable
from .errors import ProviderError, classify, failure, parse_error_body, retry_after

if TYPE_CHECKING:
    import ssl

KEEP_ALIVE_S = 60.0
"""Shorter than the idle timeout of most servers: a request on a closed connection would fail."""

MAX_IDLE = 8
"""Idle connections that are kept for reuse."""

DRAIN_S = 0.5
"""For the few bytes after the last event of a reply; then the connection is closed instead of reused."""

MAX_ERROR_BYTES = 16 * 1024
ERROR_S = 5.0
"""For the body of an error whose status is known already."""

MAX_JSON_BYTES = 4 * 1024 * 1024
"""A list of models is a megabyte at most."""

Take = Callable[[bytes], Awaitable[bool]]


class Transport:
    def __init__(self, connection: Endpoint) -> None:
        self._connection = connection
        self._prefix = urlsplit(connection.base_url).path.rstrip("/")
        self._idle: list[HttpConnection] = []
        self._route: tuple[Proxy | None, ssl.SSLContext | None] | None = None
        self._closed = False

    async def close(self) -> None:
        """Close: this transport was replaced, and keeps no idle connections."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    async def warm(self) -> None:
        """Open a connection before the first request."""
        if self._route is None:
            try:
                line = await self._take_connection()
            except Unreachable:
                return
            line.used = True  # it is idle from now on, and the server may close it
            self._idle.append(line)

    async def post(self, path: str, headers: dict[str, str], body: bytes, model: str, take: Take) -> None:
        """Send `body` and pass on the bytes of the response as they come, until `take` says that it is complete."""
        await self._exchange("POST", path, headers, body, model, take)

    async def get(self, path: str, headers: dict[str, str], seconds: float) -> Any:
        """Return the JSON document at `path`."""
        return await self._document("GET", path, headers, None, seconds)

    async def ask(self, path: str, headers: dict[str, str], question: Any, seconds: float) -> Any:
        """Return the JSON response to a JSON request."""
        sent = {"content-type": "application/json", **headers}
        return await self._document("POST", path, sent, msgspec.json.encode(question), seconds)

    async def _document(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None, seconds: float
    ) -> Any:
        """Parse any JSON; a document over the limit is truncated and fails."""
        received = bytearray()

        async def take(data: bytes) -> bool:
            received.extend(data)
            return len(received) > MAX_JSON_BYTES

        with anyio.move_on_after(seconds) as scope:
            await self._exchange(method, path, headers, body, None, take)
        if scope.cancelled_caught:
            raise failure("timeout", f"no answer within {seconds:g} s", self._connection)
        try:
            return msgspec.json.decode(received)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise failure("bad_reply", "its answer is not JSON", self._connection) from error

    async def _exchange(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes | None,
        model: str | None,
        take: Take,
    ) -> None:
        own = {name.lower(): value for name, value in self._connection.headers.items()}
        sent = {"accept-encoding": "identity", "user-agent": "sidecar", **headers, **own}
        timeout = self._connection.timeout
        try:
            line, reading = await self._send_request(method, self._prefix + path, sent, body, timeout)
            try:
                await self._receive(line, reading, model, take)
            finally:
                await self._return_connection(line)
        except Unreachable as error:
            raise failure("offline", str(error), self._connection, model=model) from error
        except ConnectionSilent as error:
            raise failure(
                "timeout", f"said nothing for {timeout:g} s", self._connection, model=model
            ) from error
        except ConnectionBroken as error:
            raise failure("stream_cut", str(error), self._connection, model=model) from error
        except zlib.error as error:
            raise failure(
                "bad_reply", "its answer cannot be decompressed", self._connection, model=model
            ) from error

    async def _send_request(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None, timeout: float
    ) -> tuple[HttpConnection, ResponseReader]:
        """Return a connection on which the request was sent and answered. One that was closed while idle is no
        failure: the request is sent again on a fresh one.
        """
        while True:
            line = await self._take_connection()
            try:
                return line, await line.ask(method, target, headers, body, timeout)
            except ConnectionBroken as error:
                await line.close()
                # Sent again only when no byte of an answer came on a connection that was idle: otherwise the model
                # may have run, and would be paid twice.
                if not (line.used and error.unanswered):
                    raise
            except BaseException:
                await line.close()
                raise

    async def _take_connection(self) -> HttpConnection:
        while self._idle:
            line = self._idle.pop()
            # The newest first: it is the least likely to have been closed by the server.
            if anyio.current_time() - line.idle_since < KEEP_ALIVE_S and line.is_quiet():
                return line
            await line.close()
        if self._route is None:
            self._route = _route(self._connection.base_url)
        return await http.connect(self._connection.base_url, *self._route)

    async def _return_connection(self, line: HttpConnection) -> None:
        if line.reusable and len(self._idle) < MAX_IDLE and not self._closed:
            self._idle.append(line)
        else:
            await line.close()

    async def _receive(
        self, line: HttpConnection, reading: ResponseReader, model: str | None, take: Take
    ) -> None:
        if reading.answer.status >= 300:
            raise await self._read_error(line, reading, model)
        timeout = self._connection.timeout
        last_line_at = anyio.current_time()
        while True:
            data = reading.take()
            if data:
                last_line_at = anyio.current_time()
                if await take(data):
                    break
            if reading.answer.is_complete:
                break
            if anyio.current_time() - last_line_at > timeout:
                raise ConnectionSilent  # bytes come, but none of the response
            await reading.more(timeout)
        try:
            with anyio.move_on_after(DRAIN_S):
                while not reading.answer.is_complete:
                    await reading.more(DRAIN_S)
                    reading.take()
        except (ConnectionBroken, ConnectionSilent, zlib.error):
            return  # the response is complete; only the connection is not reused
        line.mark_finished(reading)

    async def _read_error(
        self, line: HttpConnection, reading: ResponseReader, model: str | None
    ) -> ProviderFailed:
        answer = reading.answer
        if answer.status < 400:
            said = f"it redirects (HTTP {answer.status}); give the address that it leads to as its base_url"
            return failure("bad_reply", said, self._connection, model=model, status=answer.status)
        if answer.status == 407:
            return failure("offline", "the proxy wants a login (HTTP 407)", self._connection, model=model)
        body = reading.take()
        with suppress(ConnectionBroken, ConnectionSilent, zlib.error), anyio.move_on_after(ERROR_S):
            while not answer.is_complete and len(body) < MAX_ERROR_BYTES:
                await reading.more(ERROR_S)
                body += reading.take()
        if answer.is_complete:
            line.mark_finished(reading)
        code, message = parse_error_body(body)
        trouble = ProviderError(answer.status, code, message, retry_after(answer.headers))
        return classify(trouble, self._connection, model)


def _route(base_url: str) -> tuple[Proxy | None, ssl.SSLContext | None]:
    """Return the proxy and the certificates for a URL; the environment's values may be invalid."""
    try:
        secure = http.tls_context() if urlsplit(base_url).scheme == "https" else None
        return http.proxy_for(base_url), secure
    except (OSError, ValueError) as error:
        raise Unreachable(f"proxy or certificates are set up wrongly ({error})") from error
