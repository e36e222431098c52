"""Pages for all chats of a process: a copy that is fresh, else the network, else a copy that has expired and says so.

Identical requests that are under way share one. What is kept is public: what came from a private address never is. Each
redirect is an answer of its own here, so that whoever follows it needs leave for where it leads.
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
from ...model.pages import FetchSettings, Page
from .addresses import Allowed, Target
from .freshness import lifetime
from .reaching import Answer, Gone, Reach, Unreadable
from .reading import check_type, error_words, read

logger = logging.getLogger(__name__)

How = Literal["network", "cache", "revalidated", "stale"]
Outcome = Literal["hits", "revalidated", "stale", "misses"]

REDIRECTS = (301, 302, 303, 307, 308)
PAGES = "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.7, */*;q=0.1"
DATA = "application/json, */*;q=0.1"
LANGUAGE = "en, *;q=0.5"

_COUNTED: dict[How, Outcome] = {
    "network": "misses",
    "cache": "hits",
    "revalidated": "revalidated",
    "stale": "stale",
}


class Cache(Protocol):
    """Where pages are kept."""

    async def web_page(self, key: str) -> Page | None: ...
    async def put_web_page(self, key: str, page: Page, max_bytes: int) -> None: ...
    async def remove_web_page(self, key: str) -> None: ...
    async def count_web_page(self, outcome: Outcome, key: str) -> None: ...


class Got(msgspec.Struct, frozen=True):
    """A page and how it was come by; `why` tells of a stale one what went wrong. `private` says whence it came."""

    page: Page
    how: How
    why: str = ""
    private: bool = False


class Wish(msgspec.Struct, frozen=True):
    """What is asked for. `accept` is the one header that differs between requests, so it is part of a copy's key."""

    target: Target
    settings: FetchSettings
    accept: str = PAGES
    refresh: bool = False

    @property
    def key(self) -> str:
        """The same for the same address and the same headers that matter; no credentials are ever sent."""
        return sha256(f"{self.accept}\n{LANGUAGE}\n{self.target.url}".encode()).hexdigest()


class _Flight:
    def __init__(self) -> None:
        self.done = anyio.Event()
        self.outcome: Got | Exception | None = None
        """None at the end when whoever asked was cancelled: then the next one who waits asks."""


class Web:
    """`clock` tells seconds since 1970; a copy outlives the process that made it."""

    def __init__(
        self, cache: Cache, reach: Reach | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._cache = cache
        self._reach = reach or Reach()
        self._clock = clock
        self._flights: dict[tuple[str, ...], _Flight] = {}

    async def get(self, wish: Wish) -> Got:
        """The page or redirect; Refused, Gone or Unreadable."""
        kept = await self._kept(wish)
        now = self._now()
        if kept and not wish.refresh and kept.fetched_at <= now < kept.fresh_until:
            got = Got(kept, "cache")
        else:
            got = await self._shared(wish, partial(self._fetched, wish, kept))
        if wish.settings.cache_enabled and not got.private:
            await self._safely(self._cache.count_web_page(_COUNTED[got.how], wish.key))
        return got

    async def _shared(self, wish: Wish, fetch: Callable[[], Awaitable[Got]]) -> Got:
        key = (wish.key, *wish.settings.allow_private)
        while (under_way := self._flights.get(key)) is not None:
            await under_way.done.wait()
            if isinstance(under_way.outcome, Exception):
                raise under_way.outcome
            if under_way.outcome is not None:
                return under_way.outcome
        flight = self._flights[key] = _Flight()
        try:
            flight.outcome = await fetch()
            return flight.outcome
        except Exception as error:
            flight.outcome = error
            raise
        finally:
            del self._flights[key]
            flight.done.set()

    async def _fetched(self, wish: Wish, kept: Page | None) -> Got:
        headers = {"accept": wish.accept, "accept-language": LANGUAGE, **_conditions(kept)}
        if wish.refresh:
            headers["cache-control"] = "no-cache"
        allowed = Allowed(wish.settings.allow_private)
        try:
            answer = await self._reach.get(wish.target, headers, allowed, wanted=check_type)
        except Gone as gone:
            if kept is None:
                raise
            return Got(kept, "stale", str(gone))
        if answer.status == 304 and kept is not None:
            return await self._confirmed(wish, kept, answer)
        if answer.status >= 500 and kept is not None:
            return Got(kept, "stale", f"{wish.target.place} answered HTTP {answer.status}.")
        page = await anyio.to_thread.run_sync(_page, wish.target.url, answer, abandon_on_cancel=True)
        return Got(await self._put(wish, page, answer), "network", private=answer.private)

    async def _confirmed(self, wish: Wish, kept: Page, answer: Answer) -> Got:
        """The server says that the copy is still right."""
        page = msgspec.structs.replace(
            kept,
            etag=answer.headers.get("etag", kept.etag),
            last_modified=answer.headers.get("last-modified", kept.last_modified),
        )
        return Got(
            await self._put(wish, page, msgspec.structs.replace(answer, status=page.status)), "revalidated"
        )

    async def _put(self, wish: Wish, page: Page, answer: Answer) -> Page:
        """The page with its times; kept when it may be."""
        settings, now = wish.settings, self._now()
        seconds = lifetime(answer.status, answer.headers, settings.cache_ttl, now / 1000)
        page = msgspec.structs.replace(page, fetched_at=now, fresh_until=now + int((seconds or 0) * 1000))
        if settings.cache_enabled and not answer.private:
            if seconds is None:
                await self._safely(self._cache.remove_web_page(wish.key))
            else:
                await self._safely(self._cache.put_web_page(wish.key, page, settings.cache_max_bytes))
        return page

    async def _kept(self, wish: Wish) -> Page | None:
        if not wish.settings.cache_enabled:
            return None
        try:
            return await self._cache.web_page(wish.key)
        except StorageFailed as failure:
            logger.warning("kept pages cannot be read", extra={"error": failure.message})
            return None

    async def _safely(self, writing: Awaitable[None]) -> None:
        """A page that cannot be kept is still a page."""
        try:
            await writing
        except StorageFailed as failure:
            logger.warning("a page cannot be kept", extra={"error": failure.message})

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _conditions(kept: Page | None) -> dict[str, str]:
    """Ask only for what has changed since the copy was made."""
    if kept is None:
        return {}
    given = {"if-none-match": kept.etag, "if-modified-since": kept.last_modified}
    return {name: value for name, value in given.items() if value and value.isprintable() and value.isascii()}


def _page(url: str, answer: Answer) -> Page:
    """What an answer says. Takes as long as its text is, so it runs in a thread."""
    headers = answer.headers
    if answer.status in REDIRECTS and "location" in headers:
        return Page(url, answer.status, "redirect", "", 0, 0, location=_as_utf8(headers["location"]))
    if answer.status >= 300:
        words = error_words(answer.body, headers, url) if answer.body else ""
        raise Unreadable(f"The server answered HTTP {answer.status}{': ' if words else '.'}{words}")
    text = read(answer.body, headers, url)
    return Page(
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
    """A header's bytes are read as Latin-1; what servers write into an address is UTF-8."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header
