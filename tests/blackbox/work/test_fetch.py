"""Pages of the web through the pipe: a model that fetches, a person who is asked, a server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.blackbox.hooks.bench import HookBench, specific
from tests.blackbox.models.network import listening
from tests.blackbox.work.workbench import Workbench, call, outputs, statuses, tools
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.unit.web.server import Site, Tunnel, serving


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


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("mode", "more"), [("read-only", ""), ("auto", '[permissions]\ndeny = ["fetch(localhost)"]\n')]
)
def test_what_is_denied_is_not_asked(bench: Workbench, site: Site, mode: str, more: str) -> None:
    sidecar = start(bench, site, [fetch(site, "/"), "done"], mode=mode, more=more)
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"]
    assert site.asked == []


LONG = "".join(f"<h2>Part {n}</h2><p>{'Of grain and water. ' * 20}</p>" for n in range(20))


def test_a_long_page_is_kept_and_previewed(bench: Workbench, site: Site) -> None:
    site.put("/", f"<title>Mills</title>{LONG}<h2>Wind</h2><p>The sails of Kinderdijk turn.</p>")
    sidecar = start(bench, site, [fetch(site, "/"), call("search_context", queries=["Kinderdijk"]), "done"])
    ended = sidecar.run("go", chatId="c")

    page, search = tools(sidecar, ended["sessionId"])
    output = page["output"]
    assert output["text"].startswith(f"Mills <{site.url}/>\n\n")
    assert len(output["text"]) < 2000
    assert output["source"].startswith("out:")
    assert f"kept as {output['source']};" in output["text"]
    assert "… Headings, by line:\n1: ## Part 0\n" in output["text"]
    (ended_event, _) = sidecar.events(ended["sessionId"], "tool.ended")
    measured = ended_event["data"]["measured"]
    assert (measured["fetches"], measured["fetchHits"]) == (1, 0)
    assert measured["captured"] > 3 * measured["sent"]
    assert "The sails of Kinderdijk turn." in search["output"]["text"]
    assert output["source"] in search["output"]["text"]


def test_words_are_found_in_a_long_page(bench: Workbench, site: Site) -> None:
    site.put("/", f"{LONG}<h2>Wind</h2><p>The sails of Kinderdijk turn.</p>{LONG}")
    sidecar = start(bench, site, [fetch(site, "/", query="sails of Kinderdijk"), "done"])
    ended = sidecar.run("go", chatId="c")

    (text,) = outputs(sidecar, ended["sessionId"])
    assert "The sails of Kinderdijk turn." in text
    assert len(text) < 6000


def test_without_the_index_a_page_comes_as_any_output_does(bench: Workbench, site: Site) -> None:
    site.put("/", LONG)
    sidecar = start(bench, site, [fetch(site, "/", query="grain"), "done"], more="[index]\nenabled = false\n")
    ended = sidecar.run("go", chatId="c")

    (text,) = outputs(sidecar, ended["sessionId"])
    assert "The index is switched off, so the page cannot be searched." in text
    assert "## Part 19" in text


def test_json_is_answered_by_its_path(bench: Workbench, site: Site) -> None:
    site.put("/", '{"items": [{"name": "mill"}, {"name": "mole"}]}', type="application/json")
    wrong, right = fetch(site, "/", select="items[0].nme"), fetch(site, "/", select="items[*].name")
    sidecar = start(bench, site, [wrong, right, "done"])
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["failed", "completed"]
    told, found = outputs(sidecar, ended["sessionId"])
    assert told.endswith("`items[0]` has no 'nme'. It has: name")
    assert found.endswith('\n\n["mill","mole"]')


def test_a_redirect_to_another_port_asks_again(bench: Workbench, site: Site) -> None:
    with serving(Site()) as other:
        site.redirect("/", f"{other.url}/there")
        other.put("/there", "found")
        configured(bench, f'[fetch]\nallow_private = ["localhost:{site.port}", "localhost:{other.port}"]\n')
        sidecar = bench.start([fetch(site, "/"), "done"], [fetch(site, "/"), "done"], mode="ask")
        sidecar.answering["permission/request"] = lambda params: {
            "decision": "allow_once" if params["subject"].startswith(site.url) else "deny_once"
        }
        ended = sidecar.run("go", chatId="c")
        assert [request["params"]["subject"] for request in sidecar.asked] == [
            f"{site.url}/",
            f"{other.url}/there",
        ]
        assert statuses(sidecar, ended["sessionId"]) == ["failed"]
        assert other.asked == []

        sidecar.answering["permission/request"] = lambda params: {"decision": "allow_once"}
        sidecar.run("again", chatId="c")
        assert outputs(sidecar, ended["sessionId"])[1].endswith("\n\nfound")


def test_a_redirect_within_the_host_does_not_ask_but_a_rule_denies_it(bench: Workbench, site: Site) -> None:
    site.redirect("/", "/open")
    site.put("/open", "come in")
    site.redirect("/side", "/closed/door")
    rule = f'[permissions]\ndeny = ["fetch({site.url}/closed/*)"]\n'
    sidecar = start(bench, site, [fetch(site, "/"), fetch(site, "/side"), "done"], mode="ask", more=rule)
    sidecar.answering["permission/request"] = lambda params: {"decision": "allow_once"}
    ended = sidecar.run("go", chatId="c")

    first, second = outputs(sidecar, ended["sessionId"])
    assert first.endswith("come in")
    assert "Denied: a rule denies fetch(" in second
    assert [request["params"]["subject"] for request in sidecar.asked] == [f"{site.url}/", f"{site.url}/side"]
    assert "/closed/door" not in site.paths


def test_a_hook_that_allows_an_address_does_not_allow_where_it_redirects_to(
    spawn: Spawner, site: Site
) -> None:
    bench = HookBench(spawn)
    with serving(Site()) as other:
        site.redirect("/", f"{other.url}/there")
        configured(bench, f'[fetch]\nallow_private = ["localhost:{site.port}", "localhost:{other.port}"]\n')
        bench.hook("PreToolUse", bench.saying(specific(permissionDecision="allow")), "WebFetch")
        sidecar = bench.trusting([fetch(site, "/"), "done"], mode="ask")
        sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
        sidecar.run("go", chatId="c")

        assert [request["params"]["subject"] for request in sidecar.asked] == [f"{other.url}/there"]
        assert (site.paths, other.asked) == (["/"], [])


def test_a_public_page_is_kept_for_all_chats_and_serves_when_the_network_is_gone(
    bench: Workbench, site: Site
) -> None:
    """By its number, so that no resolver is needed, and through a proxy, which leads every address to the site."""
    url = "http://93.184.215.14/news"
    site.put("/news", "<p>the mill burns", cache_control="max-age=1")
    tunnel = Tunnel(lambda port: site.port)
    with listening(tunnel.handle) as proxy:
        env = {"http_proxy": f"http://127.0.0.1:{proxy.port}", "no_proxy": ""}
        first = bench.start([call("fetch_url", url=url), "done"], env=env)
        assert first.run("go", chatId="c")["data"]["reason"] == "end_turn"
        first.close_stdin()
        first.wait()
        assert tunnel.seen == ["93.184.215.14:80"]
    second = bench.spawn(model=bench.script([call("fetch_url", url=url, refresh=True), "done"]), env=env)
    second.call("chat/open", chatId="d", projectPath=str(bench.project), config={"mode": "auto"})
    ended = second.run("go", chatId="d")

    (text,) = outputs(second, ended["sessionId"])
    assert text.startswith(f"{url}\nSTALE: this is a copy of ")
    assert text.endswith("\n\nthe mill burns")


def test_switched_off_there_is_no_such_tool(bench: Workbench, site: Site) -> None:
    sidecar = start(bench, site, [fetch(site, "/"), "done"], more="enabled = false\n")
    ended = sidecar.run("go", chatId="c")

    assert "no tool called 'fetch_url'" in outputs(sidecar, ended["sessionId"])[0]


def test_what_came_from_this_machine_is_not_kept_for_other_chats(bench: Workbench, site: Site) -> None:
    site.put("/", "private words")
    sidecar = start(bench, site, [fetch(site, "/"), fetch(site, "/", refresh=False), "done"])
    sidecar.run("go", chatId="c")
    assert site.paths == ["/", "/"]
