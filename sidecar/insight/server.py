"""Serves the page on loopback: its files, calls of the contract that it may make, and news as server-sent events.

Asks the sidecar through `call`, which the command gives; `guard` decides who gets an answer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketStream
from sidecar_client import RpcError, SidecarDied

from sidecar.fake_provider.wire import CLIENT_GONE, RawRequest, Wire

from .files import find_asset, read_assets
from .guard import ENTRY, SECURITY_HEADERS, Guard
from .methods import ALLOWED

MAX_BODY_BYTES = 1024 * 1024
KEEP_ALIVE_S = 15.0  # seconds after which a silent stream of events gets a comment

Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]

# A page of its own, and no redirect: after a link from another site, SameSite=Strict keeps the cookie from a redirect.
_ENTERED = b'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>Sidecar</title>'


class PageCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the page posts."""

    method: str
    params: dict[str, Any] = {}


class InsightServer:
    """One server on a port of its own; `guard.address` opens it once."""

    def __init__(self, call: Call, port: int, database: str) -> None:
        self.guard = Guard(port)
        self._call = call
        self._database = database
        self._assets = read_assets()
        self._news = anyio.Event()

    def tell(self) -> None:
        """Something has changed: every open page reads again what it shows."""
        self._news.set()
        self._news = anyio.Event()

    async def serve(self, stream: SocketStream) -> None:
        """Answer the requests of one connection."""
        async with stream:
            wire = Wire(stream, 0)
            try:
                while (request := await wire.next_request(MAX_BODY_BYTES)) is not None:
                    await self._answer(wire, request)
                    if not await wire.ready_for_next():
                        return
            except CLIENT_GONE:
                pass  # the browser has left

    async def _answer(self, wire: Wire, request: RawRequest) -> None:
        path, headers = request.target, request.headers
        if not self.guard.is_ours(request.method, path, headers):
            await _refuse(wire, 403)
        elif request.method == "GET" and path.startswith(ENTRY):
            await self._enter(wire, path)
        elif not self.guard.is_known(headers):
            await _refuse(wire, 401)
        elif request.method == "POST" and path == "/call":
            await self._pass_on(wire, request)
        elif request.method != "GET":
            await _refuse(wire, 405)
        elif path == "/events":
            await self._stream_news(wire)
        else:
            await self._send_file(wire, path)

    async def _enter(self, wire: Wire, path: str) -> None:
        cookie = self.guard.exchange(path)
        if cookie is None:
            await _refuse(wire, 401)
            return
        headers = {**SECURITY_HEADERS, "content-type": "text/html; charset=utf-8", "set-cookie": cookie}
        await wire.respond(200, headers, _ENTERED)

    async def _send_file(self, wire: Wire, path: str) -> None:
        asset = find_asset(self._assets, path)
        if asset is None:
            await _refuse(wire, 404)
            return
        await wire.respond(200, {**SECURITY_HEADERS, "content-type": asset.content_type}, asset.body)

    async def _pass_on(self, wire: Wire, request: RawRequest) -> None:
        if request.headers.get("content-type") != "application/json" or request.too_large:
            await _refuse(wire, 415 if not request.too_large else 413)
            return
        try:
            asked = msgspec.json.decode(request.body, type=PageCall)
        except msgspec.DecodeError:
            await _refuse(wire, 400)
            return
        if asked.method == "insight/about":
            await _send_json(wire, {"result": {"database": self._database}})
        elif asked.method not in ALLOWED:
            await _refuse(wire, 403)
        else:
            await _send_json(wire, await self._outcome(asked))

    async def _outcome(self, asked: PageCall) -> dict[str, Any]:
        try:
            return {"result": await self._call(asked.method, asked.params)}
        except RpcError as error:
            return {"error": {"name": error.name, "message": str(error)}}
        except SidecarDied as death:
            return {"error": {"name": "gone", "message": str(death)}}

    async def _stream_news(self, wire: Wire) -> None:
        """Send a line for every change until the browser leaves."""
        await wire.start(200, {**SECURITY_HEADERS, "content-type": "text/event-stream"})
        async with anyio.create_task_group() as tasks:

            async def send() -> None:
                line = b"retry: 1000\n\n"
                while True:
                    news = self._news
                    await wire.data(line)
                    line = b": nothing new\n\n"
                    with anyio.move_on_after(KEEP_ALIVE_S):
                        await news.wait()
                        line = b"event: changed\ndata: {}\n\n"

            async def leave_with_browser() -> None:
                await wire.watch()
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave_with_browser)
            try:
                await send()
            except CLIENT_GONE:
                tasks.cancel_scope.cancel()
        wire.open = False


@asynccontextmanager
async def open_insight(call: Call, database: str) -> AsyncIterator[InsightServer]:
    """Serve on a free port of 127.0.0.1 until the block is left."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        server = InsightServer(call, listener.extra(SocketAttribute.local_port), database)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, server.serve)
            yield server
            tasks.cancel_scope.cancel()


async def _send_json(wire: Wire, value: dict[str, Any]) -> None:
    await wire.respond(200, {**SECURITY_HEADERS, "content-type": "application/json"}, _encoded(value))


def _encoded(value: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a stored text with half a surrogate pair
        return json.dumps(msgspec.to_builtins(value)).encode()


async def _refuse(wire: Wire, status: int) -> None:
    await wire.respond(status, {**SECURITY_HEADERS, "connection": "close"}, b"")
