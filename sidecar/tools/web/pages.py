"""Pages for all chats of a process: a fresh copy, else the network, else an expired copy that is labelled as such.

Identical requests in flight share one. Only public pages are cached, never those of a private address. Each redirect
is a result of its own, so that the caller checks the permission for its target.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from typing import Literal, Protocol

import anyio
import anyio.to_thread
import msgspec

from ...model.failures import StorageFailed
from ...model.pages import WebPage
from ...settings.values import FetchSettings
from .addresses import AllowedHosts, Target
from .freshness import lifetime
from .reaching import Unavailable, Unreadable, WebClient, WebResponse
from .reading import check_type, error_excerpt, read_response

logger = logging.getLogger(__name__)

PageOrigin = Literal["network", "cache", "revalidated", "stale"]
CacheStatistic = Literal["hits", "revalidated", "stale", "misses"]

REDIRECTS = (301, 302, 303, 307, 308)
PAGE_ACCEPT = "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.7, */*;q=0.1"
JSON_ACCEPT = "application/json, */*;q=0.1"
ACCEPT_LANGUAGE = "en, *;q=0.5"

_STATISTIC_OF: dict[PageOrigin, CacheStatistic] = {
    "network": "misses",
    "cache": "hits",
    "revalidated": "revalidated",
    "stale": "stale",
}


class PageCache(Protocol):
    """The cache of fetched pages by key, with its statistics."""

    async def find(self, key: str) -> WebPage | None: ...
    async def put(self, key: str, page: WebPage, max_bytes: int) -> None: ...
    async def remove(self, key: str) -> None: ...
    async def count(self, outcome: CacheStatistic, key: str) -> None: ...


class PageStore(Protocol):
    """Stores fetched pages."""

    @property
    def web_pages(self) -> PageCache: ...


class FetchedPage(msgspec.Struct, frozen=True):
    """A page and where it came from; `why` is the error behind a stale copy. `private` says that it came from a
    private address.
    """

    page: WebPage
    how: PageOrigin
    why: str = ""
    private: bool = False


class PageRequest(msgspec.Struct, frozen=True):
    """A page request. `accept` is the only header that differs between requests, so it is part of the key."""

    target: Target
    settings: FetchSettings
    accept: str = PAGE_ACCEPT
    refresh: bool = False

    @property
    def key(self) -> str:
        """The key of the cache: address and relevant headers; credentials are never sent."""
        return sha256(f"{self.accept}\n{ACCEPT_LANGUAGE}\n{self.target.url}".encode()).hexdigest()


class _SharedFetch:
    def __init__(self) -> None:
        self.done = anyio.Event()
        self.outcome: FetchedPage | Exception | None = None
        """The result is None when the first caller was cancelled: then the next waiting caller sends the request."""


class PageFetcher:
    """`clock` returns seconds since 1970: a copy outlives the process, so a monotonic clock would not do."""

    def __init__(
        self, store: PageStore, reach: WebClient | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._reach = reach or WebClient()
        self._clock = clock
        self._shared_fetches: dict[tuple[str, ...], _SharedFetch] = {}

    async def get(self, wish: PageRequest) -> FetchedPage:
        """Return the page or redirect; raise AddressRefused, Unavailable or Unreadable."""
        kept = await self._cached_page(wish)
        now = self._now()
        if kept and not wish.refresh and kept.fetched_at <= now < kept.fresh_until:
            got = FetchedPage(kept, "cache")
        else:
            got = await self._fetch_shared(wish, partial(self._fetch, wish, kept))
        if wish.settings.cache_enabled and not got.private:
            await self._log_failures(self._store.web_pages.count(_STATISTIC_OF[got.how], wish.key))
        return got

    async def _fetch_shared(
        self, wish: PageRequest, fetch: Callable[[], Awaitable[FetchedPage]]
    ) -> FetchedPage:
        # With the permissions in the key: a chat that may not reach a private host must not get the answer of
        # one that may.
        key = (wish.key, *wish.settings.allow_private)
        # A loop: when the first caller was cancelled there is no outcome, and one of those who wait sends the
        # request.
        while (under_way := self._shared_fetches.get(key)) is not None:
            await under_way.done.wait()
            if isinstance(under_way.outcome, Exception):
                raise under_way.outcome
            if under_way.outcome is not None:
                return under_way.outcome
        flight = self._shared_fetches[key] = _SharedFetch()
        try:
            flight.outcome = await fetch()
            return flight.outcome
        except Exception as error:
            # Shared too: ten chats that ask for a broken page make one request.
            flight.outcome = error
            raise
        finally:
            del self._shared_fetches[key]
            flight.done.set()

    async def _fetch(self, wish: PageRequest, kept: WebPage | None) -> FetchedPage:
        headers = {"accept": wish.accept, "accept-language": ACCEPT_LANGUAGE, **_conditional_headers(kept)}
        if wish.refresh:
            headers["cache-control"] = "no-cache"
        allowed = AllowedHosts(wish.settings.allow_private)
        try:
            answer = await self._reach.get(wish.target, headers, allowed, wanted=check_type)
        except Unavailable as gone:
            if kept is None:
                raise
            return FetchedPage(kept, "stale", str(gone))
        if answer.status == 304 and kept is not None:
            return await self._revalidate(wish, kept, answer)
        if answer.status >= 500 and kept is not None:
            return FetchedPage(kept, "stale", f"{wish.target.place} answered HTTP {answer.status}.")
        page = await anyio.to_thread.run_sync(_page, wish.target.url, answer, abandon_on_cancel=True)
        return FetchedPage(await self._store_page(wish, page, answer), "network", private=answer.private)

    async def _revalidate(self, wish: PageRequest, kept: WebPage, answer: WebResponse) -> FetchedPage:
        """Refresh a copy after the server answered 304."""
        page = msgspec.structs.replace(
            kept,
            etag=answer.headers.get("etag", kept.etag),
            last_modified=answer.headers.get("last-modified", kept.last_modified),
        )
        return FetchedPage(
            await self._store_page(wish, page, msgspec.structs.replace(answer, status=page.status)),
            "revalidated",
        )

    async def _store_page(self, wish: PageRequest, page: WebPage, answer: WebResponse) -> WebPage:
        """Return the page with its times, and cache it when that is allowed."""
        settings, now = wish.settings, self._now()
        seconds = lifetime(answer.status, answer.headers, settings.cache_ttl, now / 1000)
        page = msgspec.structs.replace(page, fetched_at=now, fresh_until=now + int((seconds or 0) * 1000))
        # The cache is shared by all chats, and a private page is for those that may reach its host.
        if settings.cache_enabled and not answer.private:
            if seconds is None:
                await self._log_failures(self._store.web_pages.remove(wish.key))
            else:
                await self._log_failures(self._store.web_pages.put(wish.key, page, settings.cache_max_bytes))
        return page

    async def _cached_page(self, wish: PageRequest) -> WebPage | None:
        if not wish.settings.cache_enabled:
            return None
        try:
            return await self._store.web_pages.find(wish.key)
        except StorageFailed as failure:
            logger.warning("cached pages cannot be read", extra={"error": failure.message})
            return None

    async def _log_failures(self, writing: Awaitable[None]) -> None:
        """Log and continue: a page that cannot be stored is still returned."""
        try:
            await writing
        except StorageFailed as failure:
            logger.warning("a page cannot be cached", extra={"error": failure.message})

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _conditional_headers(kept: WebPage | None) -> dict[str, str]:
    """Return the headers of a conditional request."""
    if kept is None:
        return {}
    given = {"if-none-match": kept.etag, "if-modified-since": kept.last_modified}
    return {name: value for name, value in given.items() if value and value.isprintable() and value.isascii()}


def _page(url: str, answer: WebResponse) -> WebPage:
    """Convert a response to a page. Linear in its length, so it runs in a thread."""
    headers = answer.headers
    if answer.status in REDIRECTS and "location" in headers:
        return WebPage(url, answer.status, "redirect", "", 0, 0, location=_as_utf8(headers["location"]))
    if answer.status >= 300:
        words = error_excerpt(answer.body, headers, url) if answer.body else ""
        raise Unreadable(f"The server answered HTTP {answer.status}{': ' if words else '.'}{words}")
    text = read_response(answer.body, headers, url)
    return WebPage(
        url,
        answer.status,
        text.kind,
        text.text,
        0,
        0,
        title=text.title,
        etag=headers.get("etag"),
        last_modified=headers.get("last-modified"),
        truncated=text.truncated,
    )


def _as_utf8(header: str) -> str:
    """Decode a header as UTF-8: HTTP libraries read it as Latin-1, but servers write UTF-8 into addresses."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header
