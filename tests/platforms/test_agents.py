"""Each real agent, connected by `sidecar connect`, calls a tool, is denied a call and gets the text for a session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from sidecar.adapters.registry import ADAPTERS
from tests.blackbox.agents.test_eras import TOOLS
from tests.support.sidecar import Sidecar
from tests.support.wire import Json

from .agents import AGENTS, MODULES, NODE, OPENCLAW, installed_version
from .run import AGENT_S

pytestmark = pytest.mark.skipif(
    os.environ.get("SIDECAR_PLATFORMS") != "1", reason="the real agents: make test-platforms"
)

COLUMNS = ("version", "calls our tools", "obeys our hook", "gets our text at start", "its session is a chat")


def agent_chats(data_dir: Path) -> list[Json]:
    """The chats of agents in a database, by a sidecar of our own."""
    environment = os.environ | {"SIDECAR_DATA_DIR": str(data_dir)}
    sidecar = Sidecar([sys.executable, "-m", "sidecar", "serve"], environment, data_dir)
    try:
        sidecar.initialize()
        items: list[Json] = sidecar.call("chat/list", namespace="agents")["items"]
        return items
    finally:
        sidecar.close_stdin()
        sidecar.wait()
        sidecar.dispose()


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    """The rows of what was run, which are printed at the end as docs/agents.md has them."""
    rows: list[str] = []
    yield rows
    head = f"| {date.today():%d %B %Y} | {' | '.join(COLUMNS)} |"
    sys.stderr.write("\n".join(["", head, "|---|---|---|---|---|---|", *rows, ""]))


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_uses_our_tools_hooks_and_memory(tmp_path: Path, table: list[str], name: str) -> None:
    assert MODULES.is_dir(), f"{MODULES}: the agents are not installed"
    ran = subprocess.run(
        ["unshare", "-n", sys.executable, "-m", "tests.platforms.run", name, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=2 * AGENT_S + 60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    chats = agent_chats(tmp_path / "home/.local/share/sidecar")
    has_chat = name in {chat["chatId"].partition(":")[0] for chat in chats}
    results = (report["calls"], report["denied"], report["remembers"], has_chat)
    shown = " | ".join("yes" if result else "no" for result in results)
    table.append(f"| {ADAPTERS[name].title} | {AGENTS[name].version} | {shown} |")

    assert report["first"]["code"] == report["second"]["code"] == 0, report
    assert "Done" in report["first"]["stdout"], report
    assert "Second" in report["second"]["stdout"], report
    assert results == (True, True, True, True), report


def test_openclaw_connects_to_our_server(tmp_path: Path, table: list[str]) -> None:
    """It needs a login to run a model; `mcp probe` starts the server as it would for one."""
    project = tmp_path / "my project"
    project.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment = kept | {"HOME": str(tmp_path / "home"), "PYTHONPATH": os.getcwd()}
    (tmp_path / "home").mkdir()
    connect = [sys.executable, "-m", "sidecar", "connect", "openclaw"]
    subprocess.run(connect, env=environment, cwd=project, check=True, stdout=subprocess.DEVNULL)
    probe = [NODE, str(MODULES / "openclaw/openclaw.mjs"), "mcp", "probe", "sidecar", "--json"]
    done = subprocess.run(
        probe, env=environment, cwd=project, capture_output=True, text=True, timeout=AGENT_S, check=False
    )
    table.append(f"| OpenClaw | {installed_version(OPENCLAW)} | lists them | no hooks | no hooks | no |")

    assert done.returncode == 0, done.stdout + done.stderr
    assert [name for name in TOOLS if name not in done.stdout] == []
