"""Fetched web pages as they are stored, and the settings of fetching."""

from __future__ import annotations

from typing import Literal

import msgspec

PageKind = Literal["html", "json", "text", "redirect"]
"""The origin of `WebPage.text`: Markdown from HTML, a JSON document, plain text, or none for a redirect."""


class WebPage(msgspec.Struct, frozen=True):
    """The response of a server for one address. `location` is the target of a redirect, as the server wrote
    it.

    Times are milliseconds since 1970; after `fresh_until` it must be revalidated.
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
    """Whether the text was cut at the size limit of a stored page."""

    @property
    def bytes(self) -> int:
        return len(self.text.encode())


class PageFigures(msgspec.Struct, frozen=True):
    """The content of the cache, and the results of requests since it was last emptied.

    `hits` were answered by a fresh copy, `revalidated` by a copy that the server confirmed, `stale` by an
    expired copy because the network failed, and `misses` by the network alone.
    """

    pages: int = 0
    bytes: int = 0
    hits: int = 0
    revalidated: int = 0
    stale: int = 0
    misses: int = 0
