"""One connection: HTTP/1.1 by h11 on a socket, and the ways to break it. Knows no API.

What h11 would never send (half a head, a broken chunk) is sent with `raw`; after that the connection is closed.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream

READ_BYTES = 65_536
MAX_PIPELINED_BYTES = 1024 * 1024  # what a client may send ahead during a response; more waits in the kernel
CLOSE_S = 2.0  # seconds that a client has to read the last bytes before the socket is closed

_NO_LINGER = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)

CLIENT_GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass
class RawRequest:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    too_large: bool = False


class Wire:
    """`finished` is true from the moment that the last byte of a response is sent."""

    def __init__(self, stream: SocketStream, number: int) -> None:
        self.number = number
        self.open = True
        self.finished = False
        self.started = False
        self._stream = stream
        self._http = h11.Connection(h11.SERVER)

    async def next_request(self, limit: int) -> RawRequest | None:
        """Return the next request of the connection; None when the client has disconnected or does not speak HTTP."""
        self.finished = self.started = False
        try:
            head = await self._event()
            if not isinstance(head, h11.Request):
                return None
            return await self._read_body(head, limit)
        except (*CLIENT_GONE, h11.RemoteProtocolError):
            return None

    async def _read_body(self, head: h11.Request, limit: int) -> RawRequest:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        body, size = bytearray(), 0
        while isinstance(data := await self._event(), h11.Data):
            size += len(data.data)
            if size <= limit:  # the rest is read and dropped, so that the refusal reaches the client
                body += data.data
        return RawRequest(
            head.method.decode(), head.target.decode("latin-1"), headers, bytes(body), size > limit
        )

    async def _event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        while True:
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                await self._stream.send(self._http.send(go_on) or b"")
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            try:
                data = await self._stream.receive(READ_BYTES)
            except anyio.EndOfStream:
                data = b""
            self._http.receive_data(data)

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole response, with its length."""
        head = self._head(status, {**headers, "content-length": str(len(body))})
        self.finished = self.started = True
        data = [
            self._http.send(head),
            self._http.send(h11.Data(data=body)),
            self._http.send(h11.EndOfMessage()),
        ]
        await self._stream.send(b"".join(part or b"" for part in data))

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of a response of unknown length: it is sent in chunks."""
        self.started = True
        await self._stream.send(self._http.send(self._head(status, headers)) or b"")

    async def data(self, data: bytes) -> None:
        if data:
            await self._stream.send(self._http.send(h11.Data(data=data)) or b"")

    async def finish(self, data: bytes = b"") -> None:
        """Send the last bytes and the end in one write: a client that disconnects after them did not close early."""
        last = (self._http.send(h11.Data(data=data)) or b"") if data else b""
        last += self._http.send(h11.EndOfMessage()) or b""
        self.finished = True
        await self._stream.send(last)

    async def raw(self, data: bytes) -> None:
        self.started = True
        await self._stream.send(data)

    async def close(self) -> None:
        """Close as a server does: what was sent arrives, then the end."""
        self.open = False
        with anyio.move_on_after(CLOSE_S, shield=True):
            await self._stream.send_eof()
        await self._stream.aclose()

    async def reset(self) -> None:
        """Close with RST: SO_LINGER of zero tells the kernel to drop the connection."""
        self.open = False
        raw = self._stream.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        await anyio.aclose_forcefully(self._stream)

    async def watch(self) -> None:
        """Return when the client closes its end. What it sends ahead waits for the next request."""
        ahead = 0
        while ahead < MAX_PIPELINED_BYTES:
            try:
                data = await self._stream.receive(READ_BYTES)
            except CLIENT_GONE:
                return
            ahead += len(data)
            self._http.receive_data(data)
        await anyio.sleep_forever()

    async def ready_for_next(self) -> bool:
        """Return whether the connection stays open; if not, it is closed once the client has read everything."""
        if not self.open:
            return False
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            return True
        with anyio.move_on_after(CLOSE_S):
            await self._stream.send_eof()
            await self.watch()
        return False

    @staticmethod
    def _head(status: int, headers: Mapping[str, str]) -> h11.Response:
        return h11.Response(status_code=status, headers=[*headers.items()], reason=_REASONS.get(status, b""))


_REASONS = {
    200: b"OK",
    302: b"Found",
    400: b"Bad Request",
    401: b"Unauthorized",
    402: b"Payment Required",
    403: b"Forbidden",
    404: b"Not Found",
    408: b"Request Timeout",
    413: b"Payload Too Large",
    415: b"Unsupported Media Type",
    429: b"Too Many Requests",
    500: b"Internal Server Error",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    529: b"Overloaded",
}
