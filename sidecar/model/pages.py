"""Pages of the web as they are kept, and what the settings say about fetching them."""

from __future__ import annotations

from typing import Literal

import msgspec

PageKind = Literal["html", "json", "text", "redirect"]
"""How `Page.text` came about: Markdown made of HTML, a JSON document, text as it was, or nothing but a way on."""


class Page(msgspec.Struct, frozen=True):
    """What a server answered for one address. `location` is where a redirect leads, as the server wrote it.

    Times are milliseconds since 1970; at `fresh_until` it wants to be asked again.
    """

    url: str
    status: int
    kind: PageKind
    text: str
    fetched_at: int
    fresh_until: int
    title: str | None = None
    location: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    truncated: bool = False
    """Whether the text was cut at the bound on what is kept of a page."""

    @property
    def bytes(self) -> int:
        return len(self.text.encode())


class PageFigures(msgspec.Struct, frozen=True):
    """What the cache holds, and how requests went since it was last emptied.

    `hits` were answered by a fresh copy, `revalidated` by a copy that the server confirmed, `stale` by an expired
    copy because the network was gone, and `misses` by the network alone.
    """

    pages: int = 0
    bytes: int = 0
    hits: int = 0
    revalidated: int = 0
    stale: int = 0
    misses: int = 0


class FetchSettings(msgspec.Struct, frozen=True):
    """`allow_private` names the hosts and addresses of this machine and its networks that may be asked."""

    enabled: bool = True
    cache_enabled: bool = True
    cache_ttl: float = 3600.0
    cache_max_bytes: int = 256 * 1024 * 1024
    allow_private: tuple[str, ...] = ()
