"""Each real agent, connected by `sidecar connect`, calls a tool, and its session is a chat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sidecar import Sidecar
from tests.support.wire import Json

from .agents import AGENTS, MODULES
from .run import AGENT_S

pytestmark = pytest.mark.skipif(
    os.environ.get("SIDECAR_PLATFORMS") != "1", reason="the real agents: make test-platforms"
)


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


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_calls_a_tool_and_its_session_is_a_chat(tmp_path: Path, name: str) -> None:
    assert MODULES.is_dir(), f"{MODULES}: the agents are not installed"
    ran = subprocess.run(
        ["unshare", "-n", sys.executable, "-m", "tests.platforms.run", name, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=AGENT_S + 60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)

    chats = agent_chats(tmp_path / "home/.local/share/sidecar")
    assert report["first"]["code"] == report["second"]["code"] == 0, report
    assert name in {chat["chatId"].partition(":")[0] for chat in chats}, report
    assert "Done" in report["first"]["stdout"], report
    assert "Second" in report["second"]["stdout"], report
    # Agents whose hooks are registered give a new session what earlier ones were about.
    assert report["remembers"] is (AGENTS[name].remembers), report
