"""Kept pages: how long they are fresh, how they are confirmed, who shares them, and what goes when room is short."""

from __future__ import annotations

from email.utils import formatdate
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import msgspec
import pytest
from anyio.abc import ByteStream

from sidecar.model.failures import StorageFailed
from sidecar.model.pages import PageFigures, WebPage
from sidecar.settings.values import FetchSettings
from sidecar.store import Store
from sidecar.store.facets.web_pages import WebPages
from sidecar.tools.web.addresses import parse_url
from sidecar.tools.web.freshness import lifetime
from sidecar.tools.web.pages import JSON_ACCEPT, PageRequest
from tests.support.patience import PATIENCE_S
from tests.unit.web.internet import Internet
from tests.unit.web.server import Asked, answer

URL = "http://public.test/page"
NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (200, {}, 3600), (301, {}, 3600), (308, {}, 3600), (302, {}, None), (307, {}, None),
        (404, {}, None), (500, {}, None),
        (302, {"cache-control": "max-age=60"}, 60),
        (200, {"cache-control": "max-age=60"}, 60),
        (200, {"cache-control": 'public, MAX-AGE="60"'}, 60),
        (200, {"cache-control": "max-age=99999999"}, 3600),
        (200, {"cache-control": "max-age=60", "age": "50"}, 10),
        (200, {"cache-control": "max-age=60", "age": "500"}, 0),
        (200, {"cache-control": "max-age=nonsense"}, 0),
        (200, {"cache-control": "max-age=-5"}, 0),
        (200, {"cache-control": "private, s-maxage=5"}, 3600),
        (200, {"cache-control": "no-cache"}, 0),
        (200, {"cache-control": "no-cache, max-age=600"}, 0),
        (200, {"cache-control": "no-store"}, None),
        (200, {"cache-control": "max-age=60, No-Store"}, None),
        (200, {"vary": "*"}, None),
        (200, {"vary": "Accept, Cookie"}, 3600),
        (200, {"expires": formatdate(NOW + 90, usegmt=True)}, 90),
        (200, {"expires": formatdate(NOW + 90, usegmt=True), "date": formatdate(NOW - 10, usegmt=True)}, 100),
        (200, {"expires": "0"}, 0),
        (200, {"expires": formatdate(NOW - 90, usegmt=True)}, 0),
        (200, {"expires": formatdate(NOW + 90, usegmt=True), "cache-control": "max-age=5"}, 5),
    ],
)  # fmt: skip
def test_the_server_and_the_user_say_how_long(
    status: int, headers: dict[str, str], seconds: float | None
) -> None:
    assert lifetime(status, headers, 3600, NOW) == seconds


async def test_a_fresh_copy_is_not_asked_for_again(internet: Internet) -> None:
    internet.site.put("/page", "first")
    first = await internet.fetch(URL)
    internet.site.put("/page", "second")
    internet.now += 3599

    assert (await internet.fetch(URL)).text == first.text == f"{URL}\n\nfirst"
    assert internet.site.paths == ["/page"]
    assert await internet.store.web_pages.figures() == PageFigures(pages=1, bytes=5, hits=1, misses=1)
    internet.now += 1
    assert (await internet.fetch(URL)).text.endswith("second")


async def test_the_user_can_refresh_a_copy_and_do_without(internet: Internet) -> None:
    internet.site.put("/page", "first")
    await internet.fetch(URL)
    internet.site.put("/page", "second")
    assert (await internet.fetch(URL, refresh=True)).text.endswith("second")

    internet.settings = FetchSettings.of(cache_enabled=False)
    internet.site.put("/page", "third")
    assert (await internet.fetch(URL)).text.endswith("third")
    assert (await internet.store.web_pages.figures()).misses == 2


async def test_an_old_copy_that_the_server_confirms_is_fresh_again(internet: Internet) -> None:
    seen: list[str | None] = []

    async def unchanged(stream: ByteStream, asked: Asked) -> None:
        seen.append(asked.headers.get("if-none-match"))
        await stream.send(answer(b"", 304, etag='"2"'))

    internet.site.put("/page", "body", etag='"1"', last_modified="Tue, 03 Nov 2026 10:00:00 GMT")
    await internet.fetch(URL)
    internet.site.pages["/page"] = unchanged
    internet.now += 4000
    assert (await internet.fetch(URL)).text.endswith("body")
    internet.now += 3000
    assert (await internet.fetch(URL)).text.endswith("body")
    internet.now += 1000
    assert (await internet.fetch(URL)).text.endswith("body")

    assert seen == ['"1"', '"2"']
    assert internet.site.asked[1].headers["if-modified-since"] == "Tue, 03 Nov 2026 10:00:00 GMT"
    assert await internet.store.web_pages.figures() == PageFigures(1, 4, hits=1, revalidated=2, misses=1)


async def test_a_copy_that_must_be_asked_about_is_asked_about(internet: Internet) -> None:
    internet.site.put("/page", "body", etag='"1"', cache_control="no-cache")
    await internet.fetch(URL)
    await internet.fetch(URL)
    assert [asked.headers.get("if-none-match") for asked in internet.site.asked] == [None, '"1"']


@pytest.mark.parametrize("headers", [{"cache_control": "no-store"}, {"vary": "*"}])
async def test_what_may_not_be_kept_is_not(internet: Internet, headers: dict[str, str]) -> None:
    internet.site.put("/page", "body", **headers)
    await internet.fetch(URL)
    assert await internet.store.web_pages.figures() == PageFigures(misses=1)


async def test_what_may_no_longer_be_kept_is_forgotten(internet: Internet) -> None:
    internet.site.put("/page", "body")
    await internet.fetch(URL)
    internet.site.put("/page", "body", cache_control="no-store")
    await internet.fetch(URL, refresh=True)
    assert (await internet.store.web_pages.figures()).pages == 0


@pytest.mark.parametrize("trouble", ["name", "connection", "cut", "500"])
async def test_an_expired_copy_serves_and_says_so_when_the_network_is_gone(
    internet: Internet, trouble: str
) -> None:
    internet.site.put("/page", "old words")
    await internet.fetch(URL)
    internet.now += 9999
    if trouble == "name":
        del internet.names["public.test"]
    elif trouble == "connection":
        internet.ports[80] = 1
    else:
        internet.site.pages["/page"] = b"" if trouble == "cut" else answer("down", 503)
    said = {"name": "cannot be resolved", "500": "HTTP 503"}.get(trouble, "before the answer's end")

    text = (await internet.fetch(URL)).text
    assert "\nSTALE: this is a copy of 2027-01-15 08:00 UTC. " in text
    assert said in text
    assert text.endswith("old words")
    assert (await internet.store.web_pages.figures()).stale == 1


async def test_no_copy_serves_when_the_name_has_turned_private(internet: Internet) -> None:
    internet.site.put("/page", "old")
    await internet.fetch(URL)
    internet.now += 9999
    internet.name("public.test", "127.0.0.1")
    assert await internet.is_refused(URL)


async def test_a_page_that_is_gone_for_good_is_not_served_from_a_copy(internet: Internet) -> None:
    internet.site.put("/page", "old")
    await internet.fetch(URL)
    internet.now += 9999
    del internet.site.pages["/page"]
    assert "HTTP 404" in await internet.words(URL)


async def waiting(internet: Internet, others: int) -> None:
    """Until so many wait for the one that is under way."""
    with anyio.fail_after(PATIENCE_S):
        while [f.done.statistics().tasks_waiting for f in internet.web._shared_fetches.values()] != [others]:
            await anyio.lowlevel.checkpoint()


def held(internet: Internet) -> anyio.Event:
    """Names are resolved once this is set."""
    go, resolve = anyio.Event(), internet.web._reach._resolve

    async def patiently(host: str, port: int) -> list[str]:
        await go.wait()
        return await resolve(host, port)

    internet.web._reach._resolve = patiently
    return go


async def test_identical_requests_under_way_are_one(internet: Internet) -> None:
    internet.site.put("/page", "shared", cache_control="no-store")
    go = held(internet)
    texts: list[str] = []

    async def fetch() -> None:
        texts.append((await internet.fetch(URL)).text)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(fetch)
        await waiting(internet, 4)
        go.set()
    assert texts == [f"{URL}\n\nshared"] * 5
    assert internet.site.paths == ["/page"]


async def test_who_waits_for_one_that_is_cancelled_asks_instead(internet: Internet) -> None:
    internet.site.put("/page", "in the end")
    go = held(internet)
    texts: list[str] = []
    first = anyio.CancelScope()

    async def impatient() -> None:
        with first:
            await internet.fetch(URL)

    async def fetch() -> None:
        texts.append((await internet.fetch(URL)).text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(impatient)
        await waiting(internet, 0)
        tasks.start_soon(fetch)
        tasks.start_soon(fetch)
        await waiting(internet, 2)
        first.cancel()
        await waiting(internet, 1)
        go.set()
    assert texts == [f"{URL}\n\nin the end"] * 2
    assert internet.site.paths == ["/page"]


async def test_a_failure_is_shared_too(internet: Internet) -> None:
    go = held(internet)
    words: list[str] = []

    async def fetch() -> None:
        words.append(await internet.words("http://public.test/none"))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(fetch)
        await waiting(internet, 2)
        go.set()
    assert (
        words == ["http://public.test/none was not fetched. The server answered HTTP 404: no such page"] * 3
    )
    assert internet.site.paths == ["/none"]


async def test_json_and_pages_of_one_address_are_kept_apart(internet: Internet) -> None:
    async def by_accept(stream: ByteStream, asked: Asked) -> None:
        wants_json = asked.headers["accept"] == JSON_ACCEPT
        body, type = ('{"a": 7}', "application/json") if wants_json else ("<p>seven", "text/html")
        await stream.send(answer(body, type=type))

    internet.site.pages["/page"] = by_accept
    for _ in range(2):
        assert (await internet.fetch(URL)).text.endswith("\n\nseven")
        assert (await internet.fetch(URL, select="a")).text.endswith("\n\n7")
    assert await internet.store.web_pages.figures() == PageFigures(2, 13, hits=2, misses=2)


async def test_what_is_private_is_not_kept(internet: Internet) -> None:
    internet.settings = FetchSettings.of(allow_private=("localhost",))
    await internet.fetch(f"http://localhost:{internet.trap.port}/secret")
    await internet.fetch(f"http://localhost:{internet.trap.port}/secret")
    assert len(internet.trap.asked) == 2
    assert await internet.store.web_pages.figures() == PageFigures()


async def test_a_redirect_is_kept_and_leave_is_asked_for_each_time(internet: Internet) -> None:
    internet.site.redirect("/page", "http://other.test/there", 301)
    internet.site.put("/there", "found")
    await internet.fetch(URL)
    await internet.fetch(URL)
    assert internet.site.paths == ["/page", "/there"]
    assert [need.subject for need in internet.context.needs] == ["http://other.test/there"] * 2


async def test_a_cache_that_cannot_be_written_harms_no_page(
    internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*args: object) -> None:
        raise StorageFailed("full", "the disk is full")

    for name in ("find", "put", "count"):
        monkeypatch.setattr(WebPages, name, full)
    internet.site.put("/page", "body")
    assert (await internet.fetch(URL)).text.endswith("body")


def page(text: str) -> WebPage:
    return WebPage(
        "https://example.org/",
        200,
        "text",
        text,
        fetched_at=1,
        fresh_until=2,
        title="T",
        etag="e",
        truncated=True,
    )


async def test_the_least_recently_used_goes_first(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("sidecar.store.facets.web_pages.clock", SimpleNamespace(now=lambda: next(clock)))
    for name in "abc":
        await store.web_pages.put(name, page(name * 100), 350)
    await store.web_pages.count("hits", "a")
    await store.web_pages.put("d", page("d" * 100), 350)

    kept = [name for name in "abcd" if await store.web_pages.find(name)]
    assert kept == ["a", "c", "d"]
    assert await store.web_pages.find("a") == page("a" * 100)
    await store.web_pages.put("e", page("e" * 351), 350)
    assert (await store.web_pages.find("e"), (await store.web_pages.figures()).bytes) == (None, 300)


async def test_uses_are_counted_and_emptying_forgets_all(store: Store) -> None:
    await store.web_pages.put("a", page("abc"), 999)
    await store.web_pages.count("misses", "a")
    await store.web_pages.count("hits", "a")
    await store.web_pages.put("a", page("äöü"), 999)
    await store.web_pages.count("stale", "a")

    assert await store.web_pages.figures() == PageFigures(1, 6, hits=1, stale=1, misses=1)
    assert await store._db.read(lambda db: db.execute("SELECT hits FROM pages").fetchone()) == (2,)
    assert await store.web_pages.clear() == 1
    assert await store.web_pages.figures() == PageFigures()


def test_a_key_is_the_address_and_what_is_asked_of_it() -> None:
    wish = PageRequest(parse_url(URL), FetchSettings.of())
    assert (
        wish.key
        == PageRequest(parse_url("HTTP://PUBLIC.test:80/page#part"), FetchSettings.of(cache_ttl=1)).key
    )
    assert wish.key != msgspec.structs.replace(wish, accept=JSON_ACCEPT).key
    assert wish.key != PageRequest(parse_url("https://public.test/page"), FetchSettings.of()).key
