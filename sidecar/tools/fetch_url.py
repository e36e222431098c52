"""`fetch_url`: a page of the web as text, kept in the index.

Where a redirect leads is a new address: checked as the first one was, and on another host it needs leave of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ..model.figures import Measured
from ..model.index import Source
from ..model.pages import FetchSettings, Page
from ..providers.base import ToolSpec
from ..system.redact import redacted
from .base import Hands, Kind, Library, Need, Outcome, Ready, Wrong, flag, text
from .findings import reference
from .search_context import spelled

if TYPE_CHECKING:
    from .web.addresses import Target
    from .web.pages import Got, Web, Wish

MAX_REDIRECTS = 6
"""What a page is found by in practice is two or three; more is a loop."""

INLINE_BYTES = 2 * 1024
"""A shorter page is answered whole."""

PREVIEW_TOKENS = 300
HIT_TOKENS = 1200

OLD_S = 60
"""Seconds: the age of a younger copy is not worth a word."""


class FetchUrl:
    """`web` is shared by all chats; `settings` are those of the chat's project."""

    kind: Kind = "fetch"
    alone = False
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

    def __init__(self, web: Callable[[], Web], settings: FetchSettings, inline: int = INLINE_BYTES) -> None:
        self._web = web
        self._settings = settings
        self._inline = inline

    def title(self, input: dict[str, Any]) -> str:
        """With the address as it will be asked, so that no letter looks like another."""
        from .web.addresses import Refused, parse

        url = input.get("url")
        try:
            return f"Fetch {parse(url).url}" if isinstance(url, str) else "Fetch"
        except Refused:
            return f"Fetch {url!r}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        """Looks at the address's words alone: even a question for its name would tell somebody something."""
        from .web.addresses import Refused, parse

        try:
            target = parse(text(input, "url"))
        except Refused as refused:
            raise Wrong(str(refused)) from refused
        if redacted(target.url) != target.url:
            raise Wrong("`url` has a key of the user's in it, which must not leave this machine.")
        query = input.get("query", input.get("intent"))
        wished = text({"query": query}, "query") if query is not None else None
        select = text(input, "select") if input.get("select") is not None else None
        refresh = flag(input, "refresh")

        async def run() -> Outcome:
            got = await self._got(target, select, refresh, hands)
            return await self._answer(got, target.url, wished, select, hands)

        return Ready(Need("fetch", target.url), run)

    async def _got(self, target: Target, select: str | None, refresh: bool, hands: Hands) -> Got:
        """The page, after as many redirects as there are."""
        from .web.addresses import Refused
        from .web.pages import DATA, PAGES, Wish
        from .web.reaching import Gone, Unreadable

        wish = Wish(target, self._settings, PAGES if select is None else DATA, refresh)
        for _ in range(MAX_REDIRECTS + 1):
            try:
                got = await self._web().get(wish)
                if got.page.kind != "redirect":
                    return got
                wish = await self._next(wish, got, hands)
            except (Refused, Gone, Unreadable) as error:
                raise Wrong(f"{wish.target.url} was not fetched. {error}") from error
        raise Wrong(f"{target.url} was not fetched. It redirects more than {MAX_REDIRECTS} times.")

    async def _next(self, wish: Wish, got: Got, hands: Hands) -> Wish:
        """Where a redirect leads, once that may be asked. From a public host no redirect leads to a private one."""
        from .web.addresses import Refused

        following = wish.target.leads_to(got.page.location or "")
        if wish.target.scheme == "https" and following.scheme == "http":
            raise Refused(f"It redirects from https to {following.url}, which is not encrypted.")
        verdict = await hands.leave(Need("fetch", following.url, after=wish.target.url))
        if not verdict.allowed:
            raise Refused(f"It redirects to {following.url}. {verdict.words}")
        settings = wish.settings if got.private else msgspec.structs.replace(wish.settings, allow_private=())
        return msgspec.structs.replace(wish, target=following, settings=settings)

    async def _answer(
        self, got: Got, asked: str, query: str | None, select: str | None, hands: Hands
    ) -> Outcome:
        page = got.page
        body = await hands.block(_body, page, select)
        head = _head(got, asked)
        asking = Measured(fetches=1, fetch_hits=int(got.how != "network"))
        try:
            library = hands.library
        except Wrong:
            note = "\n(The index is switched off, so the page cannot be searched.)" if query else ""
            return Outcome(f"{head}{note}\n\n{body}", measured=asking)
        source = await library.keep(body, page.url if select is None else f"{page.url} {select}", "page")
        if query is not None:
            found, returned = await _hits(library, query, source)
            measured = msgspec.structs.replace(asking, searches=1, captured=source.tokens, returned=returned)
            return _in_part(f"{head}\n\n{found}", body, source, measured)
        if len(body.encode()) <= self._inline:
            return Outcome(f"{head}\n\n{body}", shown=True, source=source.id, measured=asking)
        outlined = await hands.block(_outline, body, source, library.count)
        preview = f"{head}\n\n{outlined or await library.preview(body, source)}"
        measured = msgspec.structs.replace(asking, captured=source.tokens, sent=library.count(preview))
        return _in_part(preview, body, source, measured)


def _in_part(text: str, whole: str, source: Source, measured: Measured) -> Outcome:
    return Outcome(text, shown=True, whole=whole, source=source.id, measured=measured)


def _body(page: Page, select: str | None) -> str:
    """What the model asked to see of a page. Takes as long as the page is, so it runs in a thread."""
    if page.kind != "json":
        if select is not None:
            raise Wrong(
                f"{page.url} is not JSON, so there is nothing to `select`. Leave it out, or use `query`."
            )
        return page.text or "(The page has no text.)"
    from .web.keypath import NotThere, laid_out
    from .web.keypath import select as selected

    try:
        document = msgspec.json.decode(page.text)
    except (msgspec.DecodeError, RecursionError) as error:
        if select is None:
            return page.text
        raise Wrong(f"{page.url} says that it is JSON, and is not: {error}") from error
    try:
        return laid_out(document if select is None else selected(document, select))
    except NotThere as error:
        raise Wrong(f"{page.url}: {error}") from error


def _head(got: Got, asked: str) -> str:
    """Where the text comes from, how old it is, and what is to be known about it."""
    page = got.page
    lines = [f"{page.title} <{page.url}>" if page.title else page.url]
    if page.url != asked:
        lines.append(f"Redirected from {asked}.")
    fetched = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(page.fetched_at / 1000))
    if got.how == "stale":
        lines.append(f"STALE: this is a copy of {fetched}. {got.why}")
    elif got.how == "cache" and time.time() - page.fetched_at / 1000 > OLD_S:
        lines.append(f"A copy of {fetched}; `refresh` asks the server.")
    if page.truncated:
        lines.append("The page is longer than what is kept of one; its end is missing.")
    return "\n".join(lines)


async def _hits(library: Library, query: str, source: Source) -> tuple[str, int]:
    """The passages that hold the words, and how many tokens they are."""
    (found,) = await library.search([query], source=source.id, max_tokens=HIT_TOKENS)
    return f"{spelled([query], [found])}\n\n{reference(source)}", found.tokens


def _outline(body: str, source: Source, count: Callable[[str], int]) -> str | None:
    from .web.outline import outline

    return outline(body, reference(source), PREVIEW_TOKENS, count)
