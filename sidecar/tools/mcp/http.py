"""A server with a URL, over streamable HTTP. The SDK implements the protocol; this adds limits, proxy and error
messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from mcp.client.streamable_http import streamable_http_client

from ...providers.http import connection
from .config import ServerConfig
from .links import MAX_MESSAGE, ServerUnusable

CONNECT_S = 10.0
READ_TIMEOUT_S = 300.0
"""Seconds: the longest pause in a stream. A call has its own limit; the stream for server messages may be idle."""

CLOSE_S = 0.3
"""Seconds to end the session at the server."""


@asynccontextmanager
async def open_http_link(config: ServerConfig) -> AsyncIterator[HttpLink]:
    """Transport messages until the context ends."""
    assert config.url is not None
    link = HttpLink()
    client = await anyio.to_thread.run_sync(_client, config, link, abandon_on_cancel=True)
    with anyio.CancelScope() as scope:
        async with (
            client,
            streamable_http_client(config.url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
        ):
            link.read, link.write = streams
            try:
                yield link
            finally:
                scope.deadline = min(scope.deadline, anyio.current_time() + CLOSE_S)


class HttpLink:
    def __init__(self) -> None:
        self.read: Any = None
        self.write: Any = None
        self.ended = anyio.Event()
        self.mark: str | None = None
        self._status: int | None = None
        self._forgotten = False

    def trouble(self) -> str | None:
        if self._forgotten:
            return "it has forgotten our session (HTTP 404)"
        if self._status is not None:
            return f"it answered with HTTP {self._status}"
        return None

    def kill(self) -> None:
        self.ended.set()

    async def disconnect(self) -> None:
        """Do nothing: the SDK ends the session when the context ends."""

    async def check(self, response: httpx2.Response) -> None:
        """Check the headers of a response before its body is read."""
        self._status = response.status_code if response.status_code >= 400 else None
        if response.status_code == 404 and "mcp-session-id" in response.request.headers:
            self._forgotten = True
            self.ended.set()
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ServerUnusable("it sent a compressed answer, which it was asked not to do")
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _bounded_stream(response.stream)


def _client(config: ServerConfig, link: HttpLink) -> httpx2.AsyncClient:
    """Build the client in a thread: it reads certificates and may query the system's proxy settings."""
    assert config.url is not None
    try:
        proxy = connection.proxy_for(config.url)
        secure = connection.tls_context() if config.url.lower().startswith("https:") else False
    except (OSError, ValueError, connection.Unreachable) as error:
        raise ServerUnusable(f"proxy or certificates are set up wrongly ({error})") from error
    return httpx2.AsyncClient(
        headers={"accept-encoding": "identity", "user-agent": "sidecar", **config.headers},
        timeout=httpx2.Timeout(CONNECT_S, read=READ_TIMEOUT_S),
        proxy=_proxy(proxy) if proxy else None,
        verify=secure,
        trust_env=False,
        follow_redirects=False,
        max_redirects=0,
        event_hooks={"response": [link.check]},
    )


def _proxy(proxy: connection.Proxy) -> httpx2.Proxy:
    login = {"proxy-authorization": proxy.authorization} if proxy.authorization else None
    host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
    return httpx2.Proxy(f"http://{host}:{proxy.port}", headers=login)


def _bounded_stream(stream: Any) -> Any:
    """Pass the bytes on, up to the size limit of a message. The SDK bounds a stream of events."""

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > MAX_MESSAGE:
                    raise ServerUnusable(f"it sent a message of more than {MAX_MESSAGE >> 20} MiB")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
