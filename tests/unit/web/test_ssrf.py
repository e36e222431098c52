"""What must never be asked is never asked: notations, names, redirects, names that change; and twins that would."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

import pytest

from sidecar.providers.http import connection
from sidecar.system import redact
from sidecar.tools.base import Permission, ToolInput
from sidecar.tools.web import reaching
from sidecar.tools.web.addresses import IP, AddressRefused, AllowedHosts, Target, address_class, check
from tests.unit.web.corpus import LITERALS, LOCATIONS, NAMED, STATUSES, spelled
from tests.unit.web.internet import OTHER, PUBLIC, Internet, let_through


def prepared(internet: Internet) -> list[str]:
    """Every address and every first link of a chain that leads to one, with the servers set up for them."""
    trap = internet.trap.port
    internet.names.update({host: [list(each) for each in answers] for host, answers in NAMED.items()})
    urls = spelled(LITERALS, trap) + [f"http://{host}:{trap}/secret" for host in NAMED]
    for number, location in enumerate(spelled(LOCATIONS, trap)):
        internet.site.redirect(f"/to/{number}", location, STATUSES[number % len(STATUSES)])
        urls.append(f"http://public.test/to/{number}")
    internet.site.redirect("/far", "http://other.test/farther")
    internet.site.redirect("/farther", f"//localhost:{trap}/secret", 307)
    internet.site.redirect("/down", "http://public.test/plain")
    internet.site.redirect("/loop", "/loop", 301)
    internet.site.redirect("/a", "/b")
    internet.site.redirect("/b", "/a")
    return [*urls, "http://public.test/far", "https://public.test/down"]


async def test_none_of_the_corpus_is_asked(internet: Internet) -> None:
    urls = prepared(internet)

    assert len(urls) >= 200
    assert await let_through(internet, urls) == []
    assert internet.trap.asked == []
    assert {tunnel.rpartition(":")[0] for tunnel in internet.tunnels} == {PUBLIC, OTHER}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("allowed", ["127.0.0.1", "localhost", "127.0.0.0/8", "10.0.0.0/8"])
async def test_what_the_user_allows_opens_nothing_else(internet: Internet, allowed: str) -> None:
    """A name for its addresses, a number for itself; and no public page leads even there."""
    internet.settings = internet.settings.replaced(allow_private=(allowed,))
    opened = ("127.", "10.") if allowed[0] == "1" else ("localhost", "LOCALHOST", "ⅼocalhost")
    spared = tuple(
        f"http{s}://{start}" for s in ("", "s") for start in (*opened, "①②⑦", "１２７", "127｡", "127。")
    )
    urls = [url for url in prepared(internet) if not url.startswith(spared)]

    assert len(urls) >= 150
    assert await let_through(internet, urls) == []


async def test_a_name_is_resolved_once_and_connected_to_as_it_was_checked(internet: Internet) -> None:
    internet.changing("turns.test", [PUBLIC], ["127.0.0.1"])
    internet.site.put("/secret", "harmless")
    outcome = await internet.fetch(f"http://turns.test:{internet.trap.port}/secret")

    assert "harmless" in outcome.text
    assert internet.resolved == ["turns.test"]
    assert internet.tunnels == [f"{PUBLIC}:{internet.trap.port}"]
    assert internet.site.asked[0].headers["host"] == f"turns.test:{internet.trap.port}"


async def test_a_name_that_turns_between_two_redirects_is_refused(internet: Internet) -> None:
    internet.changing("turns.test", [PUBLIC], ["127.0.0.1"])
    internet.site.redirect("/secret", "/again")

    assert await internet.is_refused(f"http://turns.test:{internet.trap.port}/secret")
    assert internet.resolved == ["turns.test", "turns.test"]


async def test_every_address_of_a_public_host_is_tried(internet: Internet) -> None:
    internet.name("many.test", "2606:2800:220:1:248:1893:25c8:1946", PUBLIC)
    internet.site.put("/", "found")

    assert "found" in (await internet.fetch("http://many.test/")).text
    assert internet.tunnels == ["[2606:2800:220:1:248:1893:25c8:1946]:80"]


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("8.8.8.8", "public"), ("1.1.1.1", "public"), ("100.63.255.255", "public"), ("100.128.0.1", "public"),
        ("172.15.255.255", "public"), ("172.32.0.1", "public"), ("192.167.255.255", "public"),
        ("169.253.255.255", "public"), ("223.255.255.255", "public"), ("2606:4700::1111", "public"),
        ("2001:4860:4860::8888", "public"), ("2a00:1450::1", "public"), ("64:ff9b::8.8.8.8", "public"),
        ("127.0.0.1", "private"), ("10.0.0.1", "private"), ("::1", "private"), ("fd12::1", "private"),
        ("100.64.0.1", "private"), ("100.100.100.200", "never"), ("169.254.169.254", "never"),
        ("64:ff9b::127.0.0.1", "never"), ("::ffff:8.8.8.8", "never"), ("fe80::1", "never"),
    ],
)  # fmt: skip
def test_an_address_is_public_private_or_never_asked(address: str, found: str) -> None:
    assert address_class(ip_address(address)) == found


async def test_an_allowed_server_is_reached_by_its_name(internet: Internet) -> None:
    internet.settings = internet.settings.replaced(allow_private=(f"localhost:{internet.trap.port}",))

    assert "the keys" in (await internet.fetch(f"http://localhost:{internet.trap.port}/secret")).text
    assert "naming localhost:9999 in" in await internet.words("http://localhost:9999/")
    assert internet.tunnels == []  # what is private is asked directly


async def test_a_redirect_to_another_host_needs_leave_of_its_own(internet: Internet) -> None:
    internet.site.redirect("/here", "http://other.test/there")
    internet.site.put("/there", "there it is")
    internet.context.verdicts = [Permission(False, "Denied: a rule denies fetch(other.test).")]
    words = await internet.words("http://public.test/here")

    assert "redirects to http://other.test/there. Denied: a rule denies" in words
    assert [(need.subject, need.after) for need in internet.context.needs] == [
        ("http://other.test/there", "http://public.test/here")
    ]
    assert "there it is" in (await internet.fetch("http://public.test/here")).text


async def test_redirects_are_followed_six_times(internet: Internet) -> None:
    for number in range(9):
        internet.site.redirect(f"/{number}", str(number + 1))
    internet.site.put("/9", "end")

    assert "more than 6 times" in await internet.words("http://public.test/0")
    outcome = await internet.fetch("http://public.test/3")
    assert outcome.text == "http://public.test/9\nRedirected from http://public.test/3.\n\nend"


async def test_https_goes_by_the_name_and_down_to_http_it_does_not(internet: Internet) -> None:
    internet.site.put("/", "sealed")
    internet.site.redirect("/down", "http://public.test/")
    internet.site.redirect("/up", "https://public.test/")

    assert "sealed" in (await internet.fetch("http://public.test/up")).text
    assert internet.tunnels == [f"{PUBLIC}:80", f"{PUBLIC}:443"]
    assert "which is not encrypted" in await internet.words("https://public.test/down")


async def test_a_certificate_of_another_name_is_not_taken(internet: Internet) -> None:
    internet.name("forged.test", PUBLIC)
    assert "certificate of forged.test is not trusted" in await internet.words("https://forged.test/")


async def test_an_address_with_a_key_of_the_user_is_refused(internet: Internet) -> None:
    redact.add_secrets(["sk-test-8d1f0c7b2a"])
    assert "a key of the user" in await internet.words("http://public.test/?q=sk-test-8d1f0c7b2a")
    assert internet.resolved == []


async def test_the_title_shows_the_address_that_will_be_asked(internet: Internet) -> None:
    assert (
        internet.tool.title(ToolInput({"url": "https://BÜCHER.example/a#b"}))
        == "Fetch https://xn--bcher-kva.example/a"
    )
    assert internet.tool.title(ToolInput({"url": "ftp://x\n"})) == "Fetch 'ftp://x\\n'"
    assert internet.tool.title(ToolInput({"url": 7})) == "Fetch"


# Twins: each breaks one part of the proof, and the corpus must notice.


def first_only(target: Target, addresses: Iterable[str], allowed: AllowedHosts) -> tuple[list[IP], bool]:
    return check(target, list(addresses)[:1], allowed)


def by_name(target: Target, addresses: Iterable[str], allowed: AllowedHosts) -> tuple[list[IP], bool]:
    if target.host == "localhost" or target.literal is not None:
        return check(target, addresses, allowed)
    return [ip_address(address) for address in addresses], False


def by_python(target: Target, addresses: Iterable[str], allowed: AllowedHosts) -> tuple[list[IP], bool]:
    found = [ip_address(address) for address in addresses]
    if any(address.is_private or address.is_loopback or address.is_link_local for address in found):
        raise AddressRefused("private")
    return found, False


def one_good_is_enough(
    target: Target, addresses: Iterable[str], allowed: AllowedHosts
) -> tuple[list[IP], bool]:
    found = [ip_address(address) for address in addresses]
    good = [address for address in found if address_class(address) == "public"]
    return (good, False) if good else check(target, addresses, allowed)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("twin", [first_only, by_name, by_python, one_good_is_enough])
async def test_a_twin_that_checks_less_is_caught(
    internet: Internet, monkeypatch: pytest.MonkeyPatch, twin: object
) -> None:
    monkeypatch.setattr(reaching, "check", twin)

    assert await let_through(internet, prepared(internet)) != []


async def test_a_twin_that_resolves_again_is_caught(
    internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = connection.connect
    monkeypatch.setattr(
        connection, "connect", lambda url, proxy, secure, address: connect(url, proxy, secure)
    )
    await internet.words("http://public.test/")

    assert internet.tunnels == ["by name: http://public.test/"]


async def test_a_twin_that_trusts_redirects_is_caught(
    internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_the_first(
        target: Target, addresses: Iterable[str], allowed: AllowedHosts
    ) -> tuple[list[IP], bool]:
        if internet.site.asked:
            return [ip_address(address) for address in addresses], True
        return check(target, addresses, allowed)

    internet.site.redirect("/", f"http://127.0.0.1:{internet.trap.port}/secret")
    monkeypatch.setattr(reaching, "check", only_the_first)

    assert await let_through(internet, ["http://public.test/"]) != []
    assert internet.trap.paths == ["/secret"]
