"""Requests to one provider over connections that are kept alive. Every failure is one of the contract's."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import msgspec

from ...model.failures import ProviderFailed
from ..connection import Connection
from . import line as http
from .faults import Trouble, error_of, failure, judged, retry_after
from .line import Broken, Line, Proxy, Reading, Silent, Unreachable

if TYPE_CHECKING:
    import ssl

KEEP_ALIVE_S = 60.0
"""Shorter than most servers' patience: a connection that they have closed is a request in vain."""

MAX_IDLE = 8
"""Connections that are kept for later."""

DRAIN_S = 0.5
"""For the few bytes after a reply's last event; then the connection is closed instead of kept."""

MAX_ERROR_BYTES = 16 * 1024
ERROR_S = 5.0
"""For the words of an error whose status is known already."""

MAX_JSON_BYTES = 4 * 1024 * 1024
"""A list of models is a megabyte at most."""

Take = Callable[[bytes], Awaitable[bool]]


class Transport:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._prefix = urlsplit(connection.base_url).path.rstrip("/")
        self._idle: list[Line] = []
        self._route: tuple[Proxy | None, ssl.SSLContext | None] | None = None
        self._closed = False

    async def close(self) -> None:
        """Others have taken this one's place: nothing is kept for later."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    async def warm(self) -> None:
        """Open a connection ahead of the first request."""
        if self._route is None:
            try:
                line = await self._line()
            except Unreachable:
                return
            line.used = True  # it idles from now on, and a server that is tired of it may close it
            self._idle.append(line)

    async def post(self, path: str, headers: dict[str, str], body: bytes, model: str, take: Take) -> None:
        """Send `body` and hand out the answer's bytes as they come, until `take` says that it has all."""
        await self._exchange("POST", path, headers, body, model, take)

    async def get(self, path: str, headers: dict[str, str], seconds: float) -> Any:
        """The JSON document at `path`."""
        return await self._document("GET", path, headers, None, seconds)

    async def ask(self, path: str, headers: dict[str, str], question: Any, seconds: float) -> Any:
        """The JSON document that answers another one."""
        sent = {"content-type": "application/json", **headers}
        return await self._document("POST", path, sent, msgspec.json.encode(question), seconds)

    async def _document(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None, seconds: float
    ) -> Any:
        """Any JSON; cut at the bound, it is none."""
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
        patience = self._connection.timeout
        try:
            line, reading = await self._asked(method, self._prefix + path, sent, body, patience)
            try:
                await self._receive(line, reading, model, take)
            finally:
                await self._put_back(line)
        except Unreachable as error:
            raise failure("offline", str(error), self._connection, model=model) from error
        except Silent as error:
            raise failure(
                "timeout", f"said nothing for {patience:g} s", self._connection, model=model
            ) from error
        except Broken as error:
            raise failure("stream_cut", str(error), self._connection, model=model) from error
        except zlib.error as error:
            raise failure(
                "bad_reply", "its answer cannot be decompressed", self._connection, model=model
            ) from error

    async def _asked(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None, patience: float
    ) -> tuple[Line, Reading]:
        """A connection on which the request was sent and answered. One that was closed while it idled is no
        failure: the request goes out again on a fresh one."""
        while True:
            line = await self._line()
            try:
                return line, await line.ask(method, target, headers, body, patience)
            except Broken as error:
                await line.close()
                if not (line.used and error.unanswered):
                    raise
            except BaseException:
                await line.close()
                raise

    async def _line(self) -> Line:
        while self._idle:
            line = self._idle.pop()
            if anyio.current_time() - line.idle_since < KEEP_ALIVE_S and line.is_quiet():
                return line
            await line.close()
        if self._route is None:
            self._route = _route(self._connection.base_url)
        return await http.connect(self._connection.base_url, *self._route)

    async def _put_back(self, line: Line) -> None:
        if line.reusable and len(self._idle) < MAX_IDLE and not self._closed:
            self._idle.append(line)
        else:
            await line.close()

    async def _receive(self, line: Line, reading: Reading, model: str | None, take: Take) -> None:
        if reading.answer.status >= 300:
            raise await self._refusal(line, reading, model)
        patience = self._connection.timeout
        heard = anyio.current_time()
        while True:
            data = reading.take()
            if data:
                heard = anyio.current_time()
                if await take(data):
                    break
            if reading.answer.is_complete:
                break
            if anyio.current_time() - heard > patience:
                raise Silent  # bytes come, and none of them is of the answer
            await reading.more(patience)
        try:
            with anyio.move_on_after(DRAIN_S):
                while not reading.answer.is_complete:
                    await reading.more(DRAIN_S)
                    reading.take()
        except (Broken, Silent, zlib.error):
            return  # what was wanted is here; the connection is just not kept
        line.finished(reading)

    async def _refusal(self, line: Line, reading: Reading, model: str | None) -> ProviderFailed:
        answer = reading.answer
        if answer.status < 400:
            said = f"it redirects (HTTP {answer.status}); give the address that it leads to as its base_url"
            return failure("bad_reply", said, self._connection, model=model, status=answer.status)
        if answer.status == 407:
            return failure("offline", "the proxy wants a login (HTTP 407)", self._connection, model=model)
        body = reading.take()
        with suppress(Broken, Silent, zlib.error), anyio.move_on_after(ERROR_S):
            while not answer.is_complete and len(body) < MAX_ERROR_BYTES:
                await reading.more(ERROR_S)
                body += reading.take()
        if answer.is_complete:
            line.finished(reading)
        code, message = error_of(body)
        trouble = Trouble(answer.status, code, message, retry_after(answer.headers))
        return judged(trouble, self._connection, model)


def _route(base_url: str) -> tuple[Proxy | None, ssl.SSLContext | None]:
    """The proxy and the certificates for an address; what the environment says of them may be nonsense."""
    try:
        secure = http.trusted() if urlsplit(base_url).scheme == "https" else None
        return http.proxy_for(base_url), secure
    except (OSError, ValueError) as error:
        raise Unreachable(f"proxy or certificates are set up wrongly ({error})") from error
