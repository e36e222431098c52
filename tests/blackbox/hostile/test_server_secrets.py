"""Secrets of a chat's MCP servers stand in one table and nowhere else, and the servers still get them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.blackbox.data.database_files import ended, holding
from tests.blackbox.hostile.servers import Json, elsewhere, kept, reached, said, started, wait_state
from tests.blackbox.mutants.patching import Mutant, environment, source
from tests.blackbox.work.workbench import Workbench, call
from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

pytestmark = pytest.mark.slow

TOKEN = "ghp_plantedCanary0123456789"
PHRASE = "correct horse planted staple"
HEADER = "Bearer planted-header-4711"
QUERY = "api_key=planted-query-0815"
LOGIN = "postgres://me:planted-login-99@db/app"
PLANTED = (TOKEN, PHRASE, "planted-header-4711", "planted-query-0815", "planted-login-99")

CASES = {
    "a token": ("env", "GITHUB_TOKEN", TOKEN),
    "a value whose name says nothing": ("env", "FLAVOUR", PHRASE),
    "an address with a login": ("env", "DATABASE_URL", LOGIN),
    "a header": ("headers", "Authorization", HEADER),
    "a header of another name": ("headers", "X-Tenant", PHRASE),
    "a query": ("url", "", QUERY),
    "a value that reads like a number": ("env", "PIN", "314159265358979"),
}


def found(text: str) -> list[str]:
    return [secret for secret in PLANTED if secret in text]


def entry(part: str, name: str, value: str) -> Json:
    """A server that cannot be reached, with one secret."""
    if part == "env":
        return {"name": "s", "command": "/no/such/program", "env": {name: value}}
    url = f"http://127.0.0.1:9/mcp?{value}" if part == "url" else "http://127.0.0.1:9/mcp"
    return {"name": "s", "url": url, **({"headers": {name: value}} if part == "headers" else {})}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", ["open", "configure"])
def test_no_answer_event_export_or_row_has_it(spawn: Spawner, case: str, way: str) -> None:
    sidecar = spawn()
    _, _, secret = CASES[case]
    servers = [entry(*CASES[case])]
    if way == "open":
        sidecar.call("chat/open", chatId="c", config={"mcpServers": servers})
    else:
        sidecar.call("chat/open", chatId="c")
        sidecar.call("chat/configure", chatId="c", set={"mcpServers": servers})
    sidecar.run("hello", chatId="c")
    sidecar.call("chat/fork", chatId="c", newChatId="d")
    assert secret not in said(sidecar, spawn, "c") + said(sidecar, spawn, "d")
    ended(sidecar)
    database = spawn.data_dir / "sidecar.db"
    assert secret not in elsewhere(database)
    assert secret in kept(database)


def test_it_is_shown_as_set(spawn: Spawner) -> None:
    sidecar = spawn()
    servers = [
        {"name": "a", "command": "/no/such", "env": {"T": TOKEN, "E": ""}},
        {"name": "b", "url": f"http://127.0.0.1:9/x?{QUERY}", "headers": {"Authorization": HEADER}},
    ]
    shown = sidecar.call("chat/open", chatId="c", config={"mcpServers": servers})["config"]["mcpServers"]
    assert shown == [
        {"name": "a", "command": "/no/such", "env": {"T": "(set)", "E": "(set)"}},
        {"name": "b", "url": "http://127.0.0.1:9/x?(set)", "headers": {"Authorization": "(set)"}},
    ]


def start_both(spawn: Spawner, url: str, folder: Path) -> tuple[Sidecar, list[Json]]:
    sidecar = spawn()
    servers = [
        started(folder, "s", T=TOKEN, P=PHRASE),
        {"name": "r", "url": f"{url}?{QUERY}", "headers": {"Authorization": HEADER}},
    ]
    shown = sidecar.call("chat/open", chatId="c", config={"mcpServers": servers})["config"]["mcpServers"]
    return sidecar, shown


def environment_of(folder: Path) -> str:
    path = folder / "s.env"
    text = path.read_text()
    path.unlink()
    return text


def test_the_servers_get_it_also_after_a_restart_and_in_a_fork(spawn: Spawner, tmp_path: Path) -> None:
    with reached() as other:
        sidecar, _ = start_both(spawn, other.url, tmp_path)
        wait_state(sidecar, "s", "ready")
        seen = environment_of(tmp_path)
        assert (f"T={TOKEN}" in seen, f"P={PHRASE}" in seen) == (True, True)
        path, headers = other.wait_asked()[0]
        assert (path, headers["Authorization"]) == (f"/mcp?{QUERY}", HEADER)
        sidecar.run("hello", chatId="c")
        sidecar.call("chat/fork", chatId="c", newChatId="d")
        ended(sidecar)
        for chat in ("c", "d"):
            again = spawn()
            again.call("chat/open", chatId=chat)
            wait_state(again, "s", "ready")
            seen = environment_of(tmp_path)
            assert (f"T={TOKEN}" in seen, f"P={PHRASE}" in seen) == (True, True)
            ended(again)
        assert all(headers["Authorization"] == HEADER for _, headers in other.asked)


def test_what_is_sent_back_as_it_was_shown_stays(spawn: Spawner, tmp_path: Path) -> None:
    with reached() as other:
        sidecar, shown = start_both(spawn, other.url, tmp_path)
        wait_state(sidecar, "s", "ready")
        shown[0]["env"]["MORE"] = "more"
        del shown[0]["env"]["P"]
        shown[1]["timeoutMs"] = 5000
        sidecar.call("chat/configure", chatId="c", set={"mcpServers": shown})
        ended(sidecar)
        environment_of(tmp_path)
        again = spawn()
        again.call("chat/open", chatId="c")
        wait_state(again, "s", "ready")
        seen = environment_of(tmp_path)
        assert (f"T={TOKEN}" in seen, "MORE=more" in seen, PHRASE in seen) == (True, True, False)
        assert {headers["Authorization"] for _, headers in other.asked} == {HEADER}
        assert PHRASE not in kept(spawn.data_dir / "sidecar.db")


def test_a_new_value_replaces_the_old_one_and_is_an_event(spawn: Spawner) -> None:
    sidecar = spawn()
    server = {"name": "s", "command": "/no/such", "env": {"T": TOKEN}}
    sidecar.call("chat/open", chatId="c", config={"mcpServers": [server]})
    seqs = [
        sidecar.call("chat/configure", chatId="c", set={"mcpServers": [{**server, "env": {"T": value}}]})[
            "seq"
        ]
        for value in (TOKEN, "(set)", "another-value-1", "(set)")
    ]
    assert (seqs[1] - seqs[0], seqs[2] - seqs[1], seqs[3] - seqs[2]) == (0, 1, 0)
    ended(sidecar)
    rows = kept(spawn.data_dir / "sidecar.db")
    assert (TOKEN in rows, "another-value-1" in rows) == (False, True)


@pytest.mark.parametrize(
    ("server", "field"),
    [
        ({"name": "n", "command": "x", "env": {"A": "(set)"}}, "env.A"),
        ({"name": "s", "command": "x", "env": {"T": "(set)", "B": "(set)"}}, "env.B"),
        ({"name": "n", "url": "http://127.0.0.1:9/", "headers": {"X-A": "(set)"}}, "headers.X-A"),
        ({"name": "n", "url": "http://127.0.0.1:9/?(set)"}, "url"),
        ({"name": "s2", "command": "x", "env": {"T": "(set)"}}, "env.T"),
    ],
)
def test_set_for_what_is_not_kept_is_refused_by_name(spawn: Spawner, server: Json, field: str) -> None:
    sidecar = spawn()
    first = {"name": "s", "command": "x", "env": {"T": TOKEN}}
    sidecar.call("chat/open", chatId="c", config={"mcpServers": [first]})
    refused = sidecar.refused("chat/configure", chatId="c", set={"mcpServers": [server]})
    assert (refused.code, refused.detail("field")) == (-32602, f"set.mcpServers[0].{field}")


def test_a_server_that_repeats_its_secrets_is_not_heard(bench: Workbench, tmp_path: Path) -> None:
    sidecar = bench.start([call("mcp__s__where"), "done"])
    server = started(tmp_path, "s", API_TOKEN=TOKEN, DATABASE_URL=LOGIN)
    sidecar.call("chat/configure", chatId="c", set={"mcpServers": [server]})
    wait_state(sidecar, "s", "ready")
    sidecar.run("go", chatId="c")
    text = said(sidecar, bench.spawn, "c")
    assert ("API_TOKEN" in text, found(text)) == (True, [])


FAILING = "import os, sys; sys.stderr.write(' '.join(os.environ.values()) + ' said'); sys.exit(3)"


@pytest.mark.parametrize("name", ["PLAIN", "MODE", "OPTIONS", "X", "SETTING", "USER_ID"])
def test_a_server_that_fails_shows_no_value_of_its_variables(spawn: Spawner, name: str) -> None:
    sidecar = spawn()
    server = {"name": "s", "command": sys.executable, "args": ["-c", FAILING], "env": {name: "walnut plain"}}
    sidecar.call("chat/open", chatId="c", config={"mcpServers": [server]})
    wait_state(sidecar, "s", "failed")
    text = json.dumps([sidecar.call("tools/list", chatId="c"), sidecar.frames])
    assert ("its last words" in text, "walnut plain" in text) == (True, False)


@pytest.mark.parametrize("way", ["purge", "delete", "no servers", "another list"])
def test_what_is_purged_or_cleared_is_gone_from_the_disk(spawn: Spawner, way: str) -> None:
    sidecar = spawn()
    server = {"name": "s", "command": "/no/such", "env": {"T": TOKEN, "P": PHRASE}}
    sidecar.call("chat/open", chatId="c", config={"mcpServers": [server]})
    if way == "purge":
        sidecar.call("data/purge", scope="chat", chatId="c", confirm=True)
    elif way == "delete":
        sidecar.call("chat/delete", chatId="c")
    else:
        servers = None if way == "no servers" else [{"name": "s", "command": "/no/such"}]
        sidecar.call("chat/configure", chatId="c", set={"mcpServers": servers})
    ended(sidecar)
    assert (holding(spawn, TOKEN), holding(spawn, PHRASE)) == ([], [])


def test_an_export_that_is_imported_brings_no_server(spawn: Spawner) -> None:
    sidecar = spawn()
    server = {"name": "s", "command": "/no/such", "env": {"T": TOKEN}}
    sidecar.call("chat/open", chatId="c", config={"mcpServers": [server]})
    sidecar.run("hello", chatId="c")
    text = sidecar.call("chat/export", chatId="c")["data"]
    assert TOKEN not in text
    assert sidecar.call("chat/import", chatId="d", data=text)["ignored"] == ["mcpServers"]
    assert "mcpServers" not in sidecar.call("chat/open", chatId="d")["config"]


def test_a_backup_has_it_in_the_one_table_and_for_its_owner_alone(spawn: Spawner) -> None:
    sidecar = spawn()
    server = {"name": "s", "command": "/no/such", "env": {"T": TOKEN}}
    sidecar.call("chat/open", chatId="c", config={"mcpServers": [server]})
    backup = spawn.folder / "copy.db"
    command = [sys.executable, "-m", "sidecar", "backup", str(backup)]
    run = subprocess.run(
        command, env=spawn.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert (TOKEN in run.stdout + run.stderr, TOKEN in elsewhere(backup)) == (False, False)
    assert (TOKEN in kept(backup), backup.stat().st_mode & 0o777) == (True, 0o600)


TWINS = {
    "keeps them in the configuration": Mutant(
        "keeps them in the configuration",
        "sidecar/chat/sessions/server_secrets.py",
        "    masked, _ = mcp_secrets.split(servers)\n",
        "    masked = servers\n",
        "tests/blackbox/hostile/test_server_secrets.py",
    ),
    "repeats what a server says": Mutant(
        "repeats what a server says",
        "sidecar/tools/mcp/offers.py",
        "    return redact_text(well_formed(text))\n",
        "    return well_formed(text)\n",
        "tests/blackbox/hostile/test_server_secrets.py",
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_is_caught(spawn: Spawner, tmp_path: Path, name: str) -> None:
    bench = Workbench(spawn)
    script = bench.script([call("mcp__s__where"), "done"])
    place = source(tmp_path / "twin", TWINS[name], whole=False)
    sidecar = spawn(model=script, env=environment(place))
    bench.open(sidecar)
    server = started(tmp_path, "s", API_TOKEN=TOKEN)
    sidecar.call("chat/configure", chatId="c", set={"mcpServers": [server]})
    wait_state(sidecar, "s", "ready")
    sidecar.run("go", chatId="c")
    assert TOKEN in json.dumps([sidecar.call("chat/open", chatId="c"), sidecar.frames])
