"""Pages of the web through the pipe: a model that fetches, a person who is asked, a server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.sidecar import Sidecar
from tests.web.server import Site, serving
from tests.work.workbench import Workbench, call, outputs, statuses, tools


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site


def fetch(site: Site, path: str, **more: Any) -> dict[str, Any]:
    return call("fetch_url", url=f"{site.url}{path}", **more)


def configured(bench: Workbench, text: str) -> None:
    folder = bench.spawn.folder / "home" / ".config" / "sidecar"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text)


def start(bench: Workbench, site: Site, *replies: list[Any], mode: str = "auto", more: str = "") -> Sidecar:
    """The user allows this server, by its name and port."""
    configured(bench, f'[fetch]\nallow_private = ["localhost:{site.port}"]\n{more}')
    return bench.start(*replies, mode=mode)


def test_a_page_comes_as_markdown(bench: Workbench, site: Site) -> None:
    site.put("/", "<title>Mill</title><h1>The mill</h1><p>It <b>grinds</b>.</p><script>no()</script>")
    sidecar = start(bench, site, [fetch(site, "/"), "done"])
    ended = sidecar.run("go", chatId="c")

    (item,) = tools(sidecar, ended["sessionId"])
    assert (item["status"], item["kind"], item["title"]) == ("completed", "fetch", f"Fetch {site.url}/")
    assert item["output"]["text"] == f"Mill <{site.url}/>\n\n# The mill\n\nIt **grinds**."


def test_without_the_users_word_nothing_on_this_machine_is_asked(bench: Workbench, site: Site) -> None:
    site.put("/", "secret")
    sidecar = bench.start([fetch(site, "/"), "done"])
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["failed"]
    assert (
        f"naming localhost:{site.port} in the setting fetch.allow_private"
        in outputs(sidecar, ended["sessionId"])[0]
    )
    assert site.asked == []


def test_a_person_is_asked_by_the_address_and_may_allow_the_host(bench: Workbench, site: Site) -> None:
    site.put("/a", "one")
    site.put("/b", "two")
    sidecar = start(bench, site, [fetch(site, "/a"), fetch(site, "/b"), "done"], mode="ask")
    sidecar.answering["permission/request"] = lambda params: {"decision": "allow_chat"}
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["completed", "completed"]
    (asked,) = sidecar.asked
    assert (asked["params"]["kind"], asked["params"]["subject"]) == ("fetch", f"{site.url}/a")
    (rule,) = sidecar.call("permissionRules/list", chatId="c")["items"]
    assert rule["rule"] == f"fetch(localhost:{site.port})"


@pytest.mark.parametrize(
    ("mode", "more"), [("read-only", ""), ("auto", '[permissions]\ndeny = ["fetch(localhost)"]\n')]
)
def test_what_is_denied_is_not_asked(bench: Workbench, site: Site, mode: str, more: str) -> None:
    sidecar = start(bench, site, [fetch(site, "/"), "done"], mode=mode, more=more)
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"]
    assert site.asked == []
