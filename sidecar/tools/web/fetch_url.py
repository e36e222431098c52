"""`fetch_url`: return a web page as text and store it in the index.

The target of a redirect is a new address: it is checked like the first, and another host needs its own permission.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ...model.figures import CallSavings
from ...model.index import Source
from ...model.pages import WebPage
from ...providers.base import ToolSpec
from ...settings.values import FetchSettings
from ...system.lazy import lazy_module
from ...system.redact import redact_text
from ..base import (
    Intent,
    OutputLibrary,
    PlannedCall,
    ToolContext,
    ToolError,
    ToolInput,
    ToolKind,
    ToolOutcome,
)
from ..kept_output.findings import source_reference
from ..kept_output.search_context import render_results

if TYPE_CHECKING:
    from . import addresses, keypath, outline, pages, reaching
else:
    addresses = lazy_module("sidecar.tools.web.addresses")
    keypath = lazy_module("sidecar.tools.web.keypath")
    outline = lazy_module("sidecar.tools.web.outline")
    pages = lazy_module("sidecar.tools.web.pages")
    reaching = lazy_module("sidecar.tools.web.reaching")

MAX_REDIRECTS = 6
"""Redirects: two or three are common; more are a loop."""

INLINE_BYTES = 2 * 1024
"""Bytes of a page that is returned in full."""

PREVIEW_TOKENS = 300
HIT_TOKENS = 1200

SHOW_AGE_AFTER_S = 60
"""Seconds: the age of a younger copy is not worth a note."""


class FetchUrl:
    """`web` is shared by all chats; `settings` are those of the chat's project."""

    kind: ToolKind = "fetch"
    runs_alone = False
    spec = ToolSpec(
        "fetch_url",
        "Read a web page as Markdown, text or JSON. A long one is kept and previewed; with `query` you get the"
        " passages that hold its words.",
        {
            "type": "object",
            "properties": {
                "url": {"type": "string"},
                "query": {"type": "string", "description": "Words to find in the page."},
                "select": {
                    "type": "string",
                    "description": "Part of a JSON answer: items[0].name, items[*].id.",
                },
                "refresh": {"type": "boolean", "description": "Ask the server even if a copy is fresh."},
            },
            "required": ["url"],
        },
    )

    def __init__(
        self, web: Callable[[], pages.PageFetcher], settings: FetchSettings, inline: int = INLINE_BYTES
    ) -> None:
        self._web = web
        self._settings = settings
        self._inline = inline

    def title(self, input: ToolInput) -> str:
        """Shows the address in canonical form, so that look-alike letters are visible."""
        url = input.get("url")
        try:
            return f"Fetch {addresses.parse_url(url).url}" if isinstance(url, str) else "Fetch"
        except addresses.AddressRefused:
            return f"Fetch {url!r}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        """Checks only the text of the address: even a DNS query would reveal something."""
        try:
            target = addresses.parse_url(input.text("url"))
        except addresses.AddressRefused as refused:
            raise ToolError(str(refused)) from refused
        if redact_text(target.url) != target.url:
            raise ToolError("`url` contains a key of the user, which must not be sent.")
        query = input.get("query", input.get("intent"))
        wished = ToolInput({"query": query}).optional_text("query")
        select = input.optional_text("select")
        refresh = input.flag("refresh")

        async def run() -> ToolOutcome:
            got = await self._fetch(target, select, refresh, context)
            return await self._outcome(got, target.url, wished, select, context)

        return PlannedCall(Intent("fetch", target.url), run)

    async def _fetch(
        self, target: addresses.Target, select: str | None, refresh: bool, context: ToolContext
    ) -> pages.FetchedPage:
        """Return the page, after following redirects."""
        wish = pages.PageRequest(
            target, self._settings, pages.PAGE_ACCEPT if select is None else pages.JSON_ACCEPT, refresh
        )
        for _ in range(MAX_REDIRECTS + 1):
            try:
                got = await self._web().get(wish)
                if got.page.kind != "redirect":
                    return got
                wish = await self._next_request(wish, got, context)
            except (addresses.AddressRefused, reaching.Unavailable, reaching.Unreadable) as error:
                raise ToolError(f"{wish.target.url} was not fetched. {error}") from error
        raise ToolError(f"{target.url} was not fetched. It redirects more than {MAX_REDIRECTS} times.")

    async def _next_request(
        self, wish: pages.PageRequest, got: pages.FetchedPage, context: ToolContext
    ) -> pages.PageRequest:
        """Return the target of a redirect, after its permission. A public host must not redirect to a private one."""
        following = wish.target.redirect_target(got.page.location or "")
        if wish.target.scheme == "https" and following.scheme == "http":
            raise addresses.AddressRefused(
                f"It redirects from https to {following.url}, which is not encrypted."
            )
        verdict = await context.request_permission(Intent("fetch", following.url, after=wish.target.url))
        if not verdict.allowed:
            raise addresses.AddressRefused(f"It redirects to {following.url}. {verdict.words}")
        settings = wish.settings if got.private else wish.settings.replaced(allow_private=())
        return msgspec.structs.replace(wish, target=following, settings=settings)

    async def _outcome(
        self, got: pages.FetchedPage, asked: str, query: str | None, select: str | None, context: ToolContext
    ) -> ToolOutcome:
        page = got.page
        body = await context.block(_body, page, select)
        head = _head(got, asked)
        asking = CallSavings(fetches=1, fetch_hits=int(got.how != "network"))
        try:
            library = context.library
        except ToolError:
            note = "\n(The index is switched off, so the page cannot be searched.)" if query else ""
            return ToolOutcome(f"{head}{note}\n\n{body}", measured=asking)
        source = await library.keep(body, page.url if select is None else f"{page.url} {select}", "page")
        if query is not None:
            found, returned = await _hits(library, query, source)
            measured = msgspec.structs.replace(asking, searches=1, captured=source.tokens, returned=returned)
            return _partial_outcome(f"{head}\n\n{found}", body, source, measured)
        if len(body.encode()) <= self._inline:
            return ToolOutcome(f"{head}\n\n{body}", shown=True, source=source.id, measured=asking)
        outlined = await context.block(_outline, body, source, library.count)
        preview = f"{head}\n\n{outlined or await library.preview(body, source)}"
        measured = msgspec.structs.replace(asking, captured=source.tokens, sent=library.count(preview))
        return _partial_outcome(preview, body, source, measured)


def _partial_outcome(text: str, whole: str, source: Source, measured: CallSavings) -> ToolOutcome:
    return ToolOutcome(text, shown=True, whole=whole, source=source.id, measured=measured)


def _body(page: WebPage, select: str | None) -> str:
    """Return what the model asked to see of a page. Linear in its length, so it runs in a thread."""
    if page.kind != "json":
        if select is not None:
            raise ToolError(
                f"{page.url} is not JSON, so there is nothing to `select`. Leave it out, or use `query`."
            )
        return page.text or "(The page has no text.)"
    try:
        document = msgspec.json.decode(page.text)
    except (msgspec.DecodeError, RecursionError) as error:
        if select is None:
            return page.text
        raise ToolError(f"{page.url} says that it is JSON, and is not: {error}") from error
    try:
        return keypath.format_value(document if select is None else keypath.select(document, select))
    except keypath.PathNotFound as error:
        raise ToolError(f"{page.url}: {error}") from error


def _head(got: pages.FetchedPage, asked: str) -> str:
    """Return the source of the text, its age, and notes."""
    page = got.page
    lines = [f"{page.title} <{page.url}>" if page.title else page.url]
    if page.url != asked:
        lines.append(f"Redirected from {asked}.")
    fetched = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(page.fetched_at / 1000))
    if got.how == "stale":
        lines.append(f"STALE: this is a copy of {fetched}. {got.why}")
    elif got.how == "cache" and time.time() - page.fetched_at / 1000 > SHOW_AGE_AFTER_S:
        lines.append(f"A copy of {fetched}; `refresh` asks the server.")
    if page.truncated:
        lines.append("The page exceeds the size limit; its end is missing.")
    return "\n".join(lines)


async def _hits(library: OutputLibrary, query: str, source: Source) -> tuple[str, int]:
    """Return the passages that match the queries, and their number of tokens."""
    (found,) = await library.search([query], source=source.id, max_tokens=HIT_TOKENS)
    return f"{render_results([query], [found])}\n\n{source_reference(source)}", found.tokens


def _outline(body: str, source: Source, count: Callable[[str], int]) -> str | None:
    return outline.outline(body, source_reference(source), PREVIEW_TOKENS, count)
