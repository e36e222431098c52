"""A server at an address, by streamable HTTP. The SDK speaks; here are the limits, the proxy and what went wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from ...providers.http import line
from .links import MAX_MESSAGE, Unusable

if TYPE_CHECKING:
    import httpx2

    from .config import ServerConfig

CONNECT_S = 10.0
SILENCE_S = 300.0
"""The longest pause in a stream. A call has its own limit; the stream on which the server speaks up may idle."""

GOODBYE_S = 0.3
"""For telling the server that its session is over."""


@asynccontextmanager
async def reached(config: ServerConfig) -> AsyncIterator[HttpLink]:
    """Carry messages until the context ends."""
    from mcp.client.streamable_http import streamable_http_client

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
                scope.deadline = min(scope.deadline, anyio.current_time() + GOODBYE_S)


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

    async def hang_up(self) -> None:
        """The SDK says goodbye when the context ends."""

    async def check(self, response: httpx2.Response) -> None:
        """Look at an answer's head before anything of its body is read."""
        self._status = response.status_code if response.status_code >= 400 else None
        if response.status_code == 404 and "mcp-session-id" in response.request.headers:
            self._forgotten = True
            self.ended.set()
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Unusable("it sent a compressed answer, which it was asked not to do")
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _bounded(response.stream)


def _client(config: ServerConfig, link: HttpLink) -> httpx2.AsyncClient:
    """Reads certificates and may ask the system for its proxy, so it runs in a thread."""
    import httpx2

    assert config.url is not None
    try:
        proxy = line.proxy_for(config.url)
        secure = line.trusted() if config.url.lower().startswith("https:") else False
    except (OSError, ValueError, line.Unreachable) as error:
        raise Unusable(f"proxy or certificates are set up wrongly ({error})") from error
    return httpx2.AsyncClient(
        headers={"accept-encoding": "identity", "user-agent": "sidecar", **config.headers},
        timeout=httpx2.Timeout(CONNECT_S, read=SILENCE_S),
        proxy=_proxy(proxy) if proxy else None,
        verify=secure,
        trust_env=False,
        follow_redirects=False,
        max_redirects=0,
        event_hooks={"response": [link.check]},
    )


def _proxy(proxy: line.Proxy) -> httpx2.Proxy:
    import httpx2

    login = {"proxy-authorization": proxy.authorization} if proxy.authorization else None
    host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
    return httpx2.Proxy(f"http://{host}:{proxy.port}", headers=login)


def _bounded(stream: Any) -> Any:
    """The same bytes, up to as many as a message may have. A stream of events is bounded by the SDK."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > MAX_MESSAGE:
                    raise Unusable(f"it sent a message of more than {MAX_MESSAGE >> 20} MiB")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
