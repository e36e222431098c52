"""`[adapters]` and `[adapters.NAME]`: what the user's settings let each agent do."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until
from tests.support.spawner import Spawner

from .conftest import StartHost
from .hooks import HookRunner, waiting_events
from .host import Host
from .test_eras import TOOLS

Configure = Callable[[str], None]

DAY_MS = 24 * 3600 * 1000
ECHO = {"language": "shell", "code": "echo stored"}


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    def write(text: str) -> None:
        path = tmp_path / "home/.config/sidecar/config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write


def tools_of(host: Host) -> list[str]:
    return [tool["name"] for tool in host.request("tools/list")["tools"]]


def chats_of(host: Host) -> set[str]:
    listed = host.request("resources/list")["resources"]
    return {one["name"].partition(" in ")[0] for one in listed if "/chat/" in one["uri"]}


def test_an_agent_without_the_sandbox_gets_the_other_tools(
    start_host: StartHost, configure: Configure
) -> None:
    configure("[adapters.codex]\nsandbox_tools = false\n")
    codex, claude = start_host(client="codex-mcp-client"), start_host(client="claude-code")

    assert tools_of(codex) == [name for name in TOOLS if name not in ("run_code", "run_batch")]
    assert "adapters.codex.sandbox_tools" in codex.error("run_code", **ECHO)
    assert tools_of(claude) == TOOLS


def test_an_agent_that_is_switched_off_has_neither_tools_nor_hooks(
    start_host: StartHost, configure: Configure, tmp_path: Path, project: Path
) -> None:
    configure("[adapters.claude-code]\nenabled = false\n")
    host = start_host(client="claude-code")
    hook = HookRunner(Spawner(tmp_path).environment(), project)
    for name in ("claude-code", "codex"):
        hook(name, "UserPromptSubmit", prompt="Go")

    assert tools_of(host) == []
    assert "adapters.claude-code.enabled" in host.error("stats")
    assert [event["platform"] for event in waiting_events(tmp_path / "data")] == ["codex"]


def test_outputs_of_an_agent_are_cut_and_kept_out_of_the_index_as_set(
    start_host: StartHost, configure: Configure, tmp_path: Path, project: Path
) -> None:
    configure("[adapters.codex]\nindex = false\n[adapters.claude-code]\nmax_output_size = 4000\n")
    hook = HookRunner(Spawner(tmp_path).environment(), project)
    for name, animal in (("codex", "walrus"), ("claude-code", "narwhal")):
        output = {"stdout": f"{animal} " + "hay " * 2000 + f"end-of-{animal}", "stderr": ""}
        hook(name, "PostToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_response=output)
    sizes = [len(event["text"]) for event in waiting_events(tmp_path / "data")]
    host = start_host()

    assert sizes[0] > 8000
    assert sizes[1] == 4000
    assert "narwhal hay" in host.text("search_context", queries=["narwhal"])
    assert "walrus hay" not in host.text("search_context", queries=["walrus"])


def test_the_user_says_which_agent_an_unknown_client_is(start_host: StartHost, configure: Configure) -> None:
    configure('[adapters]\ndefault = "zed"\n')
    unknown = start_host(client="someone", env={"CLAUDECODE": "1"})
    known = start_host(client="codex-mcp-client")
    for host in (unknown, known):
        host.text("run_code", **ECHO)

    assert chats_of(known) == {"Zed", "Codex"}


def test_nothing_is_guessed_when_the_user_does_not_want_it(
    start_host: StartHost, configure: Configure
) -> None:
    configure("[adapters]\nauto_detect = false\n")
    host = start_host(client="someone", env={"CLAUDECODE": "1"})
    host.text("run_code", **ECHO)

    assert chats_of(host) == {"MCP client"}


def test_sessions_are_kept_as_long_as_is_set_for_their_agent(
    start_host: StartHost, configure: Configure, tmp_path: Path
) -> None:
    for client in ("claude-code", "codex-mcp-client", "Zed"):
        host = start_host(client=client)
        host.text("run_code", **ECHO)
        host.close()
    ages = {"claude-code": 60, "codex": 20, "zed": 20}
    with sqlite3.connect(tmp_path / "data/sidecar.db") as database:
        for name, days in ages.items():
            then = int(time.time() * 1000) - days * DAY_MS
            database.execute("UPDATE chats SET last_activity = ? WHERE key LIKE ?", (then, f"{name}:%"))
    database.close()
    configure(
        "[session]\nretention_days = 30\n"
        "[adapters.claude-code]\nretention_days = 90\n[adapters.codex]\nretention_days = 10\n"
    )
    host = start_host(client="someone")
    host.text("stats")

    assert poll_until(lambda: "Codex" not in chats_of(host), PATIENCE_S)
    assert chats_of(host) >= {"Claude Code", "Zed"}


@pytest.mark.parametrize(
    ("text", "named"),
    [("[adapters.clyde]\nenabled = true\n", "clyde"), ('[adapters.codex]\nindex = "no"\n', "index")],
)
def test_a_wrong_setting_is_a_result_that_names_it(
    start_host: StartHost, configure: Configure, text: str, named: str
) -> None:
    configure(text)
    host = start_host(client="codex-mcp-client")

    assert tools_of(host) == TOOLS
    assert named in host.error("stats")
    assert json.dumps(host.request("ping")) == '{"resultType": "complete"}'
