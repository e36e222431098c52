"""What an agent can do with the tools."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from sidecar.context.tokens import encodings
from tests.support.spawner import Spawner
from tests.support.wire import Json
from tests.unit.web.server import Site, serving

from .conftest import StartHost
from .host import LEGACY, Host

pytestmark = pytest.mark.slow

LOUD = "for i in range(4000): print(i, 'needle in line' if i == 2718 else 'hay')"


def test_all_definitions_together_stay_small(host: Host) -> None:
    listed = json.dumps(host.request("tools/list"), ensure_ascii=False)

    assert len(encodings.encoding(encodings.O200K).encode(listed)) < 1500


def test_loud_output_stays_out_and_is_found_again(host: Host) -> None:
    shown = host.text("run_code", language="python", code=LOUD, intent="needle")

    assert "needle in line" in shown
    assert len(shown) < 6000
    reference = shown.partition("out:")[2].split()[0].strip(";]")
    assert "2718 needle" in host.text("search_context", queries="needle")
    shown = host.text("get_output", id=f"out:{reference}", start_line="2719", end_line=2719.0)
    assert shown.endswith("2718 needle in line")


def test_what_one_agent_kept_another_finds_by_project(start_host: StartHost, tmp_path: Path) -> None:
    first = start_host(client="claude-code", env={"CLAUDE_CODE_SESSION_ID": "one"})
    first.text("run_code", language="python", code=LOUD, intent="needle")
    second = start_host(client="codex-mcp-client", version=LEGACY)
    elsewhere = start_host(client="codex-mcp-client", project=tmp_path)

    assert "needle in line" in second.text("search_context", queries=["needle"])
    assert "needle in line" not in second.text("search_context", queries=["needle"], scope="chat")
    assert "needle in line" not in elsewhere.text("search_context", queries=["needle"])


def test_files_are_indexed_and_found(host: Host) -> None:
    host.text("index_path", path="notes.txt")

    assert "zebra crosses" in host.text("search_context", queries=["zebra"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"commands": [{"label": "a", "command": "echo one"}]},
        {"commands": {"label": "a", "command": "echo one"}},
        {"commands": '[{"label": "a", "command": "echo one"}]', "concurrency": "2"},
        {"commands": ['{"label": "a", "command": "echo one"}'], "timeout_ms": "9000"},
    ],
)
def test_arguments_are_read_tolerantly(host: Host, arguments: Json) -> None:
    assert "one" in host.text("run_batch", **arguments)


def test_arguments_may_be_the_text_of_their_object(host: Host) -> None:
    result = host.request("tools/call", name="run_code", arguments='{"language":"shell","code":"echo hi"}')

    assert "hi" in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("run_code", {"language": "python"}, "code"),
        ("run_code", {"language": "klingon", "code": "x"}, "language"),
        ("search_context", {"queries": []}, "queries"),
        ("search_context", {"queries": ["x"], "scope": "world"}, "scope"),
        ("search_chats", {"query": "x", "limit": 0}, "limit"),
        ("get_output", {"id": "out:none"}, "out:none"),
        ("index_path", {"path": "../../etc/passwd"}, "out of the project"),
        ("purge", {"scope": "everything"}, "scope"),
    ],
)
def test_wrong_arguments_are_results_that_name_them(
    host: Host, tool: str, arguments: Json, named: str
) -> None:
    assert named in host.error(tool, **arguments)


def test_calls_run_side_by_side(host: Host) -> None:
    ids = [
        host.send(
            "tools/call",
            name="run_code",
            arguments={
                "language": "shell",
                "code": f"touch {n}; until [ -e {1 - n} ]; do sleep 0.05; done; echo met",
            },
        )
        for n in (0, 1)
    ]

    assert all("met" in host.wait(id)["result"]["content"][0]["text"] for id in ids)


def test_chats_of_the_project_are_found(host: Host) -> None:
    host.text("run_code", language="shell", code="echo xylophone")

    assert "sidecar://chat/" in host.text("search_chats", query="xylophone")
    assert "xylophone" not in host.text("search_chats", query="harpsichord")


def test_outputs_and_chats_are_resources(host: Host) -> None:
    host.text("index_path", path="notes.txt")
    listed, cursor = [], None
    while True:
        page = host.request("resources/list", **({"cursor": cursor} if cursor else {}))
        listed += page["resources"]
        cursor = page.get("nextCursor")
        if not cursor:
            break

    by_kind = {one["uri"].split("/")[2]: one["uri"] for one in listed}
    assert set(by_kind) == {"chat", "output"}
    read = host.request("resources/read", uri=by_kind["output"])
    assert "zebra crosses" in read["contents"][0]["text"]
    shown = host.request("resources/read", uri=by_kind["chat"])["contents"][0]["text"]
    assert shown.endswith("*Index notes.txt* (completed)")
    assert "**User:**" not in shown
    assert host.refused("resources/read", uri="file:///etc/passwd")["code"] == -32602


def test_prompts_ask_the_common_questions(host: Host) -> None:
    names = [prompt["name"] for prompt in host.request("prompts/list")["prompts"]]

    texts = [host.request("prompts/get", name=name)["messages"][0]["content"]["text"] for name in names]
    assert len(names) == 3
    assert all("search_chats" in text for text in texts)


def test_a_purge_counts_first_and_deletes_when_confirmed(host: Host) -> None:
    host.text("index_path", path="notes.txt")

    assert "confirm: true" in host.text("purge", scope="project")
    assert "1 source" in host.text("purge", scope="project", confirm="true")
    assert "crosses" not in host.text("search_context", queries=["zebra"])


@pytest.mark.parametrize("version", [LEGACY, "2026-07-28"])
@pytest.mark.parametrize("agreed", [True, False])
def test_a_purge_asks_the_user_where_the_host_can(start_host: StartHost, version: str, agreed: bool) -> None:
    asked: list[Json] = []

    def answer(form: Json) -> Json:
        asked.append(form)
        return {"action": "accept", "content": {"delete": agreed}}

    host = start_host(version=version, answer=answer)
    host.text("index_path", path="notes.txt")
    said = host.text("purge", scope="project", confirm=True)

    assert ("Deleted" in said) is agreed
    assert len(asked) == 1
    assert "1 source" in asked[0]["message"]


@pytest.mark.parametrize("version", [LEGACY, "2026-07-28"])
def test_protected_names_ask_the_user_or_are_denied(
    start_host: StartHost, project: Path, version: str
) -> None:
    (project / ".git").mkdir()
    code = "open('.git/config', 'a').write('[core]')"
    allowed = start_host(
        version=version, answer=lambda form: {"action": "accept", "content": {"decision": "allow_once"}}
    )
    declined = start_host(version=version, answer=lambda form: {"action": "decline"})
    silent = start_host(version=version)

    assert "Denied" in silent.error("run_code", language="python", code=code)
    assert "denied" in declined.error("run_code", language="python", code=code)
    assert not allowed.call("run_code", language="python", code="print(1) # .git/config").get("isError")


@pytest.mark.parametrize("version", [LEGACY, "2026-07-28"])
def test_an_address_that_the_user_has_not_seen_asks_or_is_denied_with_its_rule(
    start_host: StartHost, tmp_path: Path, version: str
) -> None:
    asked: list[str] = []

    def allow(form: Json) -> Json:
        asked.append(form["message"])
        return {"action": "accept", "content": {"decision": "allow_once"}}

    with serving(Site()) as site, serving(Site()) as other:
        site.redirect("/", f"{other.url}/there")
        other.put("/there", "found")
        config = tmp_path / "home/.config/sidecar/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'[fetch]\nallow_private = ["localhost:{site.port}", "localhost:{other.port}"]\n')
        refused = start_host(version=version).error("fetch_url", url=f"{site.url}/")
        host = start_host(version=version, answer=allow)
        shown = host.text("fetch_url", url=f"{site.url}/")

    assert f"fetch(localhost:{other.port})" in refused
    assert shown.endswith("found")
    assert len(asked) == 1
    assert f"{other.url}/there" in asked[0]


def test_a_deny_rule_holds_for_agents(start_host: StartHost, tmp_path: Path) -> None:
    config = tmp_path / "home/.config/sidecar/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[permissions]\ndeny = ["run(touch *)", "read(notes.txt)"]\n')
    host = start_host()

    assert "Denied" in host.error("run_batch", commands=[{"label": "t", "command": "touch made"}])
    assert "crosses" not in host.call("index_path", path="notes.txt")["content"][0]["text"]
    assert "crosses" not in host.text("search_context", queries=["zebra"])


def test_a_removed_project_is_a_result_with_the_reason(start_host: StartHost, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    host = start_host(project=gone)
    host.request("tools/list")
    gone.rmdir()

    assert "does not exist" in host.error("stats")
    assert host.request("ping") == {"resultType": "complete"}


def test_a_database_that_cannot_be_opened_is_a_result_with_the_reason(
    start_host: StartHost, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    host = start_host()

    assert host.error("stats")
    assert len(host.request("tools/list")["tools"]) == 12


def test_programs_of_two_agents_in_one_project_do_not_disturb_each_other(
    start_host: StartHost, project: Path
) -> None:
    names = ("one", "two")
    hosts = [start_host(client="claude-code", env={"CLAUDE_CODE_SESSION_ID": name}) for name in names]
    asked = [
        (host, host.send("tools/call", name="run_code", arguments={"language": "shell", "code": code}))
        for code in (f"sleep 0.0{turn % 4}; echo ran" for turn in range(8))
        for host in hosts
    ]
    for host, id in asked:
        text = host.wait(id)["result"]["content"][0]["text"]
        assert text.startswith("ran\n")
        assert "it created" not in text
    assert os.listdir(project) == ["notes.txt"]


def test_a_file_has_one_token_count_also_before_the_tokenizer_is_loaded(
    host: Host, project: Path, spawn: Spawner
) -> None:
    (project / "hex.txt").write_text("0f1e2d3c4b5a6978 " * 2000)
    told = re.search(r"([\d,]+) tokens", host.text("index_path", path="hex.txt"))
    assert told
    host.close()

    (listed,) = spawn().call("index/list", scope="all")["items"]

    assert int(told[1].replace(",", "")) == listed["tokens"]
